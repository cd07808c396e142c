#include "compiler/driver/write_output.h"

#include <sys/stat.h>

#include <cstdio>

#include <fmt/format.h>

#include "compiler/driver/usage_error.h"
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

void write_output(const std::string& path, const std::string& text, const SourceMap& inputs) {
  if (path.empty() || path == "-") {
    std::fwrite(text.data(), 1, text.size(), stdout);
    return;
  }
  for (SourceId id = 0; id < inputs.size(); ++id) {
    if (inputs[id].kind() != SourceKind::file || !same_file(inputs[id].name(), path)) continue;
    throw UsageError(fmt::format(
        "`{}` is an input of this command and would be lost; give another file for the output", path));
  }
  if (const auto failure = replace_file(path, text))
    throw UsageError(fmt::format("cannot write `{}`: {}", path, *failure));
}

}  // namespace capstan
