#include "compiler/driver/write_output.h"

#include <sys/stat.h>

#include <cstdio>

#include <fmt/format.h>

#include "compiler/driver/usage_error.h"
#include "compiler/ruleset/load_folder.h"
#include "grammar/source/replace_file.h"

namespace capstan {
namespace {

bool same_file(const std::string& a, const std::string& b) {
  struct stat one {
  }, other{};
  return ::stat(a.c_str(), &one) == 0 && ::stat(b.c_str(), &other) == 0 && S_ISREG(one.st_mode) &&
         one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

}  // namespace

void write_output(const std::string& path, const std::string& text, const SourceMap& inputs,
                  const std::vector<std::string>& further) {
  if (path.empty() || path == "-") {
    std::fwrite(text.data(), 1, text.size(), stdout);
    return;
  }
  const auto keep = [&](const std::string& input) {
    if (!same_file(input, path)) return;
    throw UsageError(fmt::format(
        "`{}` is an input of this command and would be lost; give another file for the output", path));
  };
  for (SourceId id = 0; id < inputs.size(); ++id) {
    if (inputs[id].kind() != SourceKind::file) continue;
    keep(inputs[id].name());
    if (inputs[id].name().ends_with(".rule")) keep(document_path(inputs[id].name()));
  }
  for (const std::string& input : further) keep(input);
  if (const auto failure = replace_file(path, text))
    throw UsageError(fmt::format("cannot write `{}`: {}", path, *failure));
}

}  // namespace capstan
