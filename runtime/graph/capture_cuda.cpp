#include <utility>

#include "runtime/device/cuda_error.h"
#include "runtime/graph/cuda_graph.h"

namespace capstan::runtime::cuda {
namespace {

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
}

Status GraphExecutable::upload(cudaStream_t stream) const {
  if (Status s = check(cudaGraphUpload(executable_, stream), "cudaGraphUpload"); !s.ok()) return s;
  return check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
}

bool GraphExecutable::update(cudaGraph_t graph) {
  cudaGraphExecUpdateResultInfo result = {};
  if (cudaGraphExecUpdate(executable_, graph, &result) == cudaSuccess) return true;
  cudaGetLastError();  // "it is another graph" is an answer, not a failure
  return false;
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

Outcome<std::size_t> GraphCapture::count_nodes(const plan::Op* op) const {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  cudaGraph_t graph = nullptr;
  const cudaError_t error =
      cudaStreamGetCaptureInfo(stream_, &status, nullptr, &graph, nullptr, nullptr, nullptr);
  if (error != cudaSuccess) return capture_failure("cudaStreamGetCaptureInfo: " + error_text(error), op);
  if (status != cudaStreamCaptureStatusActive) {
    return capture_failure("the op does what a capturing stream must not do", op);
  }
  std::size_t nodes = 0;
  if (const cudaError_t counted = cudaGraphGetNodes(graph, nullptr, &nodes); counted != cudaSuccess) {
    return capture_failure("cudaGraphGetNodes: " + error_text(counted), op);
  }
  return nodes;
}

Status GraphCapture::note_op(const plan::Op& op) {
  const Outcome<std::size_t> nodes = count_nodes(&op);
  if (!nodes.ok()) return nodes.error();
  if (nodes.value() == (nodes_after_.empty() ? 0 : nodes_after_.back()))
    return capture_failure("the op left no node in the graph", &op);
  nodes_after_.push_back(nodes.value());
  last_op_ = &op;
  return {};
}

Status GraphCapture::note_more() {
  const Outcome<std::size_t> nodes = count_nodes(last_op_);
  if (!nodes.ok()) return nodes.error();
  if (!nodes_after_.empty()) nodes_after_.back() = nodes.value();
  return {};
}

Outcome<std::unique_ptr<GraphExecutable>> GraphCapture::finish(std::unique_ptr<GraphExecutable> earlier,
                                                               RecordingInfo& info) {
  cudaGraph_t raw = nullptr;
  open_ = false;
  const cudaError_t ended = cudaStreamEndCapture(stream_, &raw);
  const std::unique_ptr<std::remove_pointer_t<cudaGraph_t>, void (*)(cudaGraph_t)> graph(
      raw, [](cudaGraph_t g) { cudaGraphDestroy(g); });
  if (ended != cudaSuccess) {
    cudaGetLastError();
    return capture_failure("cudaStreamEndCapture: " + error_text(ended), last_op_);
  }
  info.capture_seconds = std::chrono::duration<double>(Clock::now() - began_).count();
  Outcome<GraphListing> listing = list_graph(graph.get(), nodes_after_);
  if (!listing.ok()) return listing.error();
  info.listing = std::move(listing.value());
  info.nodes = info.listing.nodes.size();
  info.edges = info.listing.edges.size();
  if (const std::string problem = find_listing_problem(info.listing, nodes_after_.size()); !problem.empty()) {
    return capture_failure("the graph is not what was issued: " + problem, last_op_);
  }

  std::size_t free_before = 0;
  std::size_t free_after = 0;
  std::size_t total = 0;
  cudaMemGetInfo(&free_before, &total);
  const Clock::time_point begin = Clock::now();
  info.updated = earlier != nullptr && earlier->update(graph.get());
  std::unique_ptr<GraphExecutable> launchable = info.updated ? std::move(earlier) : nullptr;
  if (!info.updated) {
    cudaGraphExec_t instance = nullptr;
    // A graph that the device could launch lies on it whole. Launched by the host it costs a few
    // microseconds; otherwise each kernel of the libraries costs about one, as its parameters are sent with
    // every launch.
    cudaError_t error = cudaGraphInstantiate(&instance, graph.get(), cudaGraphInstantiateFlagDeviceLaunch);
    if (error != cudaSuccess) {
      cudaGetLastError();  // some nodes cannot be part of such a graph
      error = cudaGraphInstantiate(&instance, graph.get(), 0);
    }
    if (error != cudaSuccess) return capture_failure("cudaGraphInstantiate: " + error_text(error), last_op_);
    launchable = std::make_unique<GraphExecutable>(instance);
  }
  if (Status uploaded = launchable->upload(stream_); !uploaded.ok())
    return capture_failure("cudaGraphUpload: " + uploaded.error().message, last_op_);
  info.instantiate_seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  cudaMemGetInfo(&free_after, &total);
  info.bytes = free_before > free_after ? free_before - free_after : 0;
  return launchable;
}

}  // namespace capstan::runtime::cuda
