#include "compiler/plan/lifetimes.h"

namespace capstan::plan {

bool is_persistent(Role role) {
  return role != Role::activation && role != Role::workspace;
}

std::vector<Lifetime> find_lifetimes(const Plan& plan) {
  std::vector<Lifetime> lifetimes(plan.buffers.size());
  const auto extend = [&](BufferId id, OpId at) {
    Lifetime& lifetime = lifetimes[id];
    if (!lifetime.used()) lifetime.first = at;
    lifetime.last = at;
  };
  for (const Op& op : plan.ops) {
    for (const BufferId id : op.inputs) extend(id, op.id);
    for (const BufferId id : op.outputs) extend(id, op.id);
  }
  for (const Buffer& buffer : plan.buffers) {
    if (!is_persistent(buffer.role) || plan.ops.empty()) continue;
    lifetimes[buffer.id] = {0, static_cast<OpId>(plan.ops.size() - 1)};
  }
  return lifetimes;
}

}  // namespace capstan::plan
