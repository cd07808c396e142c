#include "tests/unit/runtime/reference_model.h"
#include "runtime/device/host_backend.h"

namespace capstan::runtime::testing {
namespace {

// Both sides compute in f32 and sum in different orders.
constexpr double kTolerance = 2e-5;

TEST(ReferenceModel, AStepOnTheHostIsPyTorchs) {
  for (const bool gpt : {false, true}) {
    const ReferenceModel reference(gpt);
    for (const bool captured : {false, true}) {
      const auto backend = make_host_backend(2);
      ASSERT_TRUE(backend->prepare(reference.plan()).ok());
      ASSERT_TRUE(backend->initialize().ok());
      reference.check(*backend, kTolerance, captured);
    }
  }
}

}  // namespace
}  // namespace capstan::runtime::testing
