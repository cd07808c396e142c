// Names of value-parameterised tests over stacks: "bridge-0.4" is bridge_0_4.
#pragma once

#include <string>

#include <gtest/gtest.h>

namespace capstan::test {

template <typename Stack>
std::string stack_test_name(const testing::TestParamInfo<Stack>& instance) {
  std::string name(instance.param);
  for (char& c : name) {
    if (c == '-' || c == '.') c = '_';
  }
  return name;
}

}  // namespace capstan::test
