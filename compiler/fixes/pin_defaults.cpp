#include "compiler/fixes/pin_defaults.h"

#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "compiler/config/conform.h"

namespace capstan {
namespace {

/// How a file of the release writes the value; nothing where it has no words for it.
std::optional<Value> writable(const Value& value, const KeySpec& spec) {
  // TOML has no null: where none fits and no string of that name does, "none" is read as that.
  Value written = value.is_none() ? Value("none") : value;
  Value read = written;
  if (conform(read, spec) || (value.is_none() && !read.is_none())) return std::nullopt;
  return written;
}

}  // namespace

void pin_defaults(const SchemaView& to, Migration& migration) {
  std::vector<ChangedDefault> left;
  for (ChangedDefault& changed : migration.defaults) {
    const KeySpec* spec = to.find(changed.path).spec;
    const auto written = spec == nullptr ? std::nullopt : writable(changed.before, *spec);
    if (!written) {
      left.push_back(std::move(changed));
      continue;
    }
    migration.steps.push_back({fmt::format("`{}` was {} where it is left out, and is {} in {}", changed.path,
                                           to_text(changed.before), to_text(changed.after), to.stack().name),
                               {{KeyChange::Kind::set, changed.path, *written, {}}}});
  }
  migration.defaults = std::move(left);
}

}  // namespace capstan
