// What tells one dataset from another without reading all of it: how many tokens it has, and a digest. A
// checkpoint holds it, so that a resumed run notices that the data under the plan's path are others now.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "runtime/data/mapped_file.h"

namespace capstan::runtime {

struct DataIdentity {
  std::uint64_t tokens = 0;
  std::string digest;  ///< 16 hex digits; empty for data that no file holds
};

/// Digest of files in their order: of all sizes, and of what they hold; of a file above 16 MiB, of 256 parts
/// of 64 KiB, spread evenly from the first byte to the last. Files that became shorter are left out: reading
/// them says so.
std::string digest_of_files(std::span<const MappedFile* const> files);

}  // namespace capstan::runtime
