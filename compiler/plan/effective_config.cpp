#include "compiler/plan/effective_config.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/diagnostics/codes.h"
#include "compiler/facts/derive.h"
#include "grammar/source/comma_words.h"
#include "grammar/source/utf8.h"

namespace capstan::plan {

EffectiveConfig::EffectiveConfig(const Config& config, const SchemaView& schema, const Facts* final_facts,
                                 const SourceMap* sources, Sink& sink)
    : config_(config), schema_(schema), final_facts_(final_facts), sources_(sources), sink_(sink) {}

Value EffectiveConfig::value(std::string_view path) {
  note_used(path);
  FactId id = 0;
  if (final_facts_ != nullptr && final_facts_->names != nullptr && final_facts_->names->find(path, id) &&
      id < final_facts_->values.size() && final_facts_->values[id].state == Fact::State::known) {
    return final_facts_->values[id].value;
  }
  FactNames names;
  id = names.intern(path);
  const Facts facts = derive_facts(config_, schema_, names);
  return facts.values[id].state == Fact::State::known ? facts.values[id].value : Value();
}

Span EffectiveConfig::place_of(std::string_view path) const {
  const Setting* setting = config_.find(path);
  if (setting == nullptr && !path.empty()) {
    // A derived fact stands where its source does: the world size at `cluster.nodes`.
    FactNames names;
    const FactId id = names.intern(path);
    setting = derive_facts(config_, schema_, names).values[id].setting;
  }
  if (setting == nullptr) return {};
  return setting->origin.value.exists() ? setting->origin.value : setting->origin.key;
}

void EffectiveConfig::problem(const char* code, std::string_view path, std::string message,
                              std::string help) {
  Diagnostic diagnostic = start_problem(code, std::move(message), place_of(path));
  diagnostic.keys = {std::string(path)};
  refused_.insert(std::string(path));
  if (!help.empty()) diagnostic.notes.push_back({Note::Kind::help, std::move(help), {}});
  sink_.report(std::move(diagnostic));
}

void EffectiveConfig::require(std::string_view path, const char* what) {
  if (is_set(path)) {
    // Set, but to something impossible: where its reader has said so, once is enough.
    if (was_refused(path)) return;
    const Value found = value(path);
    problem("LW003", path,
            fmt::format("`{}` is {}; a plan needs {} ({})", path, to_text(found),
                        found.is_number() ? "a positive number" : "a value", what));
    return;
  }
  problem("LW002", path, fmt::format("a plan needs `{}` ({}), and nothing sets it", path, what),
          fmt::format("set `{}`", path));
}

bool EffectiveConfig::boolean(std::string_view path, bool otherwise) {
  const Value found = value(path);
  if (found.is_none()) return otherwise;
  if (found.kind() == Value::Kind::boolean) return found.boolean();
  problem("LW003", path, fmt::format("`{}` is {}; a plan needs true or false", path, to_text(found)));
  return otherwise;
}

std::optional<std::int64_t> EffectiveConfig::integer(std::string_view path, std::int64_t low,
                                                     std::int64_t high) {
  const Value found = value(path);
  if (found.is_none()) return std::nullopt;
  if (found.kind() == Value::Kind::integer && found.integer() >= low && found.integer() <= high)
    return found.integer();
  problem("LW003", path,
          fmt::format("`{}` is {}; a plan needs an integer from {} to {}", path, to_text(found), low, high));
  return std::nullopt;
}

std::int64_t EffectiveConfig::integer(std::string_view path, std::int64_t low, std::int64_t high,
                                      std::int64_t otherwise) {
  return integer(path, low, high).value_or(otherwise);
}

std::optional<double> EffectiveConfig::number(std::string_view path, double low, double high) {
  const Value found = value(path);
  if (found.is_none()) return std::nullopt;
  if (found.is_number() && found.number() >= low && found.number() <= high) return found.number();
  problem("LW003", path,
          fmt::format("`{}` is {}; a plan needs a number from {} to {}", path, to_text(found), low, high));
  return std::nullopt;
}

double EffectiveConfig::number(std::string_view path, double low, double high, double otherwise) {
  return number(path, low, high).value_or(otherwise);
}

std::string EffectiveConfig::text(std::string_view path, std::string_view otherwise) {
  const Value found = value(path);
  if (found.is_none()) return std::string(otherwise);
  if (found.kind() == Value::Kind::string) return found.string();
  problem("LW003", path, fmt::format("`{}` is {}; a plan needs a string", path, to_text(found)));
  return std::string(otherwise);
}

std::string EffectiveConfig::file_name(std::string_view path) {
  std::string name = file_name_as_stated(path);
  if (find_invalid_utf8(name) == std::string::npos) return name;
  problem("LW003", path,
          fmt::format(
              "the name of the file that `{}` states is no valid UTF-8, and a plan holds nothing else", path),
          "give the file, or its folder, another name");
  return {};
}

std::string EffectiveConfig::file_name_as_stated(std::string_view path) {
  std::string name = text(path, "");
  const Setting* setting = config_.find(path);
  if (name.empty() || name.front() == '/' || setting == nullptr || sources_ == nullptr) return name;
  const Span place = setting->origin.value.exists() ? setting->origin.value : setting->origin.key;
  if (!place.exists() || (*sources_)[place.source].kind() != SourceKind::file) return name;
  const std::string& file = (*sources_)[place.source].name();
  const std::size_t slash = file.rfind('/');
  return slash == std::string::npos ? name : file.substr(0, slash + 1) + name;
}

std::vector<std::string> EffectiveConfig::words(std::string_view path) {
  const Value found = value(path);
  std::vector<std::string> words;
  if (found.kind() == Value::Kind::string) {
    words = comma_words(found.string());
  } else if (found.kind() == Value::Kind::list) {
    for (const Value& item : found.list()) {
      if (item.kind() == Value::Kind::string) {
        words.push_back(item.string());
      } else {
        problem("LW003", path,
                fmt::format("`{}` has the element {}; a plan needs strings", path, to_text(item)));
      }
    }
  } else if (!found.is_none()) {
    problem("LW003", path, fmt::format("`{}` is {}; a plan needs a list of strings", path, to_text(found)));
  }
  return words;
}

std::optional<Value> EffectiveConfig::default_of(std::string_view path) const {
  const KeyView view = schema_.find(path);
  if (view.spec == nullptr || !view.spec->has_default) return std::nullopt;
  return view.spec->default_value;
}

}  // namespace capstan::plan
