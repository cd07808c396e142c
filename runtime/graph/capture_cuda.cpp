#include <map>

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

Diagnostic capture_failure(const std::string& what, const plan::Op* op) {
  Arguments arguments = op_arguments(op);
  arguments.emplace_back("reason", what);
  std::string message = "the capture failed: " + what;
  if (op != nullptr) message += ", at " + describe_op(*op);
  return run_problem(
      "RN023", std::move(message), std::move(arguments),
      "run without capture (`model.cuda_graph_impl = \"none\"`) to see whether the op itself fails");
}

std::string error_text(cudaError_t error) {
  return std::string(cudaGetErrorName(error)) + " (" + cudaGetErrorString(error) + ")";
}

}  // namespace

GraphExecutable::~GraphExecutable() {
  if (executable_ != nullptr) cudaGraphExecDestroy(executable_);
  if (graph_ != nullptr) cudaGraphDestroy(graph_);
}

Status GraphExecutable::launch(cudaStream_t stream) const {
  return check(cudaGraphLaunch(executable_, stream), "cudaGraphLaunch");
}

Outcome<std::unique_ptr<GraphCapture>> GraphCapture::begin(cudaStream_t stream) {
  std::unique_ptr<GraphCapture> capture(new GraphCapture(stream));
  capture->began_ = Clock::now();
  if (const cudaError_t error = cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
      error != cudaSuccess) {
    capture->open_ = false;
    return capture_failure("cudaStreamBeginCapture: " + error_text(error), nullptr);
  }
  return capture;
}

GraphCapture::~GraphCapture() {
  if (!open_) return;
  cudaGraph_t graph = nullptr;
  cudaStreamEndCapture(stream_, &graph);
  if (graph != nullptr) cudaGraphDestroy(graph);
  cudaGetLastError();  // an abandoned capture leaves its error behind
}

Status GraphCapture::note_op(const plan::Op& op) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  cudaGraph_t graph = nullptr;
  const cudaError_t error =
      cudaStreamGetCaptureInfo(stream_, &status, nullptr, &graph, nullptr, nullptr, nullptr);
  if (error != cudaSuccess) return capture_failure("cudaStreamGetCaptureInfo: " + error_text(error), &op);
  if (status != cudaStreamCaptureStatusActive) {
    return capture_failure("the op does what a capturing stream must not do", &op);
  }
  std::size_t nodes = 0;
  if (const cudaError_t counted = cudaGraphGetNodes(graph, nullptr, &nodes); counted != cudaSuccess) {
    return capture_failure("cudaGraphGetNodes: " + error_text(counted), &op);
  }
  if (nodes == nodes_) return capture_failure("the op left no node in the graph", &op);
  nodes_ = nodes;
  last_op_ = &op;
  return {};
}

Outcome<std::unique_ptr<GraphExecutable>> GraphCapture::finish(RecordingInfo& info) {
  cudaGraph_t graph = nullptr;
  open_ = false;
  if (const cudaError_t error = cudaStreamEndCapture(stream_, &graph); error != cudaSuccess) {
    cudaGetLastError();
    if (graph != nullptr) cudaGraphDestroy(graph);
    return capture_failure("cudaStreamEndCapture: " + error_text(error), last_op_);
  }
  const Clock::time_point captured = Clock::now();
  info.capture_seconds = std::chrono::duration<double>(captured - began_).count();
  auto executable = std::make_unique<GraphExecutable>(graph, nullptr);  // owns the graph from here on
  std::size_t nodes = 0;
  std::size_t edges = 0;
  cudaError_t error = cudaGraphGetNodes(graph, nullptr, &nodes);
  if (error == cudaSuccess) error = cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &edges);
  if (error != cudaSuccess)
    return capture_failure("the graph cannot be inspected: " + error_text(error), last_op_);
  info.nodes = nodes;
  info.edges = edges;
  auto kinds = count_nodes(graph);
  if (!kinds.ok()) return kinds.error();
  info.node_kinds = std::move(kinds.value());

  std::size_t free_before = 0;
  std::size_t free_after = 0;
  std::size_t total = 0;
  cudaMemGetInfo(&free_before, &total);
  const Clock::time_point begin = Clock::now();
  cudaGraphExec_t instance = nullptr;
  error = cudaGraphInstantiate(&instance, graph, 0);
  if (error != cudaSuccess) return capture_failure("cudaGraphInstantiate: " + error_text(error), last_op_);
  executable = nullptr;  // the instance does not need its template
  auto launchable = std::make_unique<GraphExecutable>(nullptr, instance);
  error = cudaGraphUpload(instance, stream_);
  if (error == cudaSuccess) error = cudaStreamSynchronize(stream_);
  if (error != cudaSuccess) return capture_failure("cudaGraphUpload: " + error_text(error), last_op_);
  info.instantiate_seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  cudaMemGetInfo(&free_after, &total);
  info.bytes = free_before > free_after ? free_before - free_after : 0;
  return launchable;
}

Outcome<std::vector<std::pair<std::string, std::uint64_t>>> count_nodes(cudaGraph_t graph) {
  std::size_t count = 0;
  if (Status s = check(cudaGraphGetNodes(graph, nullptr, &count), "cudaGraphGetNodes"); !s.ok())
    return s.error();
  std::vector<cudaGraphNode_t> nodes(count);
  if (count > 0) {
    if (Status s = check(cudaGraphGetNodes(graph, nodes.data(), &count), "cudaGraphGetNodes"); !s.ok())
      return s.error();
  }
  std::map<std::string, std::uint64_t> kinds;
  for (cudaGraphNode_t node : nodes) {
    cudaGraphNodeType type = cudaGraphNodeTypeEmpty;
    if (Status s = check(cudaGraphNodeGetType(node, &type), "cudaGraphNodeGetType"); !s.ok())
      return s.error();
    ++kinds[node_kind(type)];
  }
  return std::vector<std::pair<std::string, std::uint64_t>>(kinds.begin(), kinds.end());
}

}  // namespace capstan::runtime::cuda
