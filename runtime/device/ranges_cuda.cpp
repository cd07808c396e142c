#include "runtime/device/cuda_ranges.h"

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#define CAPSTAN_HAS_NVTX 1
#endif

namespace capstan::runtime::cuda {

void SegmentRanges::name(const plan::Plan& plan) {
  names_.clear();
  for (const plan::Segment& segment : plan.segments) {
    std::string text = segment.scope.empty() ? "eager" : segment.scope;
    if (segment.layer >= 0) text += " layer " + std::to_string(segment.layer);
    names_.push_back(text + " " + plan::phase_name(segment.phase));
  }
}

void SegmentRanges::enter(std::uint32_t segment) {
  if (segment == open_) return;
  leave();
  if (segment >= names_.size()) return;
#ifdef CAPSTAN_HAS_NVTX
  nvtxRangePushA(names_[segment].c_str());
#endif
  open_ = segment;
}

void SegmentRanges::leave() {
  if (open_ == kNone) return;
#ifdef CAPSTAN_HAS_NVTX
  nvtxRangePop();
#endif
  open_ = kNone;
}

}  // namespace capstan::runtime::cuda
