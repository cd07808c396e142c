// CUDA against host: everything but products and attention. Odd sizes are there on purpose: they take the
// paths without 16-byte accesses.
#include "tests/device/device_pair.h"

namespace capstan::runtime::testing {
namespace {

plan::Dims dims_of(std::int64_t micro_batch, std::int64_t seq_length, std::int64_t hidden,
                   std::int64_t vocab) {
  plan::Dims dims = PlanSketch::tiny_dims();
  dims.micro_batch = micro_batch;
  dims.seq_length = seq_length;
  dims.hidden = hidden;
  dims.vocab = vocab;
  dims.padded_vocab = vocab;
  return dims;
}

std::string name_of(DType dtype, std::int64_t a, std::int64_t b) {
  return std::string(plan::dtype_name(dtype)) + " " + std::to_string(a) + "x" + std::to_string(b);
}

constexpr DType kStorages[] = {DType::f32, DType::bf16};

TEST(DeviceOps, Embedding) {
  CAPSTAN_NEED_DEVICE();
  struct Case {
    std::int64_t batch, length, hidden, vocab;
  };
  for (const DType dtype : kStorages) {
    for (const Case c :
         {Case{2, 6, 8, 11}, Case{3, 37, 131, 300}, Case{2, 640, 256, 256}, Case{2, 33, 264, 40000}}) {
      for (const DType gradient : {DType::f32, dtype}) {
        PlanSketch sketch(dims_of(c.batch, c.length, c.hidden, c.vocab));
        const std::int64_t count = c.batch * c.length;
        const BufferId table = sketch.buffer("table", dtype, {c.vocab, c.hidden}, plan::Role::parameter);
        const BufferId positions =
            sketch.buffer("positions", dtype, {c.length, c.hidden}, plan::Role::parameter);
        const BufferId x = sketch.buffer("x", dtype, {count, c.hidden});
        const BufferId dx = sketch.buffer("dx", dtype, {count, c.hidden});
        const BufferId dtable = sketch.buffer("dtable", gradient, {c.vocab, c.hidden}, plan::Role::gradient);
        const BufferId dpositions =
            sketch.buffer("dpositions", gradient, {c.length, c.hidden}, plan::Role::gradient);
        sketch.op(OpKind::embedding, {sketch.tokens, table, positions}, {x});
        sketch.op(OpKind::embedding_backward, {dx, sketch.tokens, dtable, dpositions}, {dtable, dpositions});
        DevicePair pair(sketch.finish());
        pair.fill_tokens(sketch.tokens, static_cast<std::int32_t>(c.vocab));
        pair.run_and_compare(tolerance_of(dtype), name_of(dtype, c.vocab, c.hidden));
      }
    }
  }
}

TEST(DeviceOps, Norms) {
  CAPSTAN_NEED_DEVICE();
  for (const DType dtype : kStorages) {
    for (const std::int64_t hidden : {8, 27, 128, 768, 1001, 1024, 2048, 4104, 9000}) {
      for (const bool centered : {false, true}) {
        for (const bool accumulates : {false, true}) {
          PlanSketch sketch;
          const std::int64_t rows = 77;
          const BufferId x = sketch.buffer("x", dtype, {rows, hidden});
          const BufferId y = sketch.buffer("y", dtype, {rows, hidden});
          const BufferId dy = sketch.buffer("dy", dtype, {rows, hidden});
          const BufferId dx = sketch.buffer("dx", dtype, {rows, hidden});
          const BufferId weight = sketch.buffer("weight", dtype, {hidden}, plan::Role::parameter);
          const BufferId bias = sketch.buffer("bias", dtype, {hidden}, plan::Role::parameter);
          const BufferId dweight = sketch.buffer("dweight", DType::f32, {hidden}, plan::Role::gradient);
          const BufferId dbias = sketch.buffer("dbias", DType::f32, {hidden}, plan::Role::gradient);
          const BufferId mean = sketch.buffer("mean", DType::f32, {rows});
          const BufferId rstd = sketch.buffer("rstd", DType::f32, {rows});
          const BufferId partial =
              sketch.buffer("partial", DType::f32, {2, (rows + 15) / 16, hidden}, plan::Role::workspace);
          const std::vector<std::pair<std::string, plan::AttributeValue>> eps = {{"eps", 1e-5}};
          std::vector<BufferId> inputs;
          if (centered) {
            sketch.op(OpKind::layer_norm, {x, weight, bias}, {y, mean, rstd}, eps);
            inputs = {dy, x, weight, mean, rstd, dweight, dbias};
          } else {
            sketch.op(OpKind::rms_norm, {x, weight}, {y, rstd}, eps);
            inputs = {dy, x, weight, rstd, dweight};
          }
          if (accumulates) inputs.push_back(dx);
          const std::vector<BufferId> outputs = centered ? std::vector<BufferId>{dx, dweight, dbias, partial}
                                                         : std::vector<BufferId>{dx, dweight, partial};
          sketch.op(centered ? OpKind::layer_norm_backward : OpKind::rms_norm_backward, inputs, outputs,
                    {{"accumulate_dx", accumulates}});
          DevicePair pair(sketch.finish());
          pair.run_and_compare(tolerance_of(dtype),
                               name_of(dtype, rows, hidden) + (centered ? " layer" : " rms"));
        }
      }
    }
  }
}

TEST(DeviceOps, Rope) {
  CAPSTAN_NEED_DEVICE();
  struct Case {
    std::int64_t heads, kv_heads, head_dim, rotary_dim, length;
  };
  for (const DType dtype : kStorages) {
    for (const Case c :
         {Case{2, 1, 4, 4, 6}, Case{4, 2, 64, 64, 300}, Case{3, 3, 20, 12, 50}, Case{2, 2, 128, 64, 2000}}) {
      for (const bool interleaved : {false, true}) {
        for (const bool inverse : {false, true}) {
          PlanSketch sketch(dims_of(1, c.length, 8, 11));
          const BufferId qkv =
              sketch.buffer("qkv", dtype, {c.length, (c.heads + 2 * c.kv_heads) * c.head_dim});
          sketch.op(OpKind::rope, {qkv}, {qkv},
                    {{"base", 10000.0},
                     {"head_dim", c.head_dim},
                     {"heads", c.heads},
                     {"interleaved", interleaved},
                     {"inverse", inverse},
                     {"kv_heads", c.kv_heads},
                     {"rotary_dim", c.rotary_dim},
                     {"seq_length", c.length}});
          DevicePair pair(sketch.finish());
          pair.run_and_compare(tolerance_of(dtype), name_of(dtype, c.length, c.head_dim));
        }
      }
    }
  }
}

TEST(DeviceOps, Activations) {
  CAPSTAN_NEED_DEVICE();
  for (const DType dtype : kStorages) {
    for (const std::int64_t width : {7, 24, 1408}) {
      PlanSketch sketch;
      const std::int64_t rows = 33;
      const BufferId gate_up = sketch.buffer("gate_up", dtype, {rows, 2 * width});
      const BufferId h = sketch.buffer("h", dtype, {rows, width});
      const BufferId dh = sketch.buffer("dh", dtype, {rows, width});
      const BufferId dgate_up = sketch.buffer("dgate_up", dtype, {rows, 2 * width});
      sketch.op(OpKind::swiglu, {gate_up}, {h});
      sketch.op(OpKind::swiglu_backward, {dh, gate_up}, {dgate_up});
      const BufferId x = sketch.buffer("x", dtype, {rows, width});
      for (const bool tanh_form : {false, true}) {
        const std::string suffix = tanh_form ? ".tanh" : ".erf";
        const BufferId y = sketch.buffer("y" + suffix, dtype, {rows, width});
        const BufferId dx = sketch.buffer("dx" + suffix, dtype, {rows, width});
        sketch.op(OpKind::gelu, {x}, {y}, {{"tanh", tanh_form}});
        sketch.op(OpKind::gelu_backward, {dh, x}, {dx}, {{"tanh", tanh_form}});
      }
      const BufferId sum = sketch.buffer("sum", dtype, {rows, width});
      sketch.op(OpKind::add, {h, x}, {sum});
      DevicePair pair(sketch.finish());
      pair.fill_uniform(gate_up, -6.0F, 6.0F);
      pair.fill_uniform(x, -6.0F, 6.0F);
      pair.run_and_compare(tolerance_of(dtype), name_of(dtype, rows, width));
    }
  }
}

// The same elements are dropped: dropped ones are exactly zero on both sides.
TEST(DeviceOps, Dropout) {
  CAPSTAN_NEED_DEVICE();
  for (const DType dtype : kStorages) {
    for (const std::int64_t count : {5, 64, 4096, 100003}) {
      PlanSketch sketch;
      const BufferId x = sketch.buffer("x", dtype, {1, count});
      const BufferId residual = sketch.buffer("residual", dtype, {1, count});
      const BufferId y = sketch.buffer("y", dtype, {1, count});
      const BufferId z = sketch.buffer("z", dtype, {1, count});
      const BufferId dx = sketch.buffer("dx", dtype, {1, count});
      const std::vector<std::pair<std::string, plan::AttributeValue>> attributes = {
          {"p", 0.3}, {"rng_offset", std::int64_t{77}}};
      sketch.op(OpKind::dropout, {x, sketch.rng_counter}, {y}, attributes);
      sketch.op(OpKind::dropout_add, {x, residual, sketch.rng_counter}, {z}, attributes);
      sketch.op(OpKind::dropout_backward, {residual, sketch.rng_counter}, {dx}, attributes);
      DevicePair pair(sketch.finish());
      pair.set_one(sketch.rng_counter, std::uint64_t{0x1234567890});
      pair.run_and_compare(tolerance_of(dtype), name_of(dtype, 1, count));
      const std::vector<double> host = to_numbers(pair.bytes_of(pair.host(), y), dtype);
      const std::vector<double> cuda = to_numbers(pair.bytes_of(pair.cuda(), y), dtype);
      for (std::size_t i = 0; i < host.size(); ++i) ASSERT_EQ(host[i] == 0.0, cuda[i] == 0.0) << i;
    }
  }
}

TEST(DeviceOps, CrossEntropy) {
  CAPSTAN_NEED_DEVICE();
  struct Case {
    std::int64_t vocab, columns;
  };
  for (const DType dtype : kStorages) {
    for (const Case c : {Case{11, 16}, Case{31, 31}, Case{257, 264}, Case{5000, 5120}, Case{50257, 50304}}) {
      PlanSketch sketch(dims_of(2, 9, 8, c.vocab));
      const BufferId logits = sketch.buffer("logits", dtype, {18, c.columns});
      const BufferId losses = sketch.buffer("losses", DType::f32, {18});
      const BufferId lse = sketch.buffer("lse", DType::f32, {18});
      const BufferId dlogits = sketch.buffer("dlogits", dtype, {18, c.columns});
      sketch.op(OpKind::cross_entropy, {logits, sketch.targets}, {losses, lse}, {{"vocab", c.vocab}});
      sketch.op(OpKind::accumulate_loss, {losses, sketch.loss, sketch.nonfinite},
                {sketch.loss, sketch.nonfinite}, {{"scale", 1.0 / 18}});
      sketch.op(OpKind::cross_entropy_backward, {logits, sketch.targets, lse}, {dlogits},
                {{"scale", 0.125}, {"vocab", c.vocab}});
      DevicePair pair(sketch.finish());
      pair.fill_uniform(logits, -8.0F, 8.0F);
      pair.fill_tokens(sketch.targets, static_cast<std::int32_t>(c.vocab));
      pair.run_and_compare(tolerance_of(dtype), name_of(dtype, c.vocab, c.columns));
    }
  }
}

TEST(DeviceOps, NotFiniteIsFlagged) {
  CAPSTAN_NEED_DEVICE();
  PlanSketch sketch;
  const BufferId losses = sketch.buffer("losses", DType::f32, {18});
  const BufferId x = sketch.buffer("x", DType::bf16, {1000});
  sketch.op(OpKind::accumulate_loss, {losses, sketch.loss, sketch.nonfinite}, {sketch.loss, sketch.nonfinite},
            {{"scale", 1.0}});
  sketch.op(OpKind::check_finite, {x, sketch.nonfinite}, {sketch.nonfinite}, {{"bit", std::int64_t{5}}});
  DevicePair pair(sketch.finish());
  std::vector<float> values(18, 1.0F);
  values[7] = INFINITY;
  pair.set_floats(losses, values);
  std::vector<float> wide(1000, 1.0F);
  wide[999] = -INFINITY;
  pair.set_floats(x, wide);
  pair.run();
  EXPECT_EQ(to_numbers(pair.bytes_of(pair.cuda(), sketch.nonfinite), DType::i32)[0], 1 + 32);
}

TEST(DeviceOps, BiasBackward) {
  CAPSTAN_NEED_DEVICE();
  for (const DType dtype : kStorages) {
    for (const std::int64_t columns : {3, 64, 768, 2307}) {
      PlanSketch sketch;
      const std::int64_t rows = 519;
      const BufferId dy = sketch.buffer("dy", dtype, {rows, columns});
      const BufferId dbias = sketch.buffer("dbias", DType::f32, {columns}, plan::Role::gradient);
      const BufferId partial =
          sketch.buffer("partial", DType::f32, {(rows + 15) / 16, columns}, plan::Role::workspace);
      sketch.op(OpKind::bias_backward, {dy, dbias}, {dbias, partial});
      DevicePair pair(sketch.finish());
      pair.run_and_compare(tolerance_of(dtype), name_of(dtype, rows, columns));
    }
  }
}

TEST(DeviceOps, Optimizer) {
  CAPSTAN_NEED_DEVICE();
  for (const bool has_master : {false, true}) {
    for (const double clip : {0.0, 0.5, 1e6}) {
      PlanSketch sketch;
      const DType dtype = has_master ? DType::bf16 : DType::f32;
      std::vector<BufferId> gradients;
      std::vector<BufferId> inputs = {sketch.rate, sketch.step, sketch.norm, sketch.nonfinite};
      std::vector<BufferId> outputs;
      std::vector<BufferId> second_moments;
      for (const std::int64_t count : {1, 9, 8192, 8193, 30011}) {
        const std::string name = "w" + std::to_string(count);
        const BufferId weight = sketch.buffer(name, dtype, {count}, plan::Role::parameter);
        const BufferId gradient = sketch.buffer(name + ".grad", DType::f32, {count}, plan::Role::gradient);
        const BufferId m = sketch.buffer(name + ".m", DType::f32, {count}, plan::Role::moment1);
        const BufferId v = sketch.buffer(name + ".v", DType::f32, {count}, plan::Role::moment2);
        gradients.push_back(gradient);
        second_moments.push_back(v);
        inputs.insert(inputs.end(), {weight, gradient, m, v});
        outputs.insert(outputs.end(), {weight, m, v});
        if (has_master) {
          const BufferId master = sketch.buffer(name + ".master", DType::f32, {count}, plan::Role::master);
          inputs.push_back(master);
          outputs.push_back(master);
        }
      }
      gradients.push_back(sketch.nonfinite);
      const BufferId partial = sketch.buffer("partial", DType::f32, {1024}, plan::Role::workspace);
      sketch.op(OpKind::grad_norm, gradients, {sketch.norm, sketch.nonfinite, partial});
      sketch.op(OpKind::learning_rate, {sketch.step}, {sketch.rate},
                {{"decay_steps", 100.0},
                 {"init_lr", 0.0},
                 {"max_lr", 0.01},
                 {"min_lr", 0.001},
                 {"style", std::string("cosine")},
                 {"unit", 0.5},
                 {"warmup_steps", 3.5}});
      sketch.op(OpKind::adamw, inputs, outputs,
                {{"beta1", 0.9},
                 {"beta2", 0.95},
                 {"clip_grad", clip},
                 {"eps", 1e-8},
                 {"has_master", has_master},
                 {"weight_decay", 0.1}});
      sketch.op(OpKind::advance_step, {sketch.step, sketch.micro_batch_index},
                {sketch.step, sketch.micro_batch_index});
      for (const std::int64_t step : {0, 2, 40, 1000}) {
        DevicePair pair(sketch.finish());
        for (const BufferId v : second_moments) pair.fill_uniform(v, 0.0F, 1.0F);
        pair.set_one(sketch.step, step);
        pair.run_and_compare(has_master ? 4e-3 : 5e-5, "step " + std::to_string(step));
      }
    }
  }
}

TEST(DeviceOps, Bookkeeping) {
  CAPSTAN_NEED_DEVICE();
  PlanSketch sketch(dims_of(3, 17, 8, 500));
  const BufferId a = sketch.buffer("a", DType::f32, {1000}, plan::Role::gradient);
  const BufferId b = sketch.buffer("b", DType::bf16, {3, 7}, plan::Role::gradient);
  const BufferId kept = sketch.buffer("kept", DType::f32, {5}, plan::Role::parameter);
  sketch.op(OpKind::zero, {}, {b, a});
  sketch.op(OpKind::load_micro_batch, {sketch.batch, sketch.micro_batch_index},
            {sketch.tokens, sketch.targets});
  sketch.op(OpKind::advance_micro_batch, {sketch.micro_batch_index, sketch.rng_counter},
            {sketch.micro_batch_index, sketch.rng_counter});
  DevicePair pair(sketch.finish());
  pair.fill_tokens(sketch.batch, 500);
  pair.set_one(sketch.micro_batch_index, std::int64_t{1});
  pair.run_and_compare(0.0, "bookkeeping");
  pair.compare(kept, 0.0, "the neighbour of what was cleared");
}

TEST(DeviceOps, InitialWeightsAndDigests) {
  CAPSTAN_NEED_DEVICE();
  PlanSketch sketch;
  const plan::Init normal{plan::Init::Kind::normal, 0.02, 5};
  const BufferId wide = sketch.buffer("wide", DType::f32, {1001, 3}, plan::Role::parameter, normal);
  const BufferId narrow = sketch.buffer("narrow", DType::bf16, {777}, plan::Role::parameter, normal);
  const BufferId ones =
      sketch.buffer("ones", DType::bf16, {9}, plan::Role::parameter, {plan::Init::Kind::ones, 0, 0});
  const OpId zero = sketch.op(OpKind::zero, {}, {wide, narrow, ones});
  const plan::Plan plan = sketch.finish();
  auto host = make_host_backend(1);
  auto cuda = make_cuda_backend();
  ASSERT_TRUE(cuda.ok());
  std::vector<std::uint64_t> digests[2];
  std::vector<double> numbers[2];
  int i = 0;
  for (Backend* backend : {host.get(), cuda.value().get()}) {
    ASSERT_TRUE(backend->prepare(plan).ok());
    ASSERT_TRUE(backend->initialize().ok());
    std::vector<std::byte> bytes(plan.buffers[wide].bytes());
    ASSERT_TRUE(backend->download(wide, bytes).ok());
    numbers[i] = to_numbers(bytes, DType::f32);
    // The digest is over bits: give both the host's, which differ from the device's in the last bit of f32 at
    // most.
    std::vector<std::byte> same(plan.buffers[wide].bytes());
    ASSERT_TRUE(host->download(wide, same).ok());
    ASSERT_TRUE(backend->upload(wide, same).ok());
    std::vector<std::byte> same_narrow(plan.buffers[narrow].bytes());
    ASSERT_TRUE(host->download(narrow, same_narrow).ok());
    ASSERT_TRUE(backend->upload(narrow, same_narrow).ok());
    digests[i].resize(1);
    ASSERT_TRUE(backend->reserve_digests(1).ok());
    ASSERT_TRUE(backend->run_digest(zero, 0).ok());
    ASSERT_TRUE(backend->read_digests(digests[i]).ok());
    ++i;
  }
  EXPECT_EQ(digests[0], digests[1]);
  ASSERT_EQ(numbers[0].size(), numbers[1].size());
  for (std::size_t n = 0; n < numbers[0].size(); ++n) EXPECT_NEAR(numbers[0][n], numbers[1][n], 1e-8) << n;
}

}  // namespace
}  // namespace capstan::runtime::testing
