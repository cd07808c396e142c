// Libraries that are found at run time: what is said where they are missing. Needs no device.
#include "runtime/ops/cuda_cublaslt.h"

#include <gtest/gtest.h>

namespace capstan::runtime::testing {
namespace {

TEST(DeviceLibraries, AMissingLibraryIsNamedWithTheWayOut) {
  cuda::CublasLt table;
  const Status missing = table.load({"/nowhere/libcublasLt.so.13"});
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, "RN025");
  EXPECT_NE(missing.error().message.find("/nowhere/libcublasLt.so.13"), std::string::npos);
  ASSERT_FALSE(missing.error().notes.empty());
  // A library that is there and is another one.
  const Status other = table.load({"libdl.so.2"});
  ASSERT_FALSE(other.ok());
  EXPECT_NE(other.error().message.find("`cublasLtCreate`"), std::string::npos) << other.error().message;
}

}  // namespace
}  // namespace capstan::runtime::testing
