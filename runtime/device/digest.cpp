#include "runtime/device/digest.h"

#include <cstring>

namespace capstan::runtime {

std::uint64_t digest_bytes(std::span<const std::byte> bytes, std::uint64_t first) {
  std::uint64_t sum = 0;
  const std::size_t whole = bytes.size() / 4;
  for (std::size_t i = 0; i < whole; ++i) {
    std::uint32_t word;
    std::memcpy(&word, bytes.data() + 4 * i, 4);
    sum += mix_digest_word(first + i, word);
  }
  if (const std::size_t rest = bytes.size() % 4; rest != 0) {
    std::uint32_t word = 0;
    std::memcpy(&word, bytes.data() + 4 * whole, rest);
    sum += mix_digest_word(first + whole, word);
  }
  return sum;
}

}  // namespace capstan::runtime
