// CUDA against host: matrix products and attention, forward and backward, through every implementation there
// is.
#include <cstdlib>

#include "runtime/ops/cuda_cudnn.h"
#include "tests/device/device_pair.h"

namespace capstan::runtime::testing {
namespace {

TEST(DeviceOps, Gemm) {
  CAPSTAN_NEED_DEVICE();
  struct Case {
    std::int64_t m, n, k;
  };
  struct Types {
    DType input, output;
  };
  for (const Types t :
       {Types{DType::f32, DType::f32}, Types{DType::bf16, DType::bf16}, Types{DType::bf16, DType::f32}}) {
    for (const Case c :
         {Case{1, 1, 1}, Case{17, 31, 13}, Case{64, 48, 80}, Case{130, 264, 520}, Case{512, 8, 1000}}) {
      for (const int shape : {0, 1, 2, 3}) {
        for (const bool accumulate : {false, true}) {
          for (const bool bias : {false, true}) {
            if (bias && (t.input != t.output || accumulate)) continue;
            const bool transpose_a = (shape & 1) != 0;
            const bool transpose_b = (shape & 2) != 0;
            PlanSketch sketch;
            const BufferId a = sketch.buffer(
                "a", t.input,
                transpose_a ? std::vector<std::int64_t>{c.k, c.m} : std::vector<std::int64_t>{c.m, c.k});
            const BufferId b = sketch.buffer(
                "b", t.input,
                transpose_b ? std::vector<std::int64_t>{c.n, c.k} : std::vector<std::int64_t>{c.k, c.n});
            const BufferId added = sketch.buffer("bias", t.output, {c.n}, plan::Role::parameter);
            const BufferId d = sketch.buffer("d", t.output, {c.m, c.n});
            std::vector<BufferId> inputs = {a, b};
            if (bias) inputs.push_back(added);
            if (accumulate) inputs.push_back(d);
            sketch.op(OpKind::gemm, inputs, {d},
                      {{"accumulate", accumulate},
                       {"epilogue", std::string(bias ? "bias" : "none")},
                       {"k", c.k},
                       {"m", c.m},
                       {"n", c.n},
                       {"transpose_a", transpose_a},
                       {"transpose_b", transpose_b}});
            DevicePair pair(sketch.finish());
            pair.run_and_compare(tolerance_of(t.output),
                                 std::to_string(c.m) + "x" + std::to_string(c.n) + "x" + std::to_string(c.k) +
                                     " shape " + std::to_string(shape) + " " + plan::dtype_name(t.input) +
                                     (bias ? " bias" : "") + (accumulate ? " accumulate" : ""));
          }
        }
      }
    }
  }
}

// Quantised numbers are the host's bits; products differ by the order of sums, with fast accumulation by
// more.
TEST(DeviceOps, Fp8) {
  CAPSTAN_NEED_DEVICE();
  struct Formats {
    DType a, b;
  };
  for (const Formats f : {Formats{DType::f8e4m3, DType::f8e4m3}, Formats{DType::f8e5m2, DType::f8e4m3},
                          Formats{DType::f8e4m3, DType::f8e5m2}}) {
    for (const DType from : {DType::f32, DType::bf16}) {
      for (const bool accumulate : {false, true}) {
        for (const bool fast : {false, true}) {
          const std::int64_t m = 144, n = 208, k = 336;
          PlanSketch sketch;
          const BufferId a = sketch.buffer("a", from, {m, k}), b = sketch.buffer("b", from, {n, k});
          std::vector<BufferId> inputs(4);
          for (int i = 0; i < 2; ++i) {
            const std::string name = i == 0 ? "a" : "b";
            const std::int64_t rows = i == 0 ? m : n;
            const DType format = i == 0 ? f.a : f.b;
            inputs[static_cast<std::size_t>(i)] = sketch.buffer(name + ".q", format, {rows, k});
            inputs[static_cast<std::size_t>(i + 2)] = sketch.buffer(name + ".scale", DType::f32, {1});
            const BufferId t = sketch.buffer(name + ".t", format, {k, rows});
            const BufferId largest =
                sketch.buffer(name + ".largest", DType::f32, {1024}, plan::Role::workspace);
            sketch.op(
                OpKind::quantize_fp8, {i == 0 ? a : b},
                {inputs[static_cast<std::size_t>(i)], t, inputs[static_cast<std::size_t>(i + 2)], largest});
          }
          const BufferId d = sketch.buffer("d", from, {m, n});
          const BufferId bias = sketch.buffer("bias", from, {n}, plan::Role::parameter);
          const bool biased = !accumulate && from == DType::bf16;
          if (biased) inputs.push_back(bias);
          if (accumulate) inputs.push_back(d);
          sketch.op(OpKind::gemm_fp8, inputs, {d},
                    {{"accumulate", accumulate},
                     {"epilogue", std::string(biased ? "bias" : "none")},
                     {"fast_accumulation", fast},
                     {"k", k},
                     {"m", m},
                     {"n", n}});
          DevicePair pair(sketch.finish());
          pair.run_and_compare(fast ? 1e-2 : tolerance_of(from) * (from == DType::f32 ? 20 : 1),
                               std::string(plan::dtype_name(f.a)) + " x " + plan::dtype_name(f.b) + " to " +
                                   plan::dtype_name(from) + (accumulate ? " accumulate" : "") +
                                   (fast ? " fast" : ""));
        }
      }
    }
  }
}

TEST(DeviceOps, QuantizeFp8) {
  CAPSTAN_NEED_DEVICE();
  for (const DType format : {DType::f8e4m3, DType::f8e5m2}) {
    for (const DType from : {DType::f32, DType::bf16}) {
      PlanSketch sketch;
      const BufferId x = sketch.buffer("x", from, {80, 208});
      const BufferId rows = sketch.buffer("rows", format, {80, 208});
      const BufferId columns = sketch.buffer("columns", format, {208, 80});
      const BufferId scale = sketch.buffer("scale", DType::f32, {1});
      const BufferId largest = sketch.buffer("largest", DType::f32, {1024}, plan::Role::workspace);
      sketch.op(OpKind::quantize_fp8, {x}, {rows, columns, scale, largest});
      DevicePair pair(sketch.finish());
      pair.run_and_compare(0.0, std::string(plan::dtype_name(from)) + " to " + plan::dtype_name(format));
    }
  }
}

TEST(DeviceOps, LinearCrossEntropy) {
  CAPSTAN_NEED_DEVICE();
  struct Case {
    std::int64_t vocab, columns, chunk;
  };
  // The last row of logits does not fit shared memory.
  for (const Case c : {Case{50, 56, 18}, Case{50, 56, 7}, Case{31, 31, 5}, Case{69990, 70000, 9}}) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      plan::Dims dims = PlanSketch::tiny_dims();
      dims.seq_length = 9;
      dims.vocab = c.vocab;
      dims.padded_vocab = c.columns;
      constexpr std::int64_t kHidden = 64;
      PlanSketch sketch(dims);
      const BufferId x = sketch.buffer("x", dtype, {18, kHidden});
      const BufferId weight = sketch.buffer("weight", dtype, {c.columns, kHidden});
      const BufferId dweight = sketch.buffer("dweight", dtype, {c.columns, kHidden});
      const BufferId dx = sketch.buffer("dx", dtype, {18, kHidden});
      const BufferId losses = sketch.buffer("losses", DType::f32, {18});
      const BufferId rows = sketch.buffer("rows", dtype, {c.chunk, c.columns}, plan::Role::workspace);
      sketch.op(OpKind::linear_cross_entropy, {x, weight, sketch.targets, dweight},
                {losses, dx, dweight, rows}, {{"chunk_rows", c.chunk}, {"scale", 0.125}, {"vocab", c.vocab}});
      DevicePair pair(sketch.finish());
      pair.fill_tokens(sketch.targets, static_cast<std::int32_t>(c.vocab));
      // bf16: the gradients of logits are rounded once more on the way.
      pair.run_and_compare(
          3 * tolerance_of(dtype),
          std::to_string(c.vocab) + " by " + std::to_string(c.chunk) + " " + plan::dtype_name(dtype));
    }
  }
}

TEST(DeviceOps, FusedGemm) {
  CAPSTAN_NEED_DEVICE();
  struct Case {
    std::int64_t m, n, k;
  };
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const Case c : {Case{16, 8, 24}, Case{130, 264, 520}, Case{256, 512, 64}}) {
      for (const int shape : {0, 1, 2, 3}) {
        const bool transpose_a = (shape & 1) != 0;
        const bool transpose_b = (shape & 2) != 0;
        PlanSketch sketch;
        const BufferId a = sketch.buffer(
            "a", dtype,
            transpose_a ? std::vector<std::int64_t>{c.k, c.m} : std::vector<std::int64_t>{c.m, c.k});
        const BufferId b = sketch.buffer(
            "b", dtype,
            transpose_b ? std::vector<std::int64_t>{c.n, c.k} : std::vector<std::int64_t>{c.k, c.n});
        const BufferId bias = sketch.buffer("bias", dtype, {c.n}, plan::Role::parameter);
        const BufferId other = sketch.buffer("other", dtype, {c.m, c.n});
        const std::vector<std::pair<std::string, plan::AttributeValue>> product = {
            {"k", c.k}, {"m", c.m}, {"n", c.n}, {"transpose_a", transpose_a}, {"transpose_b", transpose_b}};
        for (const bool biased : {false, true}) {
          auto attributes = product;
          attributes.insert(attributes.begin(), {"epilogue", std::string(biased ? "bias" : "none")});
          const BufferId d = sketch.buffer(biased ? "sum.biased" : "sum", dtype, {c.m, c.n});
          const std::vector<BufferId> inputs =
              biased ? std::vector<BufferId>{a, b, bias, other} : std::vector<BufferId>{a, b, other};
          sketch.op(OpKind::gemm_add, inputs, {d}, attributes);
        }
        if (dtype == DType::bf16) {
          const BufferId y = sketch.buffer("y", dtype, {c.m, c.n});
          const BufferId pre = sketch.buffer("pre", dtype, {c.m, c.n});
          const BufferId dx = sketch.buffer("dx", dtype, {c.m, c.n});
          sketch.op(OpKind::gemm_gelu, {a, b, bias}, {y, pre}, product);
          sketch.op(OpKind::gemm_gelu_backward, {a, b, other}, {dx}, product);
        }
        DevicePair pair(sketch.finish());
        pair.run_and_compare(tolerance_of(dtype), std::to_string(c.m) + "x" + std::to_string(c.n) + "x" +
                                                      std::to_string(c.k) + " shape " +
                                                      std::to_string(shape));
      }
    }
  }
}

struct AttentionCase {
  std::int64_t batch, length, heads, kv_heads, head_dim;
  double p;
  bool causal;
};

/// Probabilities are rounded to bf16 before they meet the values, so bf16 gets a wider bound than plain sums.
void compare_attention(const AttentionCase& c, DType dtype, const char* which) {
  plan::Dims dims = PlanSketch::tiny_dims();
  dims.micro_batch = c.batch;
  dims.seq_length = c.length;
  PlanSketch sketch(dims);
  const std::int64_t width = (c.heads + 2 * c.kv_heads) * c.head_dim;
  const std::int64_t count = c.batch * c.length;
  const BufferId qkv = sketch.buffer("qkv", dtype, {count, width});
  const BufferId out = sketch.buffer("out", dtype, {count, c.heads * c.head_dim});
  const BufferId lse = sketch.buffer("lse", DType::f32, {c.batch, c.heads, c.length});
  const BufferId dout = sketch.buffer("dout", dtype, {count, c.heads * c.head_dim});
  const BufferId dqkv = sketch.buffer("dqkv", dtype, {count, width});
  const BufferId delta =
      sketch.buffer("delta", DType::f32, {c.batch, c.heads, c.length}, plan::Role::workspace);
  const BufferId sums = sketch.buffer("sums", DType::f32, {count, width}, plan::Role::workspace);
  const std::vector<std::pair<std::string, plan::AttributeValue>> attributes = {
      {"batch", c.batch},
      {"causal", c.causal},
      {"head_dim", c.head_dim},
      {"heads", c.heads},
      {"kv_heads", c.kv_heads},
      {"p", c.p},
      {"rng_offset", std::int64_t{3}},
      {"scale", 1.0 / std::sqrt(static_cast<double>(c.head_dim))},
      {"seq_length", c.length}};
  sketch.op(OpKind::attention, {qkv, sketch.rng_counter}, {out, lse}, attributes);
  sketch.op(OpKind::attention_backward, {dout, qkv, out, lse, sketch.rng_counter}, {dqkv, delta, sums},
            attributes);
  DevicePair pair(sketch.finish());
  pair.fill_uniform(qkv, -2.0F, 2.0F);
  pair.set_one(sketch.rng_counter, std::uint64_t{41});
  pair.run_and_compare(dtype == DType::f32 ? 5e-5 : 1e-2,
                       std::string(which) + " b" + std::to_string(c.batch) + " s" + std::to_string(c.length) +
                           " h" + std::to_string(c.heads) + "/" + std::to_string(c.kv_heads) + " d" +
                           std::to_string(c.head_dim) + " p" + std::to_string(c.p) +
                           (c.causal ? " causal" : ""));
}

const AttentionCase kAttentionCases[] = {
    {2, 6, 2, 1, 4, 0.0, true},     {1, 33, 3, 3, 20, 0.2, true},  {2, 37, 4, 2, 32, 0.0, true},
    {1, 64, 2, 2, 64, 0.0, true},   {2, 130, 4, 4, 64, 0.0, true}, {1, 200, 4, 2, 128, 0.0, true},
    {1, 100, 2, 1, 96, 0.0, false}, {2, 132, 4, 2, 64, 0.1, true}, {1, 196, 2, 1, 128, 0.3, true},
    {1, 68, 3, 3, 32, 0.5, false},  {1, 70, 2, 1, 80, 0.0, true},  {1, 40, 2, 2, 160, 0.1, true},
    {1, 130, 2, 2, 64, 0.25, true}, {1, 257, 2, 1, 96, 0.0, true},
};

TEST(DeviceOps, AttentionOfF32) {
  CAPSTAN_NEED_DEVICE();
  for (const AttentionCase& c : kAttentionCases) compare_attention(c, DType::f32, "f32");
}

TEST(DeviceOps, AttentionOfBf16WithOwnKernels) {
  CAPSTAN_NEED_DEVICE();
  ::setenv("CAPSTAN_CUDNN", "off", 1);
  for (const AttentionCase& c : kAttentionCases) compare_attention(c, DType::bf16, "own");
  ::unsetenv("CAPSTAN_CUDNN");
}

TEST(DeviceOps, AttentionOfBf16WithCudnn) {
  CAPSTAN_NEED_DEVICE();
  std::string why;
  if (cuda::CudnnLibrary::open(why) == nullptr) GTEST_SKIP() << why;
  for (const AttentionCase& c : kAttentionCases) compare_attention(c, DType::bf16, "cudnn");
}

}  // namespace
}  // namespace capstan::runtime::testing
