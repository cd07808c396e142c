// Plan -> text for people and golden tests: segments with their ops, operands by name, attributes; buffers
// with dtype, shape and place. Deterministic.
#pragma once

#include <string>

#include "compiler/plan/plan.h"

namespace capstan::plan {

struct PrintOptions {
  bool buffers = true;  ///< list the buffers after the ops
  bool offsets = true;  ///< with their offsets; off until they are placed
};

std::string print_text(const Plan& plan, const PrintOptions& options = {});

/// A count of bytes as people read it: "1.25 GiB", "640 B".
std::string print_bytes(std::uint64_t bytes);

}  // namespace capstan::plan
