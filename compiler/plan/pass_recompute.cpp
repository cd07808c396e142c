#include <algorithm>
#include <unordered_map>

#include "compiler/plan/lifetimes.h"
#include "compiler/plan/passes.h"

namespace capstan::plan {
namespace {

bool is_norm(const Op& op) {
  return op.kind == OpKind::rms_norm || op.kind == OpKind::layer_norm;
}

/// The output of a layer's last forward op: input of the next layer, the checkpoint of full recompute.
bool ends_layer(const Plan& plan, const Op& op) {
  if (op.phase != Phase::forward || op.module != "mlp" || op.id + 1 >= plan.ops.size()) return false;
  const Op& next = plan.ops[op.id + 1];
  return next.layer != op.layer || next.module != "mlp" || next.phase != Phase::forward;
}

/// Marks the forward ops whose results are dropped after the forward pass.
std::vector<bool> choose_dropped(const Plan& plan, const RecomputeSpec& recompute) {
  std::vector<bool> dropped(plan.ops.size(), false);
  for (const Op& op : plan.ops) {
    if (op.phase != Phase::forward || op.layer < 0) continue;
    bool chosen = false;
    const auto recomputes = [&](std::string_view module) {
      return std::find(recompute.modules.begin(), recompute.modules.end(), module) != recompute.modules.end();
    };
    if (recompute.granularity == RecomputeSpec::Granularity::selective) {
      chosen = (recomputes("core_attn") && op.kind == OpKind::attention) ||
               (recomputes("layernorm") && is_norm(op)) ||
               (recomputes("mlp") && op.module == "mlp" && !is_norm(op) && !ends_layer(plan, op));
    } else if (recompute.method == RecomputeSpec::Method::block) {
      chosen = op.layer < recompute.num_layers && !ends_layer(plan, op);
    } else {
      // Units of num_layers layers; what leaves a unit is kept.
      const bool last_of_unit =
          (op.layer + 1) % recompute.num_layers == 0 || op.layer + 1 == plan.dims.layers;
      chosen = !(last_of_unit && ends_layer(plan, op));
    }
    dropped[op.id] = chosen;
  }
  return dropped;
}

/// Rebuilds the op list with clones of dropped ops in front of the first backward op that needs them.
class Recomputation {
 public:
  Recomputation(Plan& plan, std::vector<bool> dropped, std::string key)
      : plan_(plan), dropped_(std::move(dropped)), key_(std::move(key)), producers_(plan.buffers.size()) {
    for (const Op& op : plan.ops) {
      if (!dropped_[op.id]) continue;
      for (const BufferId id : op.outputs) producers_[id].push_back(op.id);
    }
  }

  void run() {
    const std::vector<Op> ops = std::move(plan_.ops);
    source_ = &ops;
    for (const Op& op : ops) {
      Op next = op;
      if (op.phase == Phase::backward) {
        for (BufferId& id : next.inputs) id = restored(id);
      }
      append(std::move(next));
    }
    plan_.ops = std::move(result_);
  }

 private:
  void append(Op op) {
    op.id = static_cast<OpId>(result_.size());
    result_.push_back(std::move(op));
  }

  /// The buffer that holds the contents of `id` for the backward pass, after clones of what makes it.
  BufferId restored(BufferId id) {
    if (id >= producers_.size() || producers_[id].empty()) return id;
    const auto known = stand_in_.find(id);
    if (known != stand_in_.end()) return known->second;
    // A buffer that is updated in place (rotated queries and keys) has several producers; all run again, in
    // order.
    for (const OpId producer : producers_[id]) clone((*source_)[producer]);
    return stand_in_.at(id);
  }

  void clone(const Op& original) {
    Op again = original;
    again.phase = Phase::recompute;
    again.key = key_;
    for (BufferId& input : again.inputs) {
      // An input that the same op updates was mapped when its first producer was cloned.
      const bool updated =
          std::find(original.outputs.begin(), original.outputs.end(), input) != original.outputs.end();
      input = updated && stand_in_.count(input) > 0 ? stand_in_.at(input) : restored(input);
    }
    for (BufferId& output : again.outputs) output = stand_in(output);
    append(std::move(again));
  }

  BufferId stand_in(BufferId id) {
    const auto known = stand_in_.find(id);
    if (known != stand_in_.end()) return known->second;
    Buffer copy = plan_.buffers[id];
    copy.id = static_cast<BufferId>(plan_.buffers.size());
    copy.name += ".again";
    plan_.buffers.push_back(copy);
    stand_in_.emplace(id, copy.id);
    return copy.id;
  }

  Plan& plan_;
  std::vector<bool> dropped_;
  std::string key_;
  std::vector<std::vector<OpId>> producers_;  // dropped ops that write a buffer, in order
  const std::vector<Op>* source_ = nullptr;
  std::vector<Op> result_;
  std::unordered_map<BufferId, BufferId> stand_in_;
};

}  // namespace

void pass_recompute(Plan& plan, const ModelSpec& spec, std::vector<Refusal>&) {
  const RecomputeSpec& recompute = spec.recompute;
  if (recompute.granularity == RecomputeSpec::Granularity::none) return;
  const char* key = recompute.granularity == RecomputeSpec::Granularity::full ? "model.recompute_granularity"
                                                                              : "model.recompute_modules";
  Recomputation(plan, choose_dropped(plan, recompute), key).run();
}

}  // namespace capstan::plan
