// SHA-256 (FIPS 180-4) of a byte string, as 64 lower-case hex digits. The plan's digest and the digest of the
// effective config use it; both programs need it, so it stands in the folder that both include.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace capstan {

/// Takes bytes piece by piece; the digest is the same however the text was cut.
class Sha256 {
 public:
  void update(std::string_view bytes);
  /// Digest of everything given so far. The object is spent afterwards.
  std::string finish();

 private:
  void absorb(const unsigned char* block);

  std::array<std::uint32_t, 8> state_ = {0x6a09e667u, 0xbb67ae85u, 0x3c6ef372u, 0xa54ff53au,
                                         0x510e527fu, 0x9b05688cu, 0x1f83d9abu, 0x5be0cd19u};
  std::array<unsigned char, 64> pending_{};
  std::size_t pending_size_ = 0;
  std::uint64_t total_bytes_ = 0;
};

std::string sha256(std::string_view bytes);

}  // namespace capstan
