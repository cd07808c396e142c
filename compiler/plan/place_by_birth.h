// Places for what lives for a while, in the order of birth: each into the smallest gap that fits between
// those alive at that time (the lowest of equal ones), else on top. Takes time of n log n.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/plan/lifetimes.h"

namespace capstan::plan {

struct Tenant {
  Lifetime lifetime;
  std::uint64_t bytes = 0;  ///< more than 0
};

struct Placement {
  std::vector<std::uint64_t> offsets;  ///< bytes; of each tenant
  std::uint64_t height = 0;            ///< bytes; the highest end
};

/// Of tenants born at the same op the one that stands first in the list is placed first.
Placement place_by_birth(const std::vector<Tenant>& tenants);

}  // namespace capstan::plan
