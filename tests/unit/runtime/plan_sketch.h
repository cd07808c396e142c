// Small plans written by hand, for tests of the runtime: buffers one after the other in the arena, the
// scalars that every plan has, one eager segment per stage.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "compiler/plan/plan.h"

namespace capstan::runtime::testing {

using plan::BufferId;
using plan::DType;
using plan::OpId;
using plan::OpKind;

class PlanSketch {
 public:
  explicit PlanSketch(plan::Dims dims = tiny_dims()) {
    plan_.producer = "test";
    plan_.config_name = "sketch.toml";
    plan_.config_digest = std::string(64, 'c');
    plan_.dims = dims;
    plan_.seed = 1234567890123ull;
    plan_.data = {"random", "", 7};
    plan_.schedule.train_steps = 4;
    plan_.teardown = {"graphs", "libraries", "streams", "arena"};
    namespace names = plan::names;
    using enum plan::Role;
    batch = buffer(names::kBatchTokens, DType::i32,
                   {dims.micro_batches, dims.micro_batch, dims.seq_length + 1}, input);
    tokens = buffer(names::kTokens, DType::i32, {dims.micro_batch, dims.seq_length}, plan::Role::activation);
    targets =
        buffer(names::kTargets, DType::i32, {dims.micro_batch, dims.seq_length}, plan::Role::activation);
    step = buffer(names::kStep, DType::i64, {1}, scalar);
    micro_batch_index = buffer(names::kMicroBatchIndex, DType::i64, {1}, scalar);
    rng_counter = buffer(names::kRngCounter, DType::u64, {1}, scalar);
    rate = buffer(names::kLearningRate, DType::f32, {1}, scalar);
    loss = buffer(names::kLoss, DType::f32, {1}, scalar);
    norm = buffer(names::kGradNorm, DType::f32, {1}, scalar);
    nonfinite = buffer(names::kNonfinite, DType::i32, {1}, scalar);
  }

  static plan::Dims tiny_dims() {
    plan::Dims dims;
    dims.layers = 1;
    dims.hidden = 8;
    dims.heads = 2;
    dims.kv_heads = 1;
    dims.head_dim = 4;
    dims.ffn_hidden = 12;
    dims.vocab = 11;
    dims.padded_vocab = 16;
    dims.seq_length = 6;
    dims.micro_batch = 2;
    dims.micro_batches = 2;
    return dims;
  }

  BufferId buffer(std::string name, DType dtype, std::vector<std::int64_t> shape,
                  plan::Role role = plan::Role::activation, plan::Init init = {}) {
    plan::Buffer made;
    made.id = static_cast<BufferId>(plan_.buffers.size());
    made.name = std::move(name);
    made.dtype = dtype;
    made.shape = std::move(shape);
    made.role = role;
    made.init = init;
    made.offset = arena_;
    arena_ += (made.bytes() + plan::kBufferAlignment - 1) / plan::kBufferAlignment * plan::kBufferAlignment;
    plan_.buffers.push_back(std::move(made));
    return plan_.buffers.back().id;
  }

  OpId op(OpKind kind, std::vector<BufferId> inputs, std::vector<BufferId> outputs,
          std::vector<std::pair<std::string, plan::AttributeValue>> attributes = {},
          plan::Stage stage = plan::Stage::micro_batch) {
    plan::Op made;
    made.id = static_cast<OpId>(plan_.ops.size());
    made.kind = kind;
    made.stage = stage;
    made.inputs = std::move(inputs);
    made.outputs = std::move(outputs);
    made.attributes = std::move(attributes);
    made.module = "test";
    plan_.ops.push_back(std::move(made));
    return plan_.ops.back().id;
  }

  /// The plan with its segments: one of `mode` per stage.
  plan::Plan finish(plan::SegmentMode mode = plan::SegmentMode::eager) {
    plan_.memory.arena = arena_;
    plan_.segments.clear();
    for (OpId first = 0; first < plan_.ops.size();) {
      OpId end = first;
      while (end < plan_.ops.size() && plan_.ops[end].stage == plan_.ops[first].stage) ++end;
      plan::Segment segment;
      segment.id = static_cast<std::uint32_t>(plan_.segments.size());
      segment.mode = mode;
      segment.first_op = first;
      segment.end_op = end;
      plan_.segments.push_back(segment);
      first = end;
    }
    return plan_;
  }

  plan::Plan& plan() { return plan_; }

  BufferId batch, tokens, targets, step, micro_batch_index, rng_counter, rate, loss, norm, nonfinite;

 private:
  plan::Plan plan_;
  std::uint64_t arena_ = 0;
};

}  // namespace capstan::runtime::testing
