#include <algorithm>
#include <string>

#include "compiler/plan/op_rules.h"
#include "compiler/plan/passes.h"

namespace capstan::plan {
namespace {

bool is_backward(const Op& op) {
  return op.phase == Phase::backward || op.phase == Phase::recompute;
}

std::string in_backticks(const std::string& text) {
  return "`" + text + "`";
}

/// What an op belongs to for capture: ops with equal labels in a row are one segment.
struct Label {
  bool captured = false;
  std::string scope;
  Stage stage = Stage::micro_batch;
  std::int32_t layer = -1;
  bool backward = false;
  friend bool operator==(const Label&, const Label&) = default;
};

class Partition {
 public:
  Partition(Plan& plan, const ModelSpec& spec, std::vector<Refusal>& refusals)
      : plan_(plan), spec_(spec), capture_(spec.capture), refusals_(refusals) {}

  void run() {
    plan_.segments.clear();
    if (capture_.extent == CaptureSpec::Extent::scoped) check_scoped();
    if (capture_.extent == CaptureSpec::Extent::iteration) {
      check_ops(0, step_end_op(), "full_iteration");
      check_launches();
    }
    if (capture_.optimizer) check_ops(step_end_op(), op_count(), "optimizer");
    if (!refusals_.empty() && !capture_.fall_back_to_eager) return;
    if (!refusals_.empty()) {
      // Asked for: run eagerly, and say in the plan what stood in the way.
      eager_reason_ = "not captured: " + refusals_.front().message;
      refusals_.clear();
      capture_.extent = CaptureSpec::Extent::none;
      capture_.optimizer = false;
    }
    if (capture_.extent == CaptureSpec::Extent::iteration) return partition_iteration();
    partition_scopes();
  }

 private:
  OpId op_count() const { return static_cast<OpId>(plan_.ops.size()); }
  OpId step_end_op() const {
    const auto found = std::find_if(plan_.ops.begin(), plan_.ops.end(),
                                    [](const Op& op) { return op.stage == Stage::step_end; });
    return static_cast<OpId>(found - plan_.ops.begin());
  }

  bool takes(const std::string& module) const {
    return capture_.modules.empty() ||
           std::find(capture_.modules.begin(), capture_.modules.end(), module) != capture_.modules.end();
  }

  std::string scope_of(const Op& op) const {
    if (op.layer < 0 || !takes(op.module)) return {};
    // Both halves of a dense layer follow each other, so they are one graph, as in the framework.
    return takes("attn") && takes("mlp") ? "layer" : op.module;
  }

  void check_scoped() {
    for (const std::string& module : capture_.modules) {
      const bool present = std::any_of(plan_.ops.begin(), plan_.ops.end(),
                                       [&](const Op& op) { return op.layer >= 0 && op.module == module; });
      if (present) continue;
      refusals_.push_back({capture_.modules_key,
                           "no op of the model belongs to the capture scope " + in_backticks(module),
                           "capture `attn`, `mlp` or both; the model has dense layers only"});
    }
    if (spec_.recompute.granularity == RecomputeSpec::Granularity::full) {
      refusals_.push_back(
          {"model.recompute_granularity",
           "full recompute repeats whole layers between the captured parts of the backward pass",
           "use selective recompute, no graphs, or capture the full iteration"});
    }
    for (const Op& op : plan_.ops) {
      if (op.stage == Stage::micro_batch && !scope_of(op).empty()) check_ops(op.id, op.id + 1, scope_of(op));
      if (!refusals_.empty()) return;
    }
    std::int64_t segments = 1;
    for (OpId id = 1; id < op_count(); ++id)
      segments += label_of(plan_.ops[id]) != label_of(plan_.ops[id - 1]);
    refuse_size(segments, "segments", kMostIssuesOfAStep, "a step can issue");
  }

  void check_launches() {
    const auto repeated = std::count_if(plan_.ops.begin(), plan_.ops.end(),
                                        [](const Op& op) { return op.stage == Stage::micro_batch; });
    refuse_size(repeated, "ops", kMostLaunchesOfAGraph, "one graph can hold");
  }

  void refuse_size(std::int64_t each, const char* what, std::int64_t most, const char* whose) {
    const std::int64_t micro_batches = plan_.dims.micro_batches;
    if (each <= most / micro_batches) return;
    refusals_.push_back(
        {capture_.impl_key,
         std::to_string(micro_batches) + " micro-batches of " + std::to_string(each) + " " + what +
             " each are more than " + whose + " (" + std::to_string(most) + " in all)",
         "raise `train.micro_batch_size`, lower `train.global_batch_size`, or capture nothing"});
  }

  /// What a capture would freeze or forbid. Ops read only device values, so random state is the one thing
  /// left.
  void check_ops(OpId first, OpId end, const std::string& scope) {
    if (capture_.rng_tracker) return;
    for (OpId id = first; id < end; ++id) {
      const Op& op = plan_.ops[id];
      if (!draws_random_numbers(op)) continue;
      std::string where = in_backticks(op_kind_name(op.kind)) + " of " + op.module;
      if (op.layer >= 0) where += " in layer " + std::to_string(op.layer);
      refusals_.push_back({"model.use_te_rng_tracker",
                           "the capture scope " + in_backticks(scope) + " holds " + where +
                               ", whose random state lives on the host and would be frozen into the graph",
                           "set `model.use_te_rng_tracker = true` and `rng.te_rng_tracker = true`"});
      return;
    }
  }

  Segment& add_segment(OpId first, OpId end, SegmentMode mode, std::string scope, std::string reason) {
    Segment segment;
    segment.id = static_cast<std::uint32_t>(plan_.segments.size());
    segment.mode = mode;
    segment.scope = std::move(scope);
    segment.reason = std::move(reason);
    segment.first_op = first;
    segment.end_op = end;
    segment.phase = plan_.ops[first].phase;
    plan_.segments.push_back(std::move(segment));
    return plan_.segments.back();
  }

  void partition_iteration() {
    const OpId end = capture_.optimizer ? op_count() : step_end_op();
    std::string reason =
        in_backticks(capture_.impl_key) + " captures forward and backward of all micro-batches";
    if (capture_.optimizer)
      reason += ", " + in_backticks(capture_.optimizer_key) + " the optimizer with them";
    Segment& iteration = add_segment(0, end, SegmentMode::graph, "full_iteration", reason);
    iteration.whole_iteration = true;
    iteration.phase = Phase::forward;
    if (end == op_count()) return;
    add_segment(end, op_count(), SegmentMode::eager, "",
                "the optimizer is captured only when `optimizer.optimizer_cuda_graph` asks for it");
  }

  Label label_of(const Op& op) const {
    Label label;
    label.stage = op.stage;
    if (op.stage == Stage::step_end && capture_.optimizer) {
      label.captured = true;
      label.scope = "optimizer";
    } else if (op.stage == Stage::micro_batch && capture_.extent == CaptureSpec::Extent::scoped) {
      label.scope = scope_of(op);
      label.captured = !label.scope.empty();
      if (label.captured) {
        label.layer = op.layer;
        label.backward = is_backward(op);
      }
    }
    return label;
  }

  std::string reason_of(const Label& label) const {
    if (label.captured && label.scope == "optimizer")
      return in_backticks(capture_.optimizer_key) + " captures the optimizer";
    if (label.captured) {
      if (capture_.modules.empty())
        return in_backticks(capture_.impl_key) + " without modules captures whole layers";
      return in_backticks(capture_.modules_key) + " has " +
             (label.scope == "layer" ? "`attn` and `mlp`, the whole of a dense layer"
                                     : in_backticks(label.scope));
    }
    if (!eager_reason_.empty()) return eager_reason_;
    if (capture_.extent == CaptureSpec::Extent::scoped && label.stage == Stage::micro_batch) {
      return "outside the modules of " + in_backticks(capture_.modules_key);
    }
    return "no capture scope asks for it";
  }

  void partition_scopes() {
    OpId first = 0;
    while (first < op_count()) {
      const Label label = label_of(plan_.ops[first]);
      OpId end = first + 1;
      while (end < op_count() && label_of(plan_.ops[end]) == label) ++end;
      Segment& segment = add_segment(first, end, label.captured ? SegmentMode::graph : SegmentMode::eager,
                                     label.scope, reason_of(label));
      segment.layer = label.layer;
      if (label.backward) segment.phase = Phase::backward;
      first = end;
    }
  }

  Plan& plan_;
  const ModelSpec& spec_;
  CaptureSpec capture_;
  std::vector<Refusal>& refusals_;
  std::string eager_reason_;
};

}  // namespace

void pass_partition_segments(Plan& plan, const ModelSpec& spec, std::vector<Refusal>& refusals) {
  Partition(plan, spec, refusals).run();
}

}  // namespace capstan::plan
