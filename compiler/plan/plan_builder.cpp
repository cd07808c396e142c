#include "compiler/plan/plan_builder.h"

#include <algorithm>
#include <stdexcept>

namespace capstan::plan {

PlanBuilder::PlanBuilder(Plan& plan) : plan_(plan) {
  for (const Buffer& buffer : plan.buffers) names_.insert(buffer.name);
}

BufferId PlanBuilder::add_buffer(std::string name, DType dtype, std::vector<std::int64_t> shape, Role role,
                                 Init init) {
  if (!names_.insert(name).second) throw std::logic_error("two buffers of the plan are called " + name);
  Buffer buffer;
  buffer.id = static_cast<BufferId>(plan_.buffers.size());
  buffer.name = std::move(name);
  buffer.dtype = dtype;
  buffer.shape = std::move(shape);
  buffer.role = role;
  buffer.init = init;
  plan_.buffers.push_back(std::move(buffer));
  return plan_.buffers.back().id;
}

OpId PlanBuilder::add_op(OpKind kind, std::vector<BufferId> inputs, std::vector<BufferId> outputs,
                         Attributes attributes) {
  Op op;
  op.id = static_cast<OpId>(plan_.ops.size());
  op.kind = kind;
  op.phase = place.phase;
  op.stage = place.stage;
  op.inputs = std::move(inputs);
  op.outputs = std::move(outputs);
  op.attributes = std::move(attributes);
  std::sort(op.attributes.begin(), op.attributes.end(),
            [](const auto& left, const auto& right) { return left.first < right.first; });
  op.module = place.module;
  op.layer = place.layer;
  op.key = place.key;
  plan_.ops.push_back(std::move(op));
  return plan_.ops.back().id;
}

}  // namespace capstan::plan
