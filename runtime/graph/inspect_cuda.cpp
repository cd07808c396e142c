#include <cuda.h>
#include <cudaTypedefs.h>
#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>

#include "runtime/device/cuda_error.h"
#include "runtime/graph/cuda_graph.h"

namespace capstan::runtime::cuda {
namespace {

const char* node_kind(cudaGraphNodeType type) {
  switch (type) {
    case cudaGraphNodeTypeKernel:
      return "kernel";
    case cudaGraphNodeTypeMemcpy:
      return "memcpy";
    case cudaGraphNodeTypeMemset:
      return "memset";
    case cudaGraphNodeTypeHost:
      return "host";
    case cudaGraphNodeTypeGraph:
      return "graph";
    case cudaGraphNodeTypeEmpty:
      return "empty";
    case cudaGraphNodeTypeWaitEvent:
      return "wait_event";
    case cudaGraphNodeTypeEventRecord:
      return "event_record";
    case cudaGraphNodeTypeMemAlloc:
      return "mem_alloc";
    case cudaGraphNodeTypeMemFree:
      return "mem_free";
    default:
      return "other";
  }
}

/// The driver's functions that know a kernel's name; the program links no driver. Null where it is too old.
struct DriverNames {
  PFN_cuGraphKernelNodeGetParams_v12000 node_params = nullptr;
  PFN_cuFuncGetName_v12030 function_name = nullptr;
  PFN_cuKernelGetName_v12030 kernel_name = nullptr;

  static const DriverNames& get() {
    static const DriverNames names = [] {
      DriverNames found;
      const auto look_up = [](const char* symbol, unsigned version, auto& function) {
        void* address = nullptr;
        cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
        const cudaError_t error =
            cudaGetDriverEntryPointByVersion(symbol, &address, version, cudaEnableDefault, &result);
        if (error != cudaSuccess || result != cudaDriverEntryPointSuccess) address = nullptr;
        function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(address);
      };
      look_up("cuGraphKernelNodeGetParams", 12000, found.node_params);
      look_up("cuFuncGetName", 12030, found.function_name);
      look_up("cuKernelGetName", 12030, found.kernel_name);
      cudaGetLastError();
      return found;
    }();
    return names;
  }
};

/// Without parameter list and return type.
std::string plain_name(const char* mangled) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> readable(
      abi::__cxa_demangle(mangled, nullptr, nullptr, &status), std::free);
  std::string name = status == 0 ? readable.get() : mangled;
  constexpr std::size_t kLongest = 160;
  int depth = 0;
  std::size_t end = name.size();
  for (std::size_t i = 0; i < name.size() && end == name.size(); ++i) {
    if (name[i] == '<') ++depth;
    if (name[i] == '>') --depth;
    if (name[i] == '(' && depth == 0 && name.compare(i, 11, "(anonymous ") != 0) end = i;
  }
  name.resize(std::min(end, kLongest));
  if (name.rfind("void ", 0) == 0) name.erase(0, 5);
  return name;
}

std::string kernel_name(cudaGraphNode_t node) {
  const DriverNames& driver = DriverNames::get();
  CUDA_KERNEL_NODE_PARAMS params = {};
  if (driver.node_params == nullptr || driver.node_params(node, &params) != CUDA_SUCCESS) return {};
  const char* name = nullptr;
  const bool named =
      params.func != nullptr
          ? driver.function_name != nullptr && driver.function_name(&name, params.func) == CUDA_SUCCESS
          : driver.kernel_name != nullptr && driver.kernel_name(&name, params.kern) == CUDA_SUCCESS;
  return named && name != nullptr ? plain_name(name) : std::string();
}

}  // namespace

Outcome<GraphListing> list_graph(cudaGraph_t graph, const std::vector<std::size_t>& nodes_after) {
  std::size_t count = 0;
  std::size_t edge_count = 0;
  if (Status s = check(cudaGraphGetNodes(graph, nullptr, &count), "cudaGraphGetNodes"); !s.ok())
    return s.error();
  if (Status s = check(cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &edge_count), "cudaGraphGetEdges");
      !s.ok())
    return s.error();
  std::vector<cudaGraphNode_t> nodes(count);
  std::vector<cudaGraphNode_t> from(edge_count);
  std::vector<cudaGraphNode_t> to(edge_count);
  // Edges carry data where kernels overlap by programmatic launch; it is asked for so that they are listed,
  // too.
  std::vector<cudaGraphEdgeData> data(edge_count);
  if (count > 0) {
    if (Status s = check(cudaGraphGetNodes(graph, nodes.data(), &count), "cudaGraphGetNodes"); !s.ok())
      return s.error();
  }
  if (edge_count > 0) {
    if (Status s = check(cudaGraphGetEdges(graph, from.data(), to.data(), data.data(), &edge_count),
                         "cudaGraphGetEdges");
        !s.ok())
      return s.error();
  }

  // One stream makes a chain; then the edges say the order, whatever the order of the driver's list.
  std::map<cudaGraphNode_t, cudaGraphNode_t> next;
  std::map<cudaGraphNode_t, cudaGraphNode_t> previous;
  for (std::size_t i = 0; i < edge_count; ++i) {
    next[from[i]] = to[i];
    previous[to[i]] = from[i];
  }
  if (count > 0 && edge_count == count - 1 && next.size() == edge_count && previous.size() == edge_count) {
    cudaGraphNode_t at =
        *std::find_if(nodes.begin(), nodes.end(), [&](cudaGraphNode_t n) { return previous.count(n) == 0; });
    for (std::size_t i = 0; i < count; ++i) {
      nodes[i] = at;
      if (i + 1 < count) at = next.at(at);
    }
  }

  GraphListing listing;
  std::map<cudaGraphNode_t, std::uint32_t> place;
  std::size_t issue = 0;
  for (std::size_t i = 0; i < count; ++i) {
    while (issue < nodes_after.size() && i >= nodes_after[issue]) ++issue;
    cudaGraphNodeType type = cudaGraphNodeTypeEmpty;
    if (Status s = check(cudaGraphNodeGetType(nodes[i], &type), "cudaGraphNodeGetType"); !s.ok())
      return s.error();
    listing.nodes.push_back(
        {node_kind(type), type == cudaGraphNodeTypeKernel ? kernel_name(nodes[i]) : std::string(), issue});
    place[nodes[i]] = static_cast<std::uint32_t>(i);
  }
  for (std::size_t i = 0; i < edge_count; ++i) listing.edges.emplace_back(place.at(from[i]), place.at(to[i]));
  std::sort(listing.edges.begin(), listing.edges.end());
  return listing;
}

}  // namespace capstan::runtime::cuda
