// The nodes and edges of a recording beside the ops that it was made from: compared with the plan after every
// capture, and written as DOT or JSON for people and tools. Plain data, the same for host and device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "compiler/plan/plan.h"

namespace capstan::runtime {

struct GraphNode {
  std::string kind;       ///< "kernel", "memset", "memcpy"; "call" on the host
  std::string name;       ///< of a kernel, where it is known
  std::size_t issue = 0;  ///< which of the recording's ops left the node, from 0
};

struct GraphListing {
  std::vector<GraphNode> nodes;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;  ///< from, to: places in `nodes`
};

/// What keeps the recording from executing its `issues` ops in their order, as one clause: an op without a
/// node, a node that depends on a later op, an op that does not wait for the one before it. Empty when it
/// does.
std::string find_listing_problem(const GraphListing& listing, std::size_t issues);

/// `order`: the op of each issue. Deterministic.
std::string to_dot(const plan::Plan& plan, const plan::Segment& segment, const std::vector<plan::OpId>& order,
                   const GraphListing& listing);
std::string to_json(const plan::Plan& plan, const plan::Segment& segment,
                    const std::vector<plan::OpId>& order, const GraphListing& listing);

}  // namespace capstan::runtime
