// When each buffer of a plan holds something that is needed, as a range of op positions. Shared by placement
// and verification.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/plan/plan.h"

namespace capstan::plan {

/// Closed range of ops; first > last: never used.
struct Lifetime {
  OpId first = 1;
  OpId last = 0;
  bool used() const { return first <= last; }
};

bool is_persistent(Role role);

/// By buffer id. Persistent buffers live over the whole list; the others from their first to their last op.
std::vector<Lifetime> find_lifetimes(const Plan& plan);

}  // namespace capstan::plan
