// Digest of buffer contents for comparing two runs. Defined so that it can be computed in any order and in
// parallel: the sum, modulo 2^64, of mix(position, word) over all 32-bit little-endian words; a last partial
// word is padded with zeros. Positions count on over the buffers of a list. Not cryptographic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace capstan::runtime {

/// Finalizer of splitmix64 over word and position. The same formula stands in the CUDA kernel.
constexpr std::uint64_t mix_digest_word(std::uint64_t position, std::uint32_t word) {
  std::uint64_t z = (position << 32 | word) + 0x9e3779b97f4a7c15ull * (position + 1);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

/// Digest of `bytes` whose first word has position `first`; advance `first` by words_of(bytes.size()) for the
/// next one.
std::uint64_t digest_bytes(std::span<const std::byte> bytes, std::uint64_t first);
constexpr std::uint64_t words_of(std::uint64_t bytes) {
  return (bytes + 3) / 4;
}

}  // namespace capstan::runtime
