#include <algorithm>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "runtime/data/mapped_file.h"
#include "runtime/data/token_source.h"

namespace capstan::runtime {
namespace {

constexpr char kMagic[9] = {'M', 'M', 'I', 'D', 'I', 'D', 'X', '\0', '\0'};
// Magic, version u64, token type u8, numbers of sequences and documents u64.
constexpr std::size_t kIndexHeaderBytes = 9 + 8 + 1 + 8 + 8;

template <typename T>
T index_value(std::span<const std::byte> bytes, std::uint64_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

enum class TokenType : std::uint8_t { u8 = 1, i8 = 2, i16 = 3, i32 = 4, i64 = 5, u16 = 8 };

unsigned width_of(TokenType type) {
  switch (type) {
    case TokenType::u8:
    case TokenType::i8:
      return 1;
    case TokenType::i16:
    case TokenType::u16:
      return 2;
    case TokenType::i32:
      return 4;
    case TokenType::i64:
      return 8;
  }
  return 0;  // f32 and f64 hold no tokens; further codes do not exist
}

/// Megatron names the pair by what both names begin with; who names one of the two files means the pair.
std::string stem_of_pair(const std::string& given) {
  const std::size_t dot = given.size() < 4 ? 0 : given.size() - 4;
  const std::string suffix = given.substr(dot);
  std::error_code error;
  if ((suffix != ".bin" && suffix != ".idx") || std::filesystem::exists(given + ".idx", error)) return given;
  return given.substr(0, dot);
}

class IndexedTokens final : public TokenSource {
 public:
  IndexedTokens(std::string path, MappedFile index, MappedFile data, TokenType type, std::uint64_t sequences,
                std::vector<std::uint64_t> starts)
      : path_(std::move(path)),
        index_(std::move(index)),
        data_(std::move(data)),
        type_(type),
        sequences_(sequences),
        starts_(std::move(starts)) {}

  std::uint64_t count() const override { return starts_.back(); }
  Status read(std::uint64_t first, std::span<std::int32_t> out) const override {
    if (Status whole = index_.check_length("RN010", "the dataset's index"); !whole.ok()) return whole;
    if (Status whole = data_.check_length("RN010", "the dataset"); !whole.ok()) return whole;
    auto sequence = static_cast<std::uint64_t>(std::upper_bound(starts_.begin(), starts_.end(), first) -
                                               starts_.begin()) -
                    1;
    for (std::int32_t& token : out) {
      while (first >= starts_[sequence + 1]) ++sequence;
      const auto pointer =
          index_value<std::int64_t>(index_.bytes(), kIndexHeaderBytes + 4 * sequences_ + 8 * sequence);
      token = token_at(static_cast<std::uint64_t>(pointer) + (first - starts_[sequence]) * width_of(type_));
      ++first;
    }
    return {};
  }
  const std::string& name() const override { return path_; }
  DataIdentity identity() const override {
    const MappedFile* const files[] = {&index_, &data_};
    return {count(), digest_of_files(files)};
  }

 private:
  std::int32_t token_at(std::uint64_t offset) const {
    switch (type_) {
      case TokenType::u8:
        return index_value<std::uint8_t>(data_.bytes(), offset);
      case TokenType::i8:
        return index_value<std::int8_t>(data_.bytes(), offset);
      case TokenType::i16:
        return index_value<std::int16_t>(data_.bytes(), offset);
      case TokenType::u16:
        return index_value<std::uint16_t>(data_.bytes(), offset);
      case TokenType::i32:
        return index_value<std::int32_t>(data_.bytes(), offset);
      case TokenType::i64: {
        const auto wide = index_value<std::int64_t>(data_.bytes(), offset);
        return wide < 0 || wide > INT32_MAX ? -1 : static_cast<std::int32_t>(wide);
      }
    }
    return -1;
  }

  std::string path_;
  MappedFile index_, data_;
  TokenType type_;
  std::uint64_t sequences_;
  std::vector<std::uint64_t> starts_;  ///< first token of each sequence in the whole; one more at the end
};

}  // namespace

Outcome<std::unique_ptr<TokenSource>> open_megatron_indexed(const std::string& given) {
  const std::string path = stem_of_pair(given);
  Outcome<MappedFile> index = MappedFile::open(path + ".idx", "RN010", "the dataset's index");
  if (!index.ok()) return index.error();
  Outcome<MappedFile> data = MappedFile::open(path + ".bin", "RN010", "the dataset");
  if (!data.ok()) return data.error();
  const auto bytes = index.value().bytes();
  const auto broken = [&](const std::string& why) {
    return run_problem("RN010", fmt::format("the dataset's index `{}.idx` {}", path, why), {{"path", path}});
  };
  if (bytes.size() < kIndexHeaderBytes || std::memcmp(bytes.data(), kMagic, sizeof kMagic) != 0) {
    return broken("does not begin as an index of Megatron's indexed datasets");
  }
  const auto version = index_value<std::uint64_t>(bytes, 9);
  if (version != 1) return broken(fmt::format("has version {}, only 1 exists", version));
  const auto type = static_cast<TokenType>(index_value<std::uint8_t>(bytes, 17));
  const unsigned width = width_of(type);
  if (width == 0)
    return broken(fmt::format("has the token type {}, which holds no token ids", static_cast<int>(type)));
  const auto sequences = index_value<std::uint64_t>(bytes, 18),
             documents = index_value<std::uint64_t>(bytes, 26);
  const std::uint64_t room = bytes.size() - kIndexHeaderBytes;
  if (sequences > room / 12 || documents > (room - 12 * sequences) / 8) {
    return broken(fmt::format("states {} sequences and {} documents, more than its {} bytes can hold",
                              sequences, documents, bytes.size()));
  }
  const std::uint64_t rest = room - 12 * sequences - 8 * documents;
  // A byte for each sequence follows in datasets of several kinds of samples.
  if (rest != 0 && rest != sequences) {
    return broken(
        fmt::format("has {} bytes behind its {} sequences and {} documents", rest, sequences, documents));
  }
  std::uint64_t document_end = 0;
  for (std::uint64_t i = 0; i < documents; ++i) {
    const auto end = index_value<std::int64_t>(bytes, kIndexHeaderBytes + 12 * sequences + 8 * i);
    if (end < 0 || (i == 0 && end != 0) || static_cast<std::uint64_t>(end) < document_end ||
        static_cast<std::uint64_t>(end) > sequences) {
      return broken(fmt::format("ends document {} at sequence {}, after {} and of {}", i, end, document_end,
                                sequences));
    }
    document_end = static_cast<std::uint64_t>(end);
  }
  if (documents == 0 || document_end != sequences) {
    return broken(
        fmt::format("ends its last document at sequence {}, but has {} sequences", document_end, sequences));
  }
  std::vector<std::uint64_t> starts = {0};
  starts.reserve(sequences + 1);
  const std::uint64_t data_size = data.value().bytes().size();
  for (std::uint64_t i = 0; i < sequences; ++i) {
    const auto length = index_value<std::int32_t>(bytes, kIndexHeaderBytes + 4 * i);
    const auto pointer = index_value<std::int64_t>(bytes, kIndexHeaderBytes + 4 * sequences + 8 * i);
    const std::uint64_t size = static_cast<std::uint64_t>(std::max(length, 0)) * width;
    if (length < 0 || pointer < 0 || static_cast<std::uint64_t>(pointer) > data_size ||
        size > data_size - static_cast<std::uint64_t>(pointer)) {
      return broken(fmt::format("places sequence {} ({} tokens from byte {}) outside `{}.bin` of {} bytes", i,
                                length, pointer, path, data_size));
    }
    starts.push_back(starts.back() + static_cast<std::uint64_t>(length));
  }
  return std::unique_ptr<TokenSource>(std::make_unique<IndexedTokens>(
      path, std::move(index.value()), std::move(data.value()), type, sequences, std::move(starts)));
}

}  // namespace capstan::runtime
