#include "compiler/config/sweep_table.h"

#include <utility>

#include <fmt/format.h>

#include "compiler/config/conform.h"
#include "compiler/config/release_gap.h"
#include "compiler/diagnostics/codes.h"

namespace capstan {
namespace {

constexpr std::string_view kSection = "sweep";

void report(const char* code, const Setting& entry, Span place, std::string message, const std::string& help,
            Sink& sink) {
  Diagnostic diagnostic = start_problem(code, std::move(message), place);
  diagnostic.keys.push_back("sweep." + entry.path);
  if (!help.empty()) diagnostic.notes.push_back({Note::Kind::help, help, {}});
  sink.report(std::move(diagnostic));
}

/// `[sweep] model.x = [...]` is a table below `sweep.model`; a quoted "model.x" is a key of its own.
void flatten(const Setting& setting, std::vector<Setting>& entries) {
  if (setting.value.kind() != Value::Kind::table) {
    entries.push_back(setting);
    return;
  }
  for (const auto& [key, value] : setting.value.table()) {
    Setting inner = setting;
    inner.path += (inner.path.empty() ? "" : ".") + key;
    inner.value = value;
    inner.items.clear();
    // Tables below the first level have no places of their own.
    if (inner.path.find('.') != std::string::npos && value.kind() == Value::Kind::table) {
      inner.value = Value();
      entries.push_back(std::move(inner));
      continue;
    }
    flatten(inner, entries);
  }
}

bool fits(Setting& entry, const SchemaView& schema, Sink& sink) {
  const bool variable = entry.path.starts_with("env.") && entry.path.size() > 4;
  const KeyView view = schema.find(entry.path);
  if (view.info == nullptr && !variable) {
    const std::string near = schema.nearest_key(entry.path);
    report("TY002", entry, entry.origin.key, fmt::format("unknown key `{}` in `[sweep]`", entry.path),
           near.empty() ? std::string() : fmt::format("did you mean `{}`?", near), sink);
    return false;
  }
  if (view.info != nullptr && view.spec == nullptr) {
    report("TY003", entry, entry.origin.key,
           fmt::format("`{}` {}", entry.path, release_gap(view.info->ranges, schema.stack())), {}, sink);
    return false;
  }
  const bool text =
      entry.value.kind() == Value::Kind::string &&
      (entry.value.string().starts_with("range(") || entry.value.string().starts_with("choice("));
  if (text) return true;
  if (entry.value.kind() != Value::Kind::list || entry.value.list().empty()) {
    report("TY004", entry, entry.origin.value,
           fmt::format("`{}` in `[sweep]` needs a list of values to try", entry.path),
           "write a list that is not empty, or `\"range(FIRST, PAST_LAST, STEP)\"`", sink);
    return false;
  }
  if (view.spec == nullptr) return true;
  for (std::size_t i = 0; i < entry.value.list().size(); ++i) {
    Value& value = entry.value.list()[i];
    if (!conform(value, *view.spec)) continue;
    report("TY004", entry, i < entry.items.size() ? entry.items[i] : entry.origin.value,
           fmt::format("`{}` is no value for `{}`; it takes {}", to_text(value), entry.path,
                       view.spec->type_text),
           {}, sink);
    return false;
  }
  return true;
}

}  // namespace

std::vector<Setting> take_sweep_table(Config& config, const SchemaView& schema, Sink& sink) {
  std::vector<Setting> entries;
  for (auto found = config.settings.lower_bound(kSection); found != config.settings.end();) {
    const std::string& path = found->first;
    if (!path.starts_with(kSection)) break;
    const bool whole = path.size() == kSection.size();
    if (!whole && path[kSection.size()] != '.') {
      ++found;
      continue;
    }
    if (whole && found->second.value.kind() != Value::Kind::table) {
      Setting entry = found->second;
      entry.path.clear();
      report("TY004", entry, entry.origin.value, "section `sweep` must be a table", {}, sink);
    } else {
      Setting entry = found->second;
      entry.path = whole ? std::string() : path.substr(kSection.size() + 1);
      flatten(entry, entries);
    }
    found = config.settings.erase(found);
  }
  std::vector<Setting> fitting;
  for (Setting& entry : entries) {
    if (fits(entry, schema, sink)) fitting.push_back(std::move(entry));
  }
  return fitting;
}

}  // namespace capstan
