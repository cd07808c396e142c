#include "compiler/plan/dot.h"

#include <fmt/format.h>

#include <set>
#include <utility>
#include <vector>

namespace capstan::plan {
namespace {

std::string escape(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '"' || c == '\\') escaped.push_back('\\');
    if (c == '\n') {
      escaped += "\\n";
    } else {
      escaped.push_back(c);
    }
  }
  return escaped;
}

std::string print_node(const Op& op) {
  std::string label = op_kind_name(op.kind);
  if (!op.module.empty()) label += "\\n" + escape(op.module);
  if (op.layer >= 0) label += " " + std::to_string(op.layer);
  const char* color = "black";
  if (op.phase == Phase::backward) color = "blue";
  if (op.phase == Phase::recompute) color = "orange";
  return fmt::format("    op{} [label=\"{}\", color={}];\n", op.id, label, color);
}

}  // namespace

std::string print_dot(const Plan& plan) {
  std::string text = "digraph plan {\n  rankdir=TB;\n  node [shape=box, fontname=\"sans-serif\"];\n";
  for (const Segment& segment : plan.segments) {
    std::string label = segment_mode_name(segment.mode);
    if (!segment.scope.empty()) label += " " + segment.scope;
    if (segment.layer >= 0) label += " " + std::to_string(segment.layer);
    label += std::string(" ") + phase_name(segment.phase);
    text += fmt::format("  subgraph cluster_{} {{\n    label=\"{}\";\n    style={};\n", segment.id,
                        escape(label), segment.mode == SegmentMode::graph ? "filled" : "dashed");
    if (segment.mode == SegmentMode::graph) text += "    fillcolor=\"#eef4ee\";\n";
    for (OpId id = segment.first_op; id < segment.end_op; ++id) text += print_node(plan.ops[id]);
    text += "  }\n";
  }
  constexpr OpId kNoOp = ~OpId{0};
  std::vector<OpId> last_writer(plan.buffers.size(), kNoOp);
  std::set<std::pair<OpId, OpId>> edges;
  for (const Op& op : plan.ops) {
    for (const BufferId id : op.inputs) {
      if (last_writer[id] != kNoOp && last_writer[id] != op.id) edges.insert({last_writer[id], op.id});
    }
    for (const BufferId id : op.outputs) last_writer[id] = op.id;
  }
  for (const auto& [from, to] : edges) text += fmt::format("  op{} -> op{};\n", from, to);
  return text + "}\n";
}

}  // namespace capstan::plan
