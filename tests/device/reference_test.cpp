// A step of a small model on the device beside the same step in PyTorch.
#include "tests/device/device_pair.h"
#include "tests/unit/runtime/reference_model.h"

namespace capstan::runtime::testing {
namespace {

TEST(DeviceReference, AStepIsPyTorchs) {
  CAPSTAN_NEED_DEVICE();
  constexpr double kTolerance = 2e-5;
  for (const bool gpt : {false, true}) {
    const ReferenceModel reference(gpt);
    for (const bool captured : {false, true}) {
      auto backend = make_cuda_backend();
      ASSERT_TRUE(backend.ok());
      ASSERT_TRUE(backend.value()->prepare(reference.plan()).ok());
      ASSERT_TRUE(backend.value()->initialize().ok());
      reference.check(*backend.value(), kTolerance, captured);
    }
  }
}

}  // namespace
}  // namespace capstan::runtime::testing
