// A plan made by hand: one linear layer between an embedding and a head, trained with AdamW. For tests of
// what reads or executes plans; small enough to follow with a pencil, and every stage, role and segment mode
// occurs.
#pragma once

#include <cstdint>

#include "compiler/plan/plan.h"
#include "compiler/plan/plan_builder.h"

namespace capstan::plan {

/// Offsets without reuse: buffer after buffer, aligned.
inline void place_without_reuse(Plan& plan) {
  std::uint64_t offset = 0;
  for (Buffer& buffer : plan.buffers) {
    buffer.offset = offset;
    offset += (buffer.bytes() + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
  }
  plan.memory.arena = offset;
}

/// The op that begins each stage's segment is found by its stage; `captured` makes the micro-batch segment a
/// graph.
inline Plan make_tiny_plan(bool captured = true) {
  constexpr std::int64_t kSequence = 4, kBatch = 2, kMicroBatches = 2, kHidden = 8, kVocab = 16;
  constexpr std::int64_t kTokens = kSequence * kBatch;
  Plan plan;
  plan.producer = "capstan test";
  plan.config_name = "tiny.toml";
  plan.config_digest = "0000000000000000000000000000000000000000000000000000000000000000";
  plan.backend = "host";
  plan.dims = {1, kHidden, 1, 1, kHidden, kHidden, kVocab, kVocab, kSequence, kBatch, kMicroBatches};
  plan.schedule = {10, 3, captured ? "transformer_engine" : "none", 0, 1};
  plan.data = {"random", "", 7};
  plan.seed = 1234;

  PlanBuilder builder(plan);
  const Init zeros{Init::Kind::zeros, 0, 0};
  const BufferId batch = builder.add_buffer(names::kBatchTokens, DType::i32,
                                            {kMicroBatches, kBatch, kSequence + 1}, Role::input);
  const BufferId step = builder.add_buffer(names::kStep, DType::i64, {1}, Role::scalar, zeros);
  const BufferId index = builder.add_buffer(names::kMicroBatchIndex, DType::i64, {1}, Role::scalar, zeros);
  const BufferId counter = builder.add_buffer(names::kRngCounter, DType::u64, {1}, Role::scalar, zeros);
  const BufferId rate = builder.add_buffer(names::kLearningRate, DType::f32, {1}, Role::scalar, zeros);
  const BufferId loss = builder.add_buffer(names::kLoss, DType::f32, {1}, Role::scalar, zeros);
  const BufferId norm = builder.add_buffer(names::kGradNorm, DType::f32, {1}, Role::scalar, zeros);
  const BufferId nonfinite = builder.add_buffer(names::kNonfinite, DType::i32, {1}, Role::scalar, zeros);
  const BufferId tokens =
      builder.add_buffer(names::kTokens, DType::i32, {kBatch, kSequence}, Role::activation);
  const BufferId targets =
      builder.add_buffer(names::kTargets, DType::i32, {kBatch, kSequence}, Role::activation);

  struct Parameter {
    BufferId weight, gradient, moment1, moment2;
  };
  std::uint64_t stream = 0;
  const auto add_parameter = [&](const std::string& name) {
    const std::vector<std::int64_t> shape = name == "linear.weight"
                                                ? std::vector<std::int64_t>{kHidden, kHidden}
                                                : std::vector<std::int64_t>{kVocab, kHidden};
    Parameter parameter;
    parameter.weight =
        builder.add_buffer(name, DType::f32, shape, Role::parameter, {Init::Kind::normal, 0.5, stream++});
    parameter.gradient = builder.add_buffer(name + ".grad", DType::f32, shape, Role::gradient, zeros);
    parameter.moment1 = builder.add_buffer(name + ".moment1", DType::f32, shape, Role::moment1, zeros);
    parameter.moment2 = builder.add_buffer(name + ".moment2", DType::f32, shape, Role::moment2, zeros);
    return parameter;
  };
  const Parameter table = add_parameter("embedding.word.weight");
  const Parameter linear = add_parameter("linear.weight");
  const Parameter head = add_parameter("head.weight");

  const auto add_activation = [&](const std::string& name, std::int64_t columns) {
    return builder.add_buffer(name, DType::f32, {kTokens, columns}, Role::activation);
  };
  const BufferId embedded = add_activation("embedded", kHidden);
  const BufferId mixed = add_activation("mixed", kHidden);
  const BufferId dropped = add_activation("dropped", kHidden);
  const BufferId logits = add_activation("logits", kVocab);
  const BufferId losses = builder.add_buffer("losses", DType::f32, {kTokens}, Role::activation);
  const BufferId lse = builder.add_buffer("lse", DType::f32, {kTokens}, Role::activation);
  const BufferId dlogits = add_activation("logits.grad", kVocab);
  const BufferId ddropped = add_activation("dropped.grad", kHidden);
  const BufferId dmixed = add_activation("mixed.grad", kHidden);
  const BufferId dembedded = add_activation("embedded.grad", kHidden);
  const BufferId partial = builder.add_buffer("grad_norm.partial", DType::f32, {1024}, Role::workspace);
  const BufferId order =
      builder.add_buffer("embedding.word.order", DType::i32, {4 * kTokens + 2 * kVocab + 2}, Role::workspace);

  const auto gemm = [&](BufferId a, BufferId b, BufferId d, std::int64_t m, std::int64_t n, std::int64_t k,
                        bool transpose_a, bool transpose_b, bool accumulate) {
    std::vector<BufferId> inputs = {a, b};
    if (accumulate) inputs.push_back(d);
    builder.add_op(OpKind::gemm, inputs, {d},
                   {{"m", m},
                    {"n", n},
                    {"k", k},
                    {"transpose_a", transpose_a},
                    {"transpose_b", transpose_b},
                    {"accumulate", accumulate},
                    {"epilogue", std::string("none")}});
  };
  const double scale = 1.0 / static_cast<double>(kTokens * kMicroBatches);
  constexpr double kDropout = 0.25;

  builder.place = {Phase::bookkeeping, Stage::step_begin, "step", -1, ""};
  builder.add_op(OpKind::zero, {}, {table.gradient, linear.gradient, head.gradient, loss, nonfinite});

  builder.place = {Phase::forward, Stage::micro_batch, "embedding", -1, ""};
  builder.add_op(OpKind::load_micro_batch, {batch, index}, {tokens, targets});
  builder.add_op(OpKind::embedding, {tokens, table.weight}, {embedded});
  builder.place = {Phase::forward, Stage::micro_batch, "mlp", 0, ""};
  gemm(embedded, linear.weight, mixed, kTokens, kHidden, kHidden, false, true, false);
  builder.add_op(OpKind::dropout, {mixed, counter}, {dropped},
                 {{"p", kDropout}, {"rng_offset", std::int64_t{0}}});
  builder.place = {Phase::forward, Stage::micro_batch, "head", -1, ""};
  gemm(dropped, head.weight, logits, kTokens, kVocab, kHidden, false, true, false);
  builder.add_op(OpKind::cross_entropy, {logits, targets}, {losses, lse}, {{"vocab", kVocab}});
  builder.add_op(OpKind::accumulate_loss, {losses, loss, nonfinite}, {loss, nonfinite}, {{"scale", scale}});

  builder.place.phase = Phase::backward;
  builder.add_op(OpKind::cross_entropy_backward, {logits, targets, lse}, {dlogits},
                 {{"vocab", kVocab}, {"scale", scale}});
  gemm(dlogits, dropped, head.gradient, kVocab, kHidden, kTokens, true, false, true);
  gemm(dlogits, head.weight, ddropped, kTokens, kHidden, kVocab, false, false, false);
  builder.place = {Phase::backward, Stage::micro_batch, "mlp", 0, ""};
  builder.add_op(OpKind::dropout_backward, {ddropped, counter}, {dmixed},
                 {{"p", kDropout}, {"rng_offset", std::int64_t{0}}});
  gemm(dmixed, embedded, linear.gradient, kHidden, kHidden, kTokens, true, false, true);
  gemm(dmixed, linear.weight, dembedded, kTokens, kHidden, kHidden, false, false, false);
  builder.place = {Phase::backward, Stage::micro_batch, "embedding", -1, ""};
  builder.add_op(OpKind::embedding_backward, {dembedded, tokens, table.gradient}, {table.gradient, order});
  builder.place = {Phase::bookkeeping, Stage::micro_batch, "step", -1, ""};
  builder.add_op(OpKind::advance_micro_batch, {index, counter}, {index, counter});

  builder.place = {Phase::optimizer, Stage::step_end, "optimizer", -1, ""};
  builder.add_op(OpKind::grad_norm, {table.gradient, linear.gradient, head.gradient, nonfinite},
                 {norm, nonfinite, partial});
  builder.add_op(OpKind::learning_rate, {step}, {rate},
                 {{"style", std::string("constant")},
                  {"max_lr", 0.01},
                  {"min_lr", 0.0},
                  {"init_lr", 0.0},
                  {"warmup_steps", 0.0},
                  {"decay_steps", 10.0},
                  {"unit", 0.25}});
  std::vector<BufferId> inputs = {rate, step, norm, nonfinite}, outputs;
  for (const Parameter& p : {table, linear, head}) {
    inputs.insert(inputs.end(), {p.weight, p.gradient, p.moment1, p.moment2});
    outputs.insert(outputs.end(), {p.weight, p.moment1, p.moment2});
  }
  builder.add_op(OpKind::adamw, inputs, outputs,
                 {{"beta1", 0.9},
                  {"beta2", 0.95},
                  {"eps", 1e-8},
                  {"weight_decay", 0.1},
                  {"clip_grad", 1.0},
                  {"has_master", false}});
  builder.place = {Phase::bookkeeping, Stage::step_end, "step", -1, ""};
  builder.add_op(OpKind::advance_step, {step, index}, {step, index});

  const auto add_segment = [&](SegmentMode mode, std::string scope, Stage stage) {
    Segment segment;
    segment.id = static_cast<std::uint32_t>(plan.segments.size());
    segment.mode = mode;
    segment.scope = std::move(scope);
    segment.reason = mode == SegmentMode::graph ? "made by hand" : "";
    segment.first_op = plan.segments.empty() ? 0 : plan.segments.back().end_op;
    segment.end_op = segment.first_op;
    while (segment.end_op < plan.ops.size() && plan.ops[segment.end_op].stage == stage) ++segment.end_op;
    segment.phase = plan.ops[segment.first_op].phase;
    plan.segments.push_back(segment);
  };
  add_segment(SegmentMode::eager, "", Stage::step_begin);
  add_segment(captured ? SegmentMode::graph : SegmentMode::eager, captured ? "layer" : "",
              Stage::micro_batch);
  add_segment(SegmentMode::eager, "", Stage::step_end);

  plan.checks = {{"nonfinite_loss", nonfinite, "rerun_state_machine.check_for_nan_in_loss", true}};
  plan.teardown = {"graphs", "libraries", "streams", "arena"};
  place_without_reuse(plan);
  plan.model_flops_per_step = 6.0 * kMicroBatches * kTokens * (kHidden * kHidden + kHidden * kVocab);
  return plan;
}

}  // namespace capstan::plan
