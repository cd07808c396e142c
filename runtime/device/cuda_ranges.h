// Names for profilers: one NVTX range per segment while its ops are issued or its graph is launched. Costs a
// call through a null pointer when no tool listens.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/plan/plan.h"

namespace capstan::runtime::cuda {

class SegmentRanges {
 public:
  static constexpr std::uint32_t kNone = 0xffffffffU;

  ~SegmentRanges() { leave(); }
  void name(const plan::Plan& plan);
  /// Opens the segment's range unless it is open; closes another one first.
  void enter(std::uint32_t segment);
  void leave();

 private:
  std::vector<std::string> names_;
  std::uint32_t open_ = kNone;
};

}  // namespace capstan::runtime::cuda
