#include <algorithm>

#include <fmt/format.h>

#include "runtime/data/mapped_file.h"
#include "runtime/data/token_source.h"

namespace capstan::runtime {
namespace {

class TextTokens final : public TokenSource {
 public:
  explicit TextTokens(MappedFile file) : file_(std::move(file)) {}
  std::uint64_t count() const override { return file_.bytes().size(); }
  Status read(std::uint64_t first, std::span<std::int32_t> out) const override {
    if (Status whole = file_.check_length("RN010", "the dataset"); !whole.ok()) return whole;
    const auto from = file_.bytes().subspan(first, out.size());
    std::transform(from.begin(), from.end(), out.begin(),
                   [](std::byte b) { return std::to_integer<std::int32_t>(b); });
    return {};
  }
  const std::string& name() const override { return file_.path(); }
  DataIdentity identity() const override {
    const MappedFile* const files[] = {&file_};
    return {count(), digest_of_files(files)};
  }

 private:
  MappedFile file_;
};

}  // namespace

Outcome<std::unique_ptr<TokenSource>> open_text(const std::string& path, std::int64_t vocab) {
  Outcome<MappedFile> file = MappedFile::open(path, "RN010", "the dataset");
  if (!file.ok()) return file.error();
  if (vocab < 256) {
    const auto bytes = file.value().bytes();
    const auto beyond = std::find_if(bytes.begin(), bytes.end(),
                                     [&](std::byte b) { return std::to_integer<std::int64_t>(b) >= vocab; });
    if (beyond != bytes.end()) {
      return run_problem(
          "RN012",
          fmt::format("the dataset `{}` holds the byte {} at {}, but the vocabulary has {} tokens", path,
                      std::to_integer<int>(*beyond), beyond - bytes.begin(), vocab),
          {{"path", path}}, "byte-level tokens need a vocabulary of 256");
    }
  }
  return std::unique_ptr<TokenSource>(std::make_unique<TextTokens>(std::move(file.value())));
}

}  // namespace capstan::runtime
