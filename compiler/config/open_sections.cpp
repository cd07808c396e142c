#include "compiler/config/open_sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "compiler/config/release_gap.h"
#include "compiler/diagnostics/codes.h"

namespace capstan {
namespace {

constexpr std::string_view kOpen = "open";

/// Sections that describe the job, not the framework's config, hold what their file says; what a section with
/// keys of any name holds cannot be listed.
bool can_be_open(std::string_view section) {
  return section != kBridgeEnvironmentSection && section != "target" && section != "cluster" &&
         section != "execute" && section != "sweep" && section != kEnvironmentSection;
}

void report(const char* code, const std::string& key, Span place, std::string message,
            const std::string& help, Sink& sink) {
  Diagnostic diagnostic = start_problem(code, std::move(message), place);
  diagnostic.keys.push_back(key);
  if (!help.empty()) diagnostic.notes.push_back({Note::Kind::help, help, {}});
  sink.report(std::move(diagnostic));
}

void take_section(const std::string& name, Span place, const SchemaView& view, Config& config, Sink& sink) {
  const std::vector<std::string>& known = view.schema().sections();
  if (!can_be_open(name)) {
    report("TY005", "open", place,
           fmt::format("`open` names `{}`, whose keys only the file itself can say", name),
           "take it out of the list; a single key is left open by the value `\"?\"`", sink);
  } else if (view.has_section(name)) {
    open_unset_keys_of(name, view, config);
  } else if (std::binary_search(known.begin(), known.end(), name)) {
    std::vector<KeyRange> ranges;
    for (const KeyInfo& key : view.schema().keys()) {
      if (section_of(key.path) == name) ranges.insert(ranges.end(), key.ranges.begin(), key.ranges.end());
    }
    report("TY003", "open", place,
           fmt::format("`open` names the section `{}`, which {}", name, release_gap(ranges, view.stack())),
           {}, sink);
  } else {
    const std::string near = view.nearest_section(name);
    report("TY001", "open", place, fmt::format("`open` names `{}`, which is no section", name),
           near.empty() ? std::string() : fmt::format("did you mean `{}`?", near), sink);
  }
}

}  // namespace

void open_unset_keys_of(std::string_view section, const SchemaView& view, Config& config) {
  for (const std::size_t index : view.known_keys()) {
    const std::string& path = view.schema().keys()[index].path;
    const std::string_view own = section_of(path);
    if (!can_be_open(own) || path.ends_with(".*") || (!section.empty() && own != section)) continue;
    if (config.find(path) == nullptr) config.open.push_back(path);
  }
}

void take_open_sections(Config& config, const SchemaView& view, Sink& sink) {
  const auto found = config.settings.find(kOpen);
  if (found == config.settings.end()) return;
  const Setting setting = std::move(found->second);
  config.settings.erase(found);
  if (setting.value == Value(true)) return open_unset_keys_of({}, view, config);
  if (setting.value == Value(false)) return;
  const bool names = setting.value.kind() == Value::Kind::list &&
                     std::all_of(setting.value.list().begin(), setting.value.list().end(),
                                 [](const Value& item) { return item.kind() == Value::Kind::string; });
  if (!names) {
    report("TY004", "open", setting.origin.value,
           fmt::format("`open` is `{}`; needs true, false or a list of sections", to_text(setting.value)), {},
           sink);
    return;
  }
  std::set<std::string> seen;
  for (std::size_t i = 0; i < setting.value.list().size(); ++i) {
    const std::string& name = setting.value.list()[i].string();
    if (!seen.insert(name).second) continue;
    take_section(name, i < setting.items.size() ? setting.items[i] : setting.origin.value, view, config,
                 sink);
  }
}

OpenSections open_sections(const Config& config, const SchemaView& view) {
  std::set<std::string, std::less<>> open, unset;
  for (const std::string& path : config.open) {
    if (config.find(path) == nullptr) open.emplace(section_of(path));
  }
  for (const std::size_t index : view.known_keys()) {
    const std::string& path = view.schema().keys()[index].path;
    if (can_be_open(section_of(path)) && !path.ends_with(".*") && config.find(path) == nullptr)
      unset.emplace(section_of(path));
  }
  return {{open.begin(), open.end()}, !open.empty() && open == unset};
}

}  // namespace capstan
