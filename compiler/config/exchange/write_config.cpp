#include "compiler/config/exchange/write_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "compiler/config/conform.h"
#include "compiler/config/exchange/interpolation.h"
#include "compiler/config/exchange/shell_quoted.h"
#include "compiler/config/exchange/write_arguments.h"
#include "compiler/config/exchange/yaml_float.h"
#include "compiler/config/open_sections.h"
#include "grammar/source/utf8.h"
#include "grammar/yaml/yaml_scalars.h"

namespace capstan {
namespace {

constexpr std::pair<ExportFormat, const char*> kFormatNames[] = {
    {ExportFormat::toml, "toml"},
    {ExportFormat::bridge_yaml, "bridge-yaml"},
    {ExportFormat::megatron_args, "megatron-args"},
    {ExportFormat::python, "python"},
    {ExportFormat::hydra, "hydra"},
    {ExportFormat::env, "env"}};

/// Sections that the training framework does not have.
bool is_own_section(std::string_view section) {
  return section == "target" || section == "cluster" || section == "execute";
}

std::string json_string(const std::string& text) {
  return to_text(Value(text));
}

bool contains_none(const Value& value) {
  if (value.is_none()) return true;
  if (value.kind() == Value::Kind::list)
    return std::any_of(value.list().begin(), value.list().end(), contains_none);
  if (value.kind() == Value::Kind::table) {
    return std::any_of(value.table().begin(), value.table().end(),
                       [](const auto& entry) { return contains_none(entry.second); });
  }
  return false;
}

// --- YAML (flow style below the second level, so that one line is one key) ---

std::string yaml_value(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::none:
      return "null";
    case Value::Kind::floating:
      return yaml_float(value.floating());
    case Value::Kind::list: {
      std::string out = "[";
      for (const Value& item : value.list()) out += (out.size() > 1 ? ", " : "") + yaml_value(item);
      return out + "]";
    }
    case Value::Kind::table: {
      std::string out = "{";
      for (const auto& [key, item] : value.table())
        out += (out.size() > 1 ? ", " : "") + json_string(key) + ": " + yaml_value(item);
      return out + "}";
    }
    case Value::Kind::string:
      return json_string(escape_interpolation(value.string()));
    default:
      return to_text(value);
  }
}

// --- Python ---

std::string python_value(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::none:
      return "None";
    case Value::Kind::boolean:
      return value.boolean() ? "True" : "False";
    case Value::Kind::list: {
      std::string out = "[";
      for (const Value& item : value.list()) out += (out.size() > 1 ? ", " : "") + python_value(item);
      return out + "]";
    }
    case Value::Kind::table: {
      std::string out = "{";
      for (const auto& [key, item] : value.table())
        out += (out.size() > 1 ? ", " : "") + json_string(key) + ": " + python_value(item);
      return out + "}";
    }
    default:
      return to_text(value);
  }
}

bool is_text(const Value& value) {
  if (value.kind() == Value::Kind::string) return find_invalid_utf8(value.string()) == std::string_view::npos;
  if (value.kind() == Value::Kind::list)
    return std::all_of(value.list().begin(), value.list().end(), is_text);
  if (value.kind() == Value::Kind::table) {
    return std::all_of(value.table().begin(), value.table().end(), [](const auto& entry) {
      return find_invalid_utf8(entry.first) == std::string_view::npos && is_text(entry.second);
    });
  }
  return true;
}

bool is_finite(const Value& value) {
  if (value.kind() == Value::Kind::floating) return std::isfinite(value.floating());
  if (value.kind() == Value::Kind::list)
    return std::all_of(value.list().begin(), value.list().end(), is_finite);
  if (value.kind() == Value::Kind::table) {
    return std::all_of(value.table().begin(), value.table().end(),
                       [](const auto& entry) { return is_finite(entry.second); });
  }
  return true;
}

// --- Hydra ---

std::string hydra_string(const std::string& text) {
  std::string out = "'";
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool interpolation = text.compare(i, 2, "${") == 0;
    if (text[i] == '\'' || text[i] == '\\' || interpolation) out += '\\';
    out += text[i];
  }
  return out + "'";
}

std::string hydra_value(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::none:
      return "null";
    case Value::Kind::string:
      return hydra_string(value.string());
    case Value::Kind::list: {
      std::string out = "[";
      for (const Value& item : value.list()) out += (out.size() > 1 ? "," : "") + hydra_value(item);
      return out + "]";
    }
    case Value::Kind::table: {
      std::string out = "{";
      for (const auto& [key, item] : value.table())
        out += (out.size() > 1 ? "," : "") + hydra_string(key) + ":" + hydra_value(item);
      return out + "}";
    }
    default:
      return to_text(value);
  }
}

/// Whether a text within the value holds the character.
bool holds(const Value& value, char wanted) {
  if (value.kind() == Value::Kind::string) return value.string().find(wanted) != std::string::npos;
  if (value.kind() == Value::Kind::list) {
    return std::any_of(value.list().begin(), value.list().end(),
                       [wanted](const Value& item) { return holds(item, wanted); });
  }
  if (value.kind() == Value::Kind::table) {
    return std::any_of(value.table().begin(), value.table().end(), [wanted](const auto& entry) {
      return entry.first.find(wanted) != std::string::npos || holds(entry.second, wanted);
    });
  }
  return false;
}

/// Settings by section, in the map's order.
std::map<std::string, std::vector<const Setting*>> by_section(const Config& config) {
  std::map<std::string, std::vector<const Setting*>> sections;
  for (const auto& [path, setting] : config.settings) {
    if (path.find('.') != std::string::npos) sections[std::string(section_of(path))].push_back(&setting);
  }
  return sections;
}

std::string key_of(const Setting& setting) {
  return setting.path.substr(setting.path.find('.') + 1);
}

bool is_bare(const std::string& key) {
  return !key.empty() && std::all_of(key.begin(), key.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

bool is_python_name(const std::string& key) {
  return is_bare(key) && key.find('-') == std::string::npos && (key[0] < '0' || key[0] > '9');
}

class Writer {
 public:
  Writer(const Config& config, const SchemaView& view) : config_(config), view_(view) {}

  WrittenConfig toml() {
    const OpenSections open = open_sections(config_, view_);
    if (!open.names.empty())
      out_.text += "open = " +
                   (open.all ? "true" : to_text(Value(Value::List(open.names.begin(), open.names.end())))) +
                   "\n";
    for (const auto& [section, settings] : by_section(config_)) {
      std::string body;
      for (const Setting* setting : settings) {
        const bool is_none = setting->value.is_none();
        if (is_none && section == kEnvironmentSection) continue;
        const bool left_open = std::find(open.names.begin(), open.names.end(), section) != open.names.end();
        if (is_none && !left_open && is_default(setting->path, setting->value)) continue;  // says nothing
        const bool said_by_name = is_none && reads_none(setting->path);
        if (contains_none(setting->value) && !said_by_name) {
          leave(setting->path, "TOML has no value for none");
          continue;
        }
        const std::string key = key_of(*setting);
        body += (is_bare(key) ? key : json_string(key)) + " = " +
                (said_by_name ? "\"none\"" : to_text(setting->value)) + "\n";
      }
      if (!body.empty()) out_.text += (out_.text.empty() ? "[" : "\n[") + section + "]\n" + body;
    }
    return finish();
  }

  WrittenConfig yaml() {
    for (const auto& [section, settings] : by_section(config_)) {
      std::string body;
      for (const Setting* setting : settings) {
        if (skip(*setting, false)) continue;
        const std::string key = key_of(*setting);
        const bool plain = is_bare(key) && typed_yaml_scalar(key, YamlScalars::python) == Value(key);
        body += "  " + (plain ? key : json_string(key)) + ": " + yaml_value(setting->value) + "\n";
      }
      if (!body.empty()) out_.text += (section == kEnvironmentSection ? "env_vars" : section) + ":\n" + body;
    }
    return finish();
  }

  WrittenConfig python() {
    std::string variables;
    for (const auto& [section, settings] : by_section(config_)) {
      for (const Setting* setting : settings) {
        if (skip(*setting, true)) continue;
        if (section == kEnvironmentSection) {
          variables += (variables.empty() ? "" : ", ") + json_string(key_of(*setting)) + ": " +
                       python_value(setting->value);
        } else if (!is_python_name(key_of(*setting))) {
          leave(setting->path, "Python has no such name");
        } else if (setting->path == "mixed_precision.recipe") {
          out_.text += "cfg.mixed_precision = " + python_value(setting->value) + "\n";
        } else {
          out_.text += "cfg." + setting->path + " = " + python_value(setting->value) + "\n";
        }
      }
    }
    if (!variables.empty()) out_.text += "cfg.env_vars = {" + variables + "}\n";
    return finish();
  }

  WrittenConfig hydra() {
    for (const auto& [section, settings] : by_section(config_)) {
      for (const Setting* setting : settings) {
        if (skip(*setting, false)) continue;
        if (holds(setting->value, '\n')) {
          leave(setting->path, "an override is one line");
          continue;
        }
        const std::string path =
            section == kEnvironmentSection ? "++env_vars." + key_of(*setting) : setting->path;
        out_.text += path + "=" + hydra_value(setting->value) + "\n";
      }
    }
    return finish();
  }

  WrittenConfig env() {
    for (const auto& [section, settings] : by_section(config_)) {
      for (const Setting* setting : settings) {
        if (section != kEnvironmentSection || setting->value.is_none()) continue;
        if (setting->value == Value("?")) {
          leave(setting->path, "the value is open");
          continue;
        }
        const std::string value =
            setting->value.kind() == Value::Kind::string ? setting->value.string() : to_text(setting->value);
        out_.text += "export " + key_of(*setting) + "=" + shell_quoted(value) + "\n";
      }
    }
    return finish();
  }

 private:
  void leave(std::string path, std::string why) {
    out_.left_out.push_back({std::move(path), std::move(why), WrittenConfig::LeftOut::Kind::lost});
  }

  /// True, with the reason noted, for what a config of the framework cannot hold.
  bool skip(const Setting& setting, bool finite_only) {
    if (is_own_section(section_of(setting.path))) {
      // The front-end is said by the format itself.
      if (setting.path != "target.frontend") leave(setting.path, "only Capstan reads this section");
      return true;
    }
    if (setting.value == Value("?")) return leave(setting.path, "the value is open"), true;
    if (section_of(setting.path) == kEnvironmentSection && setting.value.is_none()) return true;  // not set
    if (finite_only && !is_finite(setting.value))
      return leave(setting.path, "no literal stands for inf or nan"), true;
    return false;
  }

  WrittenConfig finish() {
    std::sort(out_.left_out.begin(), out_.left_out.end(),
              [](const auto& a, const auto& b) { return a.path < b.path; });
    return std::move(out_);
  }

  bool is_default(const std::string& path, const Value& value) const {
    const KeySpec* spec = view_.find(path).spec;
    return spec != nullptr && spec->has_default && spec->default_text.empty() && spec->default_value == value;
  }
  /// The word "none" is read as none where no string of that name fits.
  bool reads_none(const std::string& path) const {
    const KeySpec* spec = view_.find(path).spec;
    Value word("none");
    return spec != nullptr && !conform(word, *spec) && word.is_none();
  }

  const Config& config_;
  const SchemaView& view_;
  WrittenConfig out_;
};

WrittenConfig write_settings(const Config& config, const SchemaView& view, ExportFormat format) {
  Writer writer(config, view);
  switch (format) {
    case ExportFormat::toml:
      return writer.toml();
    case ExportFormat::bridge_yaml:
      return writer.yaml();
    case ExportFormat::megatron_args:
      return write_arguments(config, view);
    case ExportFormat::python:
      return writer.python();
    case ExportFormat::hydra:
      return writer.hydra();
    case ExportFormat::env:
      return writer.env();
  }
  return {};
}

}  // namespace

const char* export_format_name(ExportFormat format) {
  for (const auto& [known, name] : kFormatNames) {
    if (known == format) return name;
  }
  return "?";
}

std::optional<ExportFormat> parse_export_format(std::string_view name) {
  for (const auto& [format, known] : kFormatNames) {
    if (name == known) return format;
  }
  return std::nullopt;
}

WrittenConfig write_config(const Config& config, const SchemaView& view, ExportFormat format) {
  // A command line and variables hold any bytes but NUL; texts of a config hold no invalid UTF-8, and can
  // write NUL as an escape.
  const bool any_bytes = format == ExportFormat::env || format == ExportFormat::megatron_args;
  const bool escapes = format != ExportFormat::hydra && !any_bytes;
  std::vector<WrittenConfig::LeftOut> unsayable;
  for (const auto& [path, setting] : config.settings) {
    const bool concerned = format != ExportFormat::env || section_of(path) == kEnvironmentSection;
    const char* const why = !any_bytes && !is_text(setting.value) ? "it holds bytes that are no valid UTF-8"
                            : !escapes && concerned && holds(setting.value, '\0')
                                ? "it holds a NUL character, where arguments and variables end"
                                : nullptr;
    if (why != nullptr) unsayable.push_back({path, why, WrittenConfig::LeftOut::Kind::lost});
  }
  WrittenConfig written;
  if (unsayable.empty()) {
    written = write_settings(config, view, format);
  } else {
    Config rest = config;
    for (const WrittenConfig::LeftOut& left : unsayable) rest.settings.erase(left.path);
    written = write_settings(rest, view, format);
    written.left_out.insert(written.left_out.end(), unsayable.begin(), unsayable.end());
  }
  if (format == ExportFormat::toml || format == ExportFormat::env) return written;
  OpenSections open = open_sections(config, view);
  if (open.all) open.names = {"open"};
  for (std::string& name : open.names) {
    written.left_out.push_back({std::move(name), "keys that are not set have values that are not known",
                                WrittenConfig::LeftOut::Kind::lost});
  }
  std::sort(written.left_out.begin(), written.left_out.end(),
            [](const auto& a, const auto& b) { return a.path < b.path; });
  return written;
}

}  // namespace capstan
