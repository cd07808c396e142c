// Appends buffers and ops to a plan; ids are positions. Lowering and tests build plans with it. Offsets stay
// 0 until pass_place_buffers gives them.
#pragma once

#include <initializer_list>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "compiler/plan/plan.h"

namespace capstan::plan {

/// Where an op belongs; set once for a run of ops.
struct OpPlace {
  Phase phase = Phase::forward;
  Stage stage = Stage::micro_batch;
  std::string module;
  std::int32_t layer = -1;
  std::string key;
};

using Attributes = std::vector<std::pair<std::string, AttributeValue>>;

class PlanBuilder {
 public:
  explicit PlanBuilder(Plan& plan);

  /// Requires a name that is not taken and extents of at least 1.
  BufferId add_buffer(std::string name, DType dtype, std::vector<std::int64_t> shape, Role role,
                      Init init = {});
  /// Attributes may come in any order; the op holds them sorted.
  OpId add_op(OpKind kind, std::vector<BufferId> inputs, std::vector<BufferId> outputs,
              Attributes attributes = {});

  OpPlace place;  ///< of the ops that are added next
  Plan& plan() { return plan_; }
  const Buffer& buffer(BufferId id) const { return plan_.buffers[id]; }

 private:
  Plan& plan_;
  std::unordered_set<std::string> names_;
};

}  // namespace capstan::plan
