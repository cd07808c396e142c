// Stream capture: a recording under construction, and the launchable graph it becomes. Capture is
// thread-local, so other threads may go on using the device. Every op that was issued must have left a node;
// one that did not is an error (RN023), because replaying the graph would then skip it.
#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "compiler/plan/plan.h"
#include "runtime/device/backend.h"
#include "runtime/device/outcome.h"

namespace capstan::runtime::cuda {

/// Owns an executable graph.
class GraphExecutable {
 public:
  explicit GraphExecutable(cudaGraphExec_t executable) : executable_(executable) {}
  ~GraphExecutable();
  GraphExecutable(const GraphExecutable&) = delete;
  GraphExecutable& operator=(const GraphExecutable&) = delete;

  Status launch(cudaStream_t stream) const;
  /// Brings it onto the device, and waits.
  Status upload(cudaStream_t stream) const;
  /// Takes over the parameters of a graph with the same nodes and edges; false when it is another graph, and
  /// this one is then as before.
  bool update(cudaGraph_t graph);

 private:
  cudaGraphExec_t executable_ = nullptr;
};

class GraphCapture {
 public:
  static Outcome<std::unique_ptr<GraphCapture>> begin(cudaStream_t stream);
  /// Ends a capture that was not finished and drops what it recorded.
  ~GraphCapture();
  GraphCapture(const GraphCapture&) = delete;
  GraphCapture& operator=(const GraphCapture&) = delete;

  /// To be called after each op was issued: checks that the capture goes on and holds more nodes than before.
  Status note_op(const plan::Op& op);
  /// To be called after other work was issued that belongs to the last op.
  Status note_more();
  /// Ends the capture, lists nodes and edges and compares them with the ops, then updates `earlier` (which
  /// may be null) or instantiates, and uploads. `info` is filled.
  Outcome<std::unique_ptr<GraphExecutable>> finish(std::unique_ptr<GraphExecutable> earlier,
                                                   RecordingInfo& info);

 private:
  explicit GraphCapture(cudaStream_t stream) : stream_(stream) {}

  Outcome<std::size_t> count_nodes(const plan::Op* op) const;

  using Clock = std::chrono::steady_clock;
  cudaStream_t stream_ = nullptr;
  bool open_ = true;
  std::vector<std::size_t> nodes_after_;  ///< nodes of the graph after each op
  const plan::Op* last_op_ = nullptr;
  Clock::time_point began_;
};

/// Nodes in an order that follows the edges, kernels with their names. `nodes_after` says how many nodes
/// there were after each op.
Outcome<GraphListing> list_graph(cudaGraph_t graph, const std::vector<std::size_t>& nodes_after);

}  // namespace capstan::runtime::cuda
