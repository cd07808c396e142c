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

/// Owns the executable graph and its template.
class GraphExecutable {
 public:
  GraphExecutable(cudaGraph_t graph, cudaGraphExec_t executable) : graph_(graph), executable_(executable) {}
  ~GraphExecutable();
  GraphExecutable(const GraphExecutable&) = delete;
  GraphExecutable& operator=(const GraphExecutable&) = delete;

  Status launch(cudaStream_t stream) const;

 private:
  cudaGraph_t graph_ = nullptr;
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
  /// Ends the capture, counts nodes and edges, instantiates and uploads. `info` is filled.
  Outcome<std::unique_ptr<GraphExecutable>> finish(RecordingInfo& info);

 private:
  explicit GraphCapture(cudaStream_t stream) : stream_(stream) {}

  using Clock = std::chrono::steady_clock;
  cudaStream_t stream_ = nullptr;
  bool open_ = true;
  std::size_t nodes_ = 0;
  const plan::Op* last_op_ = nullptr;
  Clock::time_point began_;
};

/// Counts of a graph's nodes by kind ("kernel", "memset", ...), sorted by name.
Outcome<std::vector<std::pair<std::string, std::uint64_t>>> count_nodes(cudaGraph_t graph);

}  // namespace capstan::runtime::cuda
