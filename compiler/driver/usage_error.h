// The command line asks for something that cannot be done: one line on stderr, exit code 2. Only commands
// throw it, and only run_program() catches it. An empty text: what is wrong stands on stderr already, with
// its places.
#pragma once

#include <stdexcept>

namespace capstan {

struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace capstan
