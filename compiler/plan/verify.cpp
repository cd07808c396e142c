#include "compiler/plan/verify.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <unordered_set>
#include <vector>

#include "compiler/plan/lifetimes.h"
#include "compiler/plan/op_rules.h"

namespace capstan::plan {
namespace {

std::string describe(const Op& op) {
  std::string text = "op " + std::to_string(op.id) + " (" + op_kind_name(op.kind) + " of " + op.module;
  if (op.layer >= 0) text += ", layer " + std::to_string(op.layer);
  return text + ")";
}

std::string find_structure_problem(const Plan& plan) {
  std::unordered_set<std::string_view> taken;
  for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
    const Buffer& buffer = plan.buffers[i];
    if (buffer.id != i) return "buffer `" + buffer.name + "` has an id that is not its position";
    if (!taken.insert(buffer.name).second) return "two buffers are called `" + buffer.name + "`";
    // Products of extents must stay far below the arena's range, whatever the order of multiplication.
    std::int64_t left = std::int64_t{1} << 50;
    for (const std::int64_t extent : buffer.shape) {
      if (extent < 1 || extent > left) return "buffer `" + buffer.name + "` has an extent out of range";
      left /= extent;
    }
  }
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    const Op& op = plan.ops[i];
    if (op.id != i) return describe(op) + " has an id that is not its position";
    for (const std::vector<BufferId>* operands : {&op.inputs, &op.outputs}) {
      for (const BufferId id : *operands) {
        if (id >= plan.buffers.size()) return describe(op) + " names a buffer that does not exist";
      }
    }
    if (op.layer < -1 || op.layer >= plan.dims.layers)
      return describe(op) + " belongs to a layer that does not exist";
    const std::string problem = find_operand_problem(plan, op);
    if (!problem.empty()) return describe(op) + ": " + problem;
    if (i > 0 && op.stage < plan.ops[i - 1].stage) return describe(op) + " belongs to an earlier stage";
  }
  return {};
}

std::string find_flow_problem(const Plan& plan) {
  constexpr int kNever = -1;
  std::vector<int> written_in(plan.buffers.size(), kNever);  // stage, of activations and workspaces
  std::vector<OpId> workspace_op(plan.buffers.size(), static_cast<OpId>(plan.ops.size()));
  for (const Op& op : plan.ops) {
    const int stage = static_cast<int>(op.stage);
    for (const BufferId id : op.inputs) {
      const Buffer& buffer = plan.buffers[id];
      if (is_persistent(buffer.role)) continue;
      if (buffer.role == Role::workspace) return describe(op) + " reads the workspace `" + buffer.name + "`";
      if (written_in[id] == kNever) return describe(op) + " reads `" + buffer.name + "` before it is written";
      if (written_in[id] != stage) return describe(op) + " reads `" + buffer.name + "` of another stage";
    }
    for (const BufferId id : op.outputs) {
      const Buffer& buffer = plan.buffers[id];
      if (is_persistent(buffer.role)) continue;
      if (written_in[id] != kNever && written_in[id] != stage) {
        return describe(op) + " writes `" + buffer.name + "` of another stage";
      }
      written_in[id] = stage;
      if (buffer.role != Role::workspace) continue;
      if (workspace_op[id] != plan.ops.size()) return "workspace `" + buffer.name + "` belongs to two ops";
      workspace_op[id] = op.id;
    }
  }
  return {};
}

/// Everything that decides what an op computes from the same inputs, as text.
std::string site_of(const Op& op) {
  std::string site = std::string(op_kind_name(op.kind)) + "/" + op.module + "/" + std::to_string(op.layer);
  for (const auto& [name, value] : op.attributes) {
    site += "/" + name + "=";
    if (const bool* b = std::get_if<bool>(&value)) site += *b ? "1" : "0";
    if (const std::int64_t* i = std::get_if<std::int64_t>(&value)) site += std::to_string(*i);
    if (const double* d = std::get_if<double>(&value)) site += std::to_string(*d);
    if (const std::string* s = std::get_if<std::string>(&value)) site += *s;
  }
  return site;
}

std::string find_random_problem(const Plan& plan) {
  std::map<std::int64_t, const Op*> sites;
  for (const Op& op : plan.ops) {
    if (!draws_random_numbers(op) || op.phase != Phase::forward) continue;
    if (!sites.emplace(op.integer("rng_offset"), &op).second) {
      return describe(op) + " draws the same random numbers as another forward op";
    }
  }
  for (const Op& op : plan.ops) {
    if (!draws_random_numbers(op) || op.phase == Phase::forward) continue;
    const auto site = sites.find(op.integer("rng_offset"));
    if (site == sites.end() || site->second->floating("p") != op.floating("p") ||
        site->second->layer != op.layer) {
      return describe(op) + " draws random numbers that no forward op of its layer drew";
    }
    if (op.phase == Phase::recompute && site->second->kind != op.kind) {
      return describe(op) + " repeats an op of another kind";
    }
  }
  return {};
}

std::string find_recompute_problem(const Plan& plan) {
  if (std::none_of(plan.ops.begin(), plan.ops.end(),
                   [](const Op& op) { return op.phase == Phase::recompute; }))
    return {};
  // Positions of the writes of each buffer, ascending.
  std::vector<std::vector<OpId>> writes(plan.buffers.size());
  for (const Op& op : plan.ops) {
    for (const BufferId id : op.outputs) writes[id].push_back(op.id);
  }
  std::map<std::string, std::vector<const Op*>> originals;
  for (const Op& op : plan.ops) {
    if (op.phase == Phase::forward && op.stage == Stage::micro_batch) originals[site_of(op)].push_back(&op);
  }
  for (const Op& op : plan.ops) {
    if (op.phase != Phase::recompute) continue;
    // Several ops of one module may look alike (two matrix products of the same size): one of them must fit.
    const auto candidates = originals.find(site_of(op));
    if (candidates == originals.end()) return describe(op) + " repeats nothing";
    const auto reads_the_same = [&](const Op* original) {
      for (std::size_t i = 0; i < op.inputs.size(); ++i) {
        const BufferId id = op.inputs[i];
        if (original->inputs[i] != id) {
          // A recomputed stand-in of what the original read; it has the same shape by the op table.
          const OpId first = writes[id].empty() ? 0 : writes[id].front();
          if (writes[id].empty() || plan.ops[first].phase != Phase::recompute) return false;
          continue;
        }
        const auto next = std::upper_bound(writes[id].begin(), writes[id].end(), original->id);
        if (next != writes[id].end() && *next < op.id) return false;
      }
      return true;
    };
    if (std::none_of(candidates->second.begin(), candidates->second.end(), reads_the_same)) {
      return describe(op) + " reads what no longer holds what its original read";
    }
  }
  return {};
}

std::string find_segment_problem(const Plan& plan) {
  OpId next = 0;
  for (std::size_t i = 0; i < plan.segments.size(); ++i) {
    const Segment& segment = plan.segments[i];
    const std::string name = "segment " + std::to_string(i);
    if (segment.id != i) return name + " has an id that is not its position";
    if (segment.first_op != next || segment.end_op <= segment.first_op || segment.end_op > plan.ops.size()) {
      return name + " does not continue where the one before ended";
    }
    next = segment.end_op;
    const Op& first = plan.ops[segment.first_op];
    if (!segment.whole_iteration && plan.ops[segment.end_op - 1].stage != first.stage) {
      return name + " spans stages";
    }
    if (segment.whole_iteration) {
      const bool cuts_before = segment.first_op > 0 &&
                               plan.ops[segment.first_op - 1].stage == Stage::micro_batch &&
                               first.stage == Stage::micro_batch;
      const bool cuts_after = segment.end_op < plan.ops.size() &&
                              plan.ops[segment.end_op].stage == Stage::micro_batch &&
                              plan.ops[segment.end_op - 1].stage == Stage::micro_batch;
      if (cuts_before || cuts_after) return name + " holds a part of the micro-batch only";
    }
    if (segment.mode == SegmentMode::graph && (segment.scope.empty() || segment.reason.empty())) {
      return name + " is captured without scope or reason";
    }
    const auto ops_begin = plan.ops.begin() + segment.first_op, ops_end = plan.ops.begin() + segment.end_op;
    if (std::none_of(ops_begin, ops_end, [&](const Op& op) { return op.phase == segment.phase; })) {
      return name + " has a phase that none of its ops has";
    }
  }
  if (next != plan.ops.size()) return "the segments end before the ops do";
  return {};
}

/// Whether two overlapping buffers are an in-place pair: `later` is born at an op that may put it where
/// `earlier` ends.
bool is_in_place_pair(const Plan& plan, const std::vector<Lifetime>& lifetimes, BufferId earlier,
                      BufferId later) {
  const Buffer& from = plan.buffers[earlier];
  const Buffer& to = plan.buffers[later];
  if (from.offset != to.offset || lifetimes[earlier].last != lifetimes[later].first) return false;
  const Op& op = plan.ops[lifetimes[later].first];
  for (std::size_t output = 0; output < op.outputs.size(); ++output) {
    if (op.outputs[output] != later) continue;
    for (std::size_t input = 0; input < op.inputs.size(); ++input) {
      if (op.inputs[input] == earlier && may_share(op, input, output)) return true;
    }
  }
  return false;
}

std::string find_placement_problem(const Plan& plan) {
  const std::vector<Lifetime> lifetimes = find_lifetimes(plan);
  // Sweep over op positions with the set of live ranges ordered by offset; neighbours are enough, because the
  // set itself holds no overlap but in-place pairs, which end at the op that is looked at.
  std::vector<std::vector<BufferId>> births(plan.ops.size()), deaths(plan.ops.size());
  for (const Buffer& buffer : plan.buffers) {
    if (buffer.offset % kBufferAlignment != 0) return "buffer `" + buffer.name + "` is not aligned";
    if (buffer.bytes() > plan.memory.arena || buffer.offset > plan.memory.arena - buffer.bytes()) {
      return "buffer `" + buffer.name + "` ends outside the arena";
    }
    if (!lifetimes[buffer.id].used()) continue;
    births[lifetimes[buffer.id].first].push_back(buffer.id);
    deaths[lifetimes[buffer.id].last].push_back(buffer.id);
  }
  std::set<std::pair<std::uint64_t, BufferId>> live;
  for (OpId at = 0; at < plan.ops.size(); ++at) {
    // In-place inputs end here: they leave the ordered set before their successors enter, and are compared
    // one by one.
    std::vector<BufferId> ending;
    for (const BufferId id : deaths[at]) {
      if (lifetimes[id].first == at) continue;
      live.erase({plan.buffers[id].offset, id});
      ending.push_back(id);
    }
    for (const BufferId id : births[at]) {
      const Buffer& buffer = plan.buffers[id];
      const std::uint64_t end = buffer.offset + buffer.bytes();
      const auto after = live.lower_bound({buffer.offset, 0});
      BufferId other = id;
      if (after != live.end() && after->first < end) other = after->second;
      if (after != live.begin()) {
        const auto before = std::prev(after);
        if (before->first + plan.buffers[before->second].bytes() > buffer.offset) other = before->second;
      }
      if (other != id) return "buffers `" + buffer.name + "` and `" + plan.buffers[other].name + "` overlap";
      for (const BufferId dying : ending) {
        const Buffer& old = plan.buffers[dying];
        const bool overlap = old.offset < end && buffer.offset < old.offset + old.bytes();
        if (overlap && !is_in_place_pair(plan, lifetimes, dying, id)) {
          return "buffers `" + buffer.name + "` and `" + old.name + "` overlap within " +
                 describe(plan.ops[at]);
        }
      }
      live.insert({buffer.offset, id});
    }
    for (const BufferId id : deaths[at]) live.erase({plan.buffers[id].offset, id});
  }
  return {};
}

std::string find_interface_problem(const Plan& plan) {
  const std::vector<std::tuple<const char*, DType, Role>> expected = {
      {names::kBatchTokens, DType::i32, Role::input},
      {names::kStep, DType::i64, Role::scalar},
      {names::kMicroBatchIndex, DType::i64, Role::scalar},
      {names::kRngCounter, DType::u64, Role::scalar},
      {names::kNonfinite, DType::i32, Role::scalar}};
  for (const auto& [name, dtype, role] : expected) {
    const Buffer* buffer = plan.find_buffer(name);
    if (buffer == nullptr || buffer->dtype != dtype || buffer->role != role) {
      return std::string("the plan lacks the buffer `") + name + "`";
    }
  }
  for (const char* name : {names::kLoss, names::kGradNorm, names::kLearningRate}) {
    const Buffer* buffer = plan.find_buffer(name);
    if (buffer == nullptr || buffer->role != Role::scalar)
      return std::string("the plan lacks the buffer `") + name + "`";
  }
  for (const Check& check : plan.checks) {
    if (check.flag >= plan.buffers.size() || plan.buffers[check.flag].dtype != DType::i32 ||
        plan.buffers[check.flag].role != Role::scalar) {
      return "check `" + check.kind + "` reads no flag";
    }
  }
  return {};
}

}  // namespace

std::string verify(const Plan& plan, VerifyScope scope) {
  std::string problem = find_structure_problem(plan);
  if (problem.empty()) problem = find_flow_problem(plan);
  if (problem.empty()) problem = find_random_problem(plan);
  if (problem.empty()) problem = find_recompute_problem(plan);
  if (problem.empty() && scope.segmented) problem = find_segment_problem(plan);
  if (problem.empty() && scope.placed) problem = find_placement_problem(plan);
  if (problem.empty()) problem = find_interface_problem(plan);
  return problem;
}

}  // namespace capstan::plan
