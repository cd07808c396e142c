#include <fnmatch.h>

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

namespace fs = std::filesystem;

constexpr std::size_t kShardHeaderBytes = 256 * 4;

struct Shard {
  MappedFile file;
  std::uint64_t first = 0;  ///< number of its first token in the whole
  std::uint64_t count = 0;
  unsigned width = 2;  ///< bytes of a token
};

template <typename T>
T shard_value(std::span<const std::byte> bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

class ShardTokens final : public TokenSource {
 public:
  ShardTokens(std::string path, std::vector<Shard> shards)
      : path_(std::move(path)), shards_(std::move(shards)) {}
  std::uint64_t count() const override { return shards_.back().first + shards_.back().count; }
  Status read(std::uint64_t first, std::span<std::int32_t> out) const override {
    auto shard = std::upper_bound(shards_.begin(), shards_.end(), first,
                                  [](std::uint64_t place, const Shard& s) { return place < s.first; }) -
                 1;
    const auto whole = [](const Shard& s) { return s.file.check_length("RN010", "the token shard"); };
    if (Status sound = whole(*shard); !sound.ok()) return sound;
    for (std::int32_t& token : out) {
      while (first >= shard->first + shard->count) {
        if (Status sound = whole(*++shard); !sound.ok()) return sound;
      }
      const std::size_t offset = kShardHeaderBytes + (first - shard->first) * shard->width;
      token = shard->width == 2
                  ? shard_value<std::uint16_t>(shard->file.bytes(), offset)
                  : static_cast<std::int32_t>(shard_value<std::uint32_t>(shard->file.bytes(), offset));
      ++first;
    }
    return {};
  }
  const std::string& name() const override { return path_; }
  DataIdentity identity() const override {
    std::vector<const MappedFile*> files;
    for (const Shard& shard : shards_) files.push_back(&shard.file);
    return {count(), digest_of_files(files)};
  }

 private:
  std::string path_;
  std::vector<Shard> shards_;
};

Outcome<std::vector<std::string>> shard_files(const std::string& path) {
  std::error_code error;
  fs::path folder(path);
  std::string pattern = "*.bin";
  if (!fs::is_directory(folder, error)) {
    if (path.find('*') == std::string::npos) return std::vector<std::string>{path};
    pattern = folder.filename().string();
    folder = folder.has_parent_path() ? folder.parent_path() : fs::path(".");
  }
  std::vector<std::string> files;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (fnmatch(pattern.c_str(), name.c_str(), FNM_PERIOD) == 0) files.push_back(entry->path().string());
  }
  if (error)
    return run_problem("RN010", fmt::format("the folder `{}` of the dataset cannot be read: {}",
                                            folder.string(), error.message()));
  if (files.empty())
    return run_problem("RN010", fmt::format("no file of `{}` matches `{}`", folder.string(), pattern));
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

Outcome<std::unique_ptr<TokenSource>> open_token_shards(const std::string& path) {
  Outcome<std::vector<std::string>> files = shard_files(path);
  if (!files.ok()) return files.error();
  std::vector<Shard> shards;
  std::uint64_t total = 0;
  for (const std::string& name : files.value()) {
    Outcome<MappedFile> file = MappedFile::open(name, "RN010", "the token shard");
    if (!file.ok()) return file.error();
    const auto bytes = file.value().bytes();
    const auto broken = [&](const std::string& why) {
      return run_problem("RN010", fmt::format("the token shard `{}` {}", name, why), {{"path", name}});
    };
    if (bytes.size() < kShardHeaderBytes)
      return broken(fmt::format("has {} bytes, its header alone takes {}", bytes.size(), kShardHeaderBytes));
    const auto magic = shard_value<std::int32_t>(bytes, 0), version = shard_value<std::int32_t>(bytes, 4);
    const auto count = shard_value<std::int32_t>(bytes, 8);
    const bool narrow = magic == 20240520 && version == 1, wide = magic == 20240801 && version == 7;
    if (!narrow && !wide)
      return broken(
          fmt::format("has the magic number {} and version {}, which are not llm.c's", magic, version));
    const unsigned width = narrow ? 2 : 4;
    const std::uint64_t room = (bytes.size() - kShardHeaderBytes) / width;
    const std::uint64_t rest = (bytes.size() - kShardHeaderBytes) % width;
    if (count < 0 || static_cast<std::uint64_t>(count) != room || rest != 0) {
      return broken(fmt::format("states {} tokens, but holds {} and {} bytes", count, room, rest));
    }
    if (count == 0) continue;
    shards.push_back({std::move(file.value()), total, static_cast<std::uint64_t>(count), width});
    total += static_cast<std::uint64_t>(count);
  }
  if (shards.empty()) return run_problem("RN011", fmt::format("the dataset `{}` holds no tokens", path));
  return std::unique_ptr<TokenSource>(std::make_unique<ShardTokens>(path, std::move(shards)));
}

}  // namespace capstan::runtime
