#include "runtime/graph/listing.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace capstan::runtime {
namespace {

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string describe(const plan::Op& op) {
  std::string text = plan::op_kind_name(op.kind);
  if (op.layer >= 0) text += fmt::format(", layer {}", op.layer);
  return text + fmt::format(", {}, {}", op.module, plan::phase_name(op.phase));
}

}  // namespace

std::string find_listing_problem(const GraphListing& listing, std::size_t issues) {
  std::vector<std::size_t> nodes_of(issues, 0);
  for (const GraphNode& node : listing.nodes) {
    if (node.issue >= issues) return "a node belongs to no op";
    ++nodes_of[node.issue];
  }
  const auto without = std::find(nodes_of.begin(), nodes_of.end(), std::size_t{0});
  if (without != nodes_of.end())
    return fmt::format("op {} of the segment left no node", without - nodes_of.begin());
  std::vector<bool> waits(issues, false);
  for (const auto& [from, to] : listing.edges) {
    const std::size_t before = listing.nodes.at(from).issue, after = listing.nodes.at(to).issue;
    if (before > after) return fmt::format("op {} of the segment waits for op {}", after, before);
    if (before + 1 == after) waits[after] = true;
  }
  for (std::size_t issue = 1; issue < issues; ++issue) {
    if (!waits[issue]) return fmt::format("op {} of the segment does not wait for the one before it", issue);
  }
  return {};
}

std::string to_dot(const plan::Plan& plan, const plan::Segment& segment, const std::vector<plan::OpId>& order,
                   const GraphListing& listing) {
  std::string text = fmt::format("digraph segment_{} {{\n  node [shape=box];\n", segment.id);
  for (std::size_t issue = 0; issue < order.size(); ++issue) {
    text += fmt::format("  subgraph cluster_{} {{\n    label=\"op {}: {}\";\n", issue, order[issue],
                        escaped(describe(plan.ops[order[issue]])));
    for (std::size_t i = 0; i < listing.nodes.size(); ++i) {
      const GraphNode& node = listing.nodes[i];
      if (node.issue != issue) continue;
      text += fmt::format("    n{} [label=\"{}\"];\n", i, escaped(node.name.empty() ? node.kind : node.name));
    }
    text += "  }\n";
  }
  for (const auto& [from, to] : listing.edges) text += fmt::format("  n{} -> n{};\n", from, to);
  return text + "}\n";
}

std::string to_json(const plan::Plan& plan, const plan::Segment& segment,
                    const std::vector<plan::OpId>& order, const GraphListing& listing) {
  using json = nlohmann::ordered_json;
  json out = {{"version", 1}, {"segment", segment.id}, {"scope", segment.scope}, {"layer", segment.layer}};
  json nodes = json::array();
  for (const GraphNode& node : listing.nodes) {
    const plan::Op& op = plan.ops[order.at(node.issue)];
    nodes.push_back({{"kind", node.kind},
                     {"name", node.name},
                     {"issue", node.issue},
                     {"op", op.id},
                     {"op_kind", plan::op_kind_name(op.kind)},
                     {"module", op.module},
                     {"layer", op.layer},
                     {"phase", plan::phase_name(op.phase)}});
  }
  out["nodes"] = std::move(nodes);
  out["edges"] = listing.edges;
  return out.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace capstan::runtime
