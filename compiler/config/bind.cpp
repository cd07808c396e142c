#include "compiler/config/bind.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include <fmt/format.h>

#include "compiler/config/conform.h"
#include "compiler/config/open_sections.h"
#include "compiler/config/release_gap.h"
#include "compiler/config/sweep_table.h"
#include "compiler/diagnostics/codes.h"
#include "compiler/schema/type_words.h"
#include "grammar/source/comma_words.h"

namespace capstan {
namespace {

/// Words of one list that are told one by one; of the others only how many they are.
constexpr std::size_t kMostWordsTold = 20;
/// Of a list; the longest real ones (blends of data, layouts) have some hundred.
constexpr std::size_t kMostElements = 4096;

/// Bytes of a variable's name and value together. Linux: MAX_ARG_STRLEN (32 pages) less `=` and the final
/// NUL.
constexpr std::size_t kLongestVariable = 32 * 4096 - 2;

std::string_view key_of(std::string_view path) {
  const std::size_t section = section_of(path).size();
  return section == path.size() ? path : path.substr(section + 1);
}

bool is_variable_name(std::string_view name) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  return !name.empty() && letter(name.front()) &&
         std::all_of(name.begin(), name.end(), [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

/// A value for a message; long ones are cut.
std::string shown_value(const Value& value) {
  constexpr std::size_t kLongest = 60;
  std::string text = to_text(value);
  if (text.size() > kLongest) {
    std::size_t end = kLongest;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80)
      --end;  // not inside a character
    text = text.substr(0, end) + "...";
  }
  return text;
}

/// Names come from the file: keep a message on one line.
std::string shown_name(std::string_view name) {
  const std::string quoted = to_text(Value(std::string(name)));
  const bool plain = quoted.size() == name.size() + 2;
  std::string text = plain ? std::string(name) : quoted;
  if (text.size() > 80) text = shown_value(Value(std::string(name)));
  return text;
}

/// Whether a word of a product name, in any case, is a listed value: "NVIDIA H100 80GB" names `h100`.
bool names_one_of(std::string_view text, const std::vector<std::string>& values) {
  std::string word;
  for (std::size_t at = 0; at <= text.size(); ++at) {
    const auto c = at < text.size() ? static_cast<unsigned char>(text[at]) : 0u;
    if (std::isalnum(static_cast<int>(c)) != 0) {
      word += static_cast<char>(std::tolower(static_cast<int>(c)));
    } else {
      if (std::find(values.begin(), values.end(), word) != values.end()) return true;
      word.clear();
    }
  }
  return false;
}

/// Whether a text within the value holds what ends every text that goes to the system.
bool holds_nul(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::string:
      return value.string().find('\0') != std::string::npos;
    case Value::Kind::list:
      return std::any_of(value.list().begin(), value.list().end(), holds_nul);
    case Value::Kind::table:
      return std::any_of(value.table().begin(), value.table().end(), [](const auto& entry) {
        return entry.first.find('\0') != std::string::npos || holds_nul(entry.second);
      });
    default:
      return false;
  }
}

class Binder {
 public:
  Binder(Config& config, const SchemaView& schema, Sink& sink)
      : config_(config), schema_(schema), sink_(sink) {}

  void bind_all() {
    take_sweep_table(config_, schema_, sink_);
    if (schema_.has_section(kBridgeEnvironmentSection)) take_bridge_variables();
    take_open_sections(config_, schema_, sink_);
    for (auto& [path, setting] : config_.settings) bind(path, setting);
  }

 private:
  void bind(const std::string& path, Setting& setting) {
    const std::string_view section = section_of(path);
    if (section.size() == path.size() && setting.value.kind() != Value::Kind::table) {
      report_outside_section(path, setting);
    } else if (section == kEnvironmentSection) {
      if (section.size() != path.size()) bind_variable(path, setting);
    } else if (!schema_.has_section(section)) {
      report_section(section, setting);
    } else if (section.size() != path.size()) {
      bind_key(path, setting);
    }
  }

  /// Bridge sets these variables where the job's environment has not; a value is written as Python's str()
  /// does. Source: Megatron-Bridge src/megatron/bridge/training/config.py apply_environment_variables.
  void take_bridge_variables() {
    const std::string prefix = std::string(kBridgeEnvironmentSection) + '.';
    for (auto found = config_.settings.lower_bound(prefix);
         found != config_.settings.end() && found->first.starts_with(prefix);) {
      Setting variable = std::move(found->second);
      found = config_.settings.erase(found);
      variable.path = std::string(kEnvironmentSection) + '.' + std::string(key_of(variable.path));
      if (variable.value.kind() == Value::Kind::boolean)
        variable.value = Value(variable.value.boolean() ? "True" : "False");
      else if (variable.value.kind() == Value::Kind::floating)
        variable.value = Value(to_text(variable.value));
      config_.settings.try_emplace(variable.path, variable);
    }
  }

  void bind_key(const std::string& path, Setting& setting) {
    KeyView view = schema_.find(path);
    if (view.info == nullptr && section_of(path) == "target") view = schema_.find(component_spelling(path));
    if (view.info == nullptr) {
      report_unknown_key(path, setting);
      return;
    }
    if (view.spec == nullptr) {
      report_other_release(path, setting, *view.info);
      return;
    }
    if (setting.value == Value("?")) {
      config_.open.push_back(path);
      return;
    }
    if (!setting.unsupported.empty()) {
      report_wrong_type(path, setting, *view.spec, fmt::format("a {}", setting.unsupported),
                        setting.origin.value);
      return;
    }
    if (setting.value.kind() == Value::Kind::list && setting.value.list().size() > kMostElements) {
      finish(path, start("TY004", path, setting.origin.value,
                         fmt::format("`{}` is a list of {} elements; at most {} can be checked",
                                     shown_name(path), setting.value.list().size(), kMostElements)));
      return;
    }
    if (refuse_nul(path, setting)) return;
    if (const auto misfit = conform(setting.value, *view.spec)) {
      report_misfit(path, setting, *view.spec, *misfit);
    } else {
      warn_of_unlisted(path, setting, *view.spec);
    }
  }

  /// `target.transformer_engine` is `target.transformer-engine`.
  static std::string component_spelling(std::string path) {
    std::replace(path.begin(), path.end(), '_', '-');
    return path;
  }

  bool refuse_nul(const std::string& path, const Setting& setting) {
    if (!holds_nul(setting.value)) return false;
    finish(path,
           start("TY004", path, setting.origin.value,
                 fmt::format("`{}` holds a NUL character, where file names, arguments and variables end",
                             shown_name(path))));
    return true;
  }

  void bind_variable(const std::string& path, Setting& setting) {
    const std::string_view name = key_of(path);
    if (!is_variable_name(name)) {
      Diagnostic diagnostic =
          start("TY002", path, setting.origin.key,
                fmt::format("`{}` cannot be the name of an environment variable", shown_name(name)));
      finish(path, std::move(diagnostic));
      return;
    }
    if (setting.value == Value("?")) config_.open.push_back(path);
    if (refuse_nul(path, setting)) return;
    if (setting.value.kind() == Value::Kind::string &&
        name.size() + setting.value.string().size() > kLongestVariable) {
      Diagnostic diagnostic =
          start("TY004", path, setting.origin.value,
                fmt::format(
                    "`{}` holds {} bytes, more than a process can be given in a variable ({} with its name)",
                    name, setting.value.string().size(), kLongestVariable));
      finish(path, std::move(diagnostic));
      return;
    }
    if (setting.value.kind() == Value::Kind::string || setting.value.is_none()) {
      if (setting.unsupported.empty()) return;
    }
    if (setting.value.kind() == Value::Kind::integer) {
      setting.value = Value(std::to_string(setting.value.integer()));
      return;
    }
    KeySpec text;
    text.type.string = true;
    report_wrong_type(path, setting, text,
                      setting.unsupported.empty() ? shown_kind(setting.value) : "a " + setting.unsupported,
                      setting.origin.value);
  }

  static std::string shown_kind(const Value& value) {
    switch (value.kind()) {
      case Value::Kind::none:
        return "none";
      case Value::Kind::integer:
        return fmt::format("the integer `{}`", shown_value(value));
      case Value::Kind::list:
        return "a list";
      case Value::Kind::table:
        return "a table";
      default:
        return fmt::format("the {} `{}`", kind_name(value.kind()), shown_value(value));
    }
  }

  void report_misfit(const std::string& path, Setting& setting, const KeySpec& spec, const Misfit& misfit) {
    const bool in_list = misfit.item.has_value();
    const Span place =
        in_list && *misfit.item < setting.items.size() ? setting.items[*misfit.item] : setting.origin.value;
    if (misfit.wrong_type) {
      report_wrong_type(path, setting, spec, (in_list ? "a list with " : "") + shown_kind(misfit.found),
                        place);
    } else {
      report_value(path, setting, spec, misfit.found, place, in_list);
    }
  }

  /// `found` is none of the listed values, or NaN. When the list is open that may be meant, so the config
  /// stays usable.
  void report_value(const std::string& path, const Setting& setting, const KeySpec& spec, const Value& found,
                    Span place, bool in_list) {
    if (found.kind() == Value::Kind::floating) {
      Diagnostic diagnostic =
          start("TY005", path, place,
                fmt::format("`{}` {} `{}`, which is no number; needs {}", shown_name(path),
                            in_list ? "holds" : "is", shown_value(found), type_words(spec.type)));
      diagnostic.arguments.emplace_back("value", found);
      finish(path, std::move(diagnostic));
      return;
    }
    Diagnostic diagnostic =
        start("TY005", path, place,
              fmt::format("`{}` {} `{}`, which {} does not know", shown_name(path), in_list ? "holds" : "is",
                          shown_value(found), schema_.stack().name));
    diagnostic.arguments.emplace_back("value", found);
    std::string known;
    for (const std::string& value : spec.values) known += (known.empty() ? "`" : ", `") + value + '`';
    if (const std::string near = nearest(found.string(), spec.values); !near.empty()) {
      help(diagnostic, fmt::format("did you mean `\"{}\"`?", near));
      if (setting.origin.kind != OriginKind::override_argument) {
        diagnostic.fixes.push_back(replacement(fmt::format("write `\"{}\"`", near), place, '"' + near + '"'));
      }
    }
    help(diagnostic, fmt::format("known values: {}", known));
    if (spec.values_are_open) {
      diagnostic.severity = Severity::warning;
      sink_.report(std::move(diagnostic));
    } else {
      finish(path, std::move(diagnostic));
    }
  }

  /// A word that an open list does not hold is a slip more often than a value that only the code behind it
  /// knows.
  void warn_of_unlisted(const std::string& path, const Setting& setting, const KeySpec& spec) {
    if (!spec.values_are_open) return;
    std::size_t unknown = 0;
    Span next;  ///< the first word that is not told on its own
    const auto check = [&](const Value& value, Span place, bool in_list) {
      if (value.kind() != Value::Kind::string) return;
      const std::string& word = value.string();
      // `CudaGraphScope.attn`: a member as Python names it.
      const bool is_qualified = !word.empty() && word[0] >= 'A' && word[0] <= 'Z';
      const std::string member = is_qualified ? word.substr(word.rfind('.') + 1) : word;
      if (path == "target.gpu"
              ? !names_one_of(word, spec.values)
              : std::find(spec.values.begin(), spec.values.end(), member) == spec.values.end()) {
        if (++unknown <= kMostWordsTold) report_value(path, setting, spec, value, place, in_list);
        if (unknown == kMostWordsTold + 1) next = place;
      }
    };
    check_words(setting, spec, check);
    if (unknown <= kMostWordsTold) return;
    const std::size_t rest = unknown - kMostWordsTold;
    Diagnostic diagnostic =
        start("TY005", path, next,
              fmt::format("`{}` holds {} more word{} that {} does not know", shown_name(path), rest,
                          rest == 1 ? "" : "s", schema_.stack().name));
    diagnostic.severity = Severity::warning;
    sink_.report(std::move(diagnostic));
  }

  template <typename Check>
  static void check_words(const Setting& setting, const KeySpec& spec, const Check& check) {
    if (setting.value.kind() == Value::Kind::string && (spec.type.list || spec.type.any)) {
      // "attn,mlp" is one way to write such a list.
      for (const std::string& word : comma_words(setting.value.string()))
        check(Value(word), setting.origin.value, false);
      return;
    }
    check(setting.value, setting.origin.value, false);
    if (setting.value.kind() != Value::Kind::list) return;
    for (std::size_t index = 0; index < setting.value.list().size(); ++index) {
      check(setting.value.list()[index],
            index < setting.items.size() ? setting.items[index] : setting.origin.value, true);
    }
  }

  void report_wrong_type(const std::string& path, const Setting& setting, const KeySpec& spec,
                         const std::string& found, Span place) {
    Diagnostic diagnostic =
        start("TY004", path, place,
              fmt::format("`{}` is {}; needs {}", shown_name(path), found, type_words(spec.type)));
    diagnostic.arguments.emplace_back("value", setting.value);
    finish(path, std::move(diagnostic));
  }

  void report_unknown_key(const std::string& path, const Setting& setting) {
    Diagnostic diagnostic =
        start("TY002", path, setting.origin.key, fmt::format("unknown key `{}`", shown_name(path)));
    // Every search walks all keys of the section: enough for people, bounded for generated files.
    const std::string near = suggestions_left_-- > 0 ? schema_.nearest_key(path) : std::string();
    if (!near.empty() && section_of(near) != section_of(path)) {
      help(diagnostic, fmt::format("`{}` is a key of section `[{}]`", key_of(near), section_of(near)));
    } else if (!near.empty()) {
      help(diagnostic, fmt::format("did you mean `{}`?", near));
      if (setting.origin.kind != OriginKind::override_argument) {
        diagnostic.fixes.push_back(replacement(fmt::format("rename to `{}`", key_of(near)),
                                               setting.origin.key, std::string(key_of(near))));
      }
    } else if (const std::string other =
                   suggestions_left_ > 0 ? same_key_elsewhere(key_of(path)) : std::string();
               !other.empty()) {
      help(diagnostic, fmt::format("other releases have `{}`", other));
    }
    finish(path, std::move(diagnostic));
  }

  /// A key of this name in any section of any release; empty if there is none.
  std::string same_key_elsewhere(std::string_view name) const {
    for (const KeyInfo& key : schema_.schema().keys()) {
      if (key_of(key.path) == name) return key.path;
    }
    return {};
  }

  void report_other_release(const std::string& path, const Setting& setting, const KeyInfo& key) {
    Diagnostic diagnostic =
        start("TY003", path, setting.origin.key,
              fmt::format("`{}` {}", shown_name(path), release_gap(key.ranges, schema_.stack())));
    if (!key.renamed_to.empty()) help(diagnostic, fmt::format("use `{}`", key.renamed_to));
    if (!key.removed_hint.empty()) help(diagnostic, key.removed_hint);
    doubt_other_names(key);
    finish(path, std::move(diagnostic));
  }

  /// What the key says under another release's name was meant: rules must not conclude from its absence.
  void doubt_other_names(const KeyInfo& key) {
    const auto doubt = [this](const KeyInfo& other) {
      if (schema_.find(other.path).spec != nullptr && config_.find(other.path) == nullptr)
        config_.broken.push_back(other.path);
    };
    if (const KeyInfo* successor = schema_.schema().find(key.renamed_to)) doubt(*successor);
    for (const KeyInfo& earlier : schema_.schema().keys()) {
      if (earlier.renamed_to == key.path) doubt(earlier);
    }
  }

  void report_outside_section(const std::string& path, const Setting& setting) {
    Diagnostic diagnostic;
    const std::vector<std::string>& sections = schema_.schema().sections();
    if (path == kEnvironmentSection || std::binary_search(sections.begin(), sections.end(), path)) {
      diagnostic =
          start("TY004", path, setting.origin.value, fmt::format("section `{}` must be a table", path));
    } else {
      diagnostic = start("TY002", path, setting.origin.key,
                         fmt::format("key `{}` stands outside of all sections", shown_name(path)));
      if (const std::string near = schema_.nearest_key("." + path); !near.empty()) {
        help(diagnostic, fmt::format("`{}` is a key of section `[{}]`", key_of(near), section_of(near)));
      }
    }
    finish(path, std::move(diagnostic));
  }

  /// Once per section, not once per key.
  void report_section(std::string_view section, const Setting& setting) {
    config_.broken.push_back(setting.path);
    if (section == reported_section_) return;
    reported_section_ = section;
    const auto named = config_.sections.find(section);
    const Span place = named == config_.sections.end() ? setting.origin.key : named->second;
    const std::vector<std::string>& sections = schema_.schema().sections();
    Diagnostic diagnostic;
    if (std::binary_search(sections.begin(), sections.end(), section)) {
      std::vector<KeyRange> ranges;
      for (const KeyInfo& key : schema_.schema().keys()) {
        if (section_of(key.path) == section)
          ranges.insert(ranges.end(), key.ranges.begin(), key.ranges.end());
      }
      diagnostic = start("TY003", std::string(section), place,
                         fmt::format("section `{}` {}", section, release_gap(ranges, schema_.stack())));
      if (section == kBridgeEnvironmentSection) help(diagnostic, "variables of the job stand in `[env]`");
    } else {
      diagnostic = start("TY001", std::string(section), place,
                         fmt::format("unknown section `{}`", shown_name(section)));
      if (const std::string near = schema_.nearest_section(section); !near.empty()) {
        help(diagnostic, fmt::format("did you mean `{}`?", near));
      }
    }
    sink_.report(std::move(diagnostic));
  }

  Diagnostic start(const char* code, std::string path, Span place, std::string message) const {
    Diagnostic diagnostic = start_problem(code, std::move(message), place);
    diagnostic.keys.push_back(std::move(path));
    return diagnostic;
  }

  static void help(Diagnostic& diagnostic, std::string text) {
    diagnostic.notes.push_back({Note::Kind::help, std::move(text), {}});
  }

  /// A guess at what was meant: changes what the file says, so it is for people to apply.
  static Fix replacement(std::string title, Span place, std::string text) {
    Fix fix;
    fix.title = std::move(title);
    fix.applicability = place.exists() ? Applicability::unsafe : Applicability::display_only;
    if (place.exists()) fix.edits.push_back({place, std::move(text)});
    return fix;
  }

  void finish(const std::string& path, Diagnostic diagnostic) {
    config_.broken.push_back(path);
    sink_.report(std::move(diagnostic));
  }

  Config& config_;
  const SchemaView& schema_;
  Sink& sink_;
  std::string reported_section_;
  int suggestions_left_ = 50;
};

}  // namespace

void bind(Config& config, const SchemaView& schema, Sink& sink) {
  Binder(config, schema, sink).bind_all();
}

}  // namespace capstan
