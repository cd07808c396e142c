#include "runtime/data/data_identity.h"

#include <fmt/format.h>

#include "grammar/source/sha256.h"

namespace capstan::runtime {
namespace {

constexpr std::size_t kReadWhole = std::size_t{16} << 20;
constexpr std::size_t kParts = 256, kPartBytes = std::size_t{64} << 10;

std::string_view text_of_bytes(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

std::string digest_of_files(std::span<const MappedFile* const> files) {
  Sha256 digest;
  for (const MappedFile* file : files) {
    const std::span<const std::byte> bytes = file->bytes();
    digest.update(fmt::format("{};", bytes.size()));
    if (!file->check_length("RN010", "the dataset").ok()) continue;
    if (bytes.size() <= kReadWhole) {
      digest.update(text_of_bytes(bytes));
      continue;
    }
    const std::size_t last = bytes.size() - kPartBytes;
    for (std::size_t part = 0; part < kParts; ++part) {
      // last / (kParts - 1) * part, without losing the remainder or overflowing.
      const std::size_t whole = last / (kParts - 1), rest = last % (kParts - 1);
      digest.update(text_of_bytes(bytes.subspan(whole * part + rest * part / (kParts - 1), kPartBytes)));
    }
  }
  return digest.finish().substr(0, 16);
}

}  // namespace capstan::runtime
