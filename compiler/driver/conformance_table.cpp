#include "compiler/driver/conformance_table.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "compiler/driver/usage_error.h"
#include "grammar/source/source_file.h"

namespace capstan {
namespace {

constexpr int kMaxDepth = 16;

/// A line of a table, for messages.
struct Place {
  const std::string& path;
  std::size_t line;
  [[noreturn]] void fail(const std::string& reason) const {
    throw UsageError(fmt::format("{}:{}: {}", path, line, reason));
  }
};

Value to_value(const nlohmann::json& json, const Place& place, int depth = 0) {
  if (depth > kMaxDepth) place.fail("the value nests too deep");
  switch (json.type()) {
    case nlohmann::json::value_t::null:
      return {};
    case nlohmann::json::value_t::boolean:
      return Value(json.get<bool>());
    case nlohmann::json::value_t::number_integer:
      return Value(json.get<std::int64_t>());
    case nlohmann::json::value_t::number_unsigned: {
      const auto number = json.get<std::uint64_t>();
      if (number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
        place.fail("an integer does not fit in 64 bits");
      return Value(static_cast<std::int64_t>(number));
    }
    case nlohmann::json::value_t::number_float:
      return Value(json.get<double>());
    case nlohmann::json::value_t::string:
      return Value(json.get<std::string>());
    case nlohmann::json::value_t::array: {
      Value::List list;
      for (const nlohmann::json& item : json) list.push_back(to_value(item, place, depth + 1));
      return Value(std::move(list));
    }
    case nlohmann::json::value_t::object: {
      if (json.size() == 1 && json.contains("enum") && json["enum"].is_string())
        return Value(json["enum"].get<std::string>());
      Value::Table table;
      for (const auto& [key, item] : json.items()) table.emplace_back(key, to_value(item, place, depth + 1));
      return Value(std::move(table));
    }
    default:
      place.fail("the line holds what no config holds");
  }
}

void set(Config& config, const std::string& path, Value value) {
  Setting& setting = config.settings[path];
  setting.path = path;
  setting.value = std::move(value);
  setting.origin.kind = OriginKind::file;
}

Version version_of(const nlohmann::json& json, const Place& place) {
  const auto version = json.is_string() ? parse_version(json.get<std::string>()) : std::nullopt;
  if (!version) place.fail(fmt::format("`{}` is no version", json.dump()));
  return *version;
}

void read_arch(const nlohmann::json& json, const Place& place, Config& config) {
  if (!json.is_array() || json.size() != 2 || !json[0].is_number_integer() || !json[1].is_number_integer()) {
    place.fail("`arch` is a pair of integers such as [9, 0]");
  }
  set(config, "target.compute_capability",
      Value(json[0].get<std::int64_t>() * 10 + json[1].get<std::int64_t>()));
}

ConformanceCase read_case(const nlohmann::json& json, const Place& place) {
  ConformanceCase one;
  set(one.config, "target.compute_capability", Value(90));
  for (const auto& [section, content] : json.items()) {
    if (section == "id") continue;
    if (section == "arch") {
      read_arch(content, place, one.config);
    } else if (section == "te") {
      one.components.emplace_back("transformer-engine", version_of(content, place));
    } else if (section == "torch") {
      one.components.emplace_back("torch", version_of(content, place));
    } else {
      const std::vector<std::string>& sections = builtin_schema().sections();
      if (!std::binary_search(sections.begin(), sections.end(), section) && section != kEnvironmentSection)
        place.fail(fmt::format("no release has a section `{}`", section));
      if (!content.is_object()) place.fail(fmt::format("`{}` is no table of keys", section));
      for (const auto& [key, value] : content.items())
        set(one.config, section + '.' + key, to_value(value, place));
    }
  }
  return one;
}

template <typename Take>
void for_lines(const std::string& path, const Take& take) {
  ReadFailure failure;
  const std::optional<std::string> text = read_text_file(path, failure);
  if (!text) throw UsageError(fmt::format("cannot read `{}`: {}", path, failure.reason));
  std::size_t line = 0;
  for (std::size_t begin = 0; begin < text->size();) {
    const std::size_t end = std::min(text->find('\n', begin), text->size());
    const Place place{path, ++line};
    const std::string_view content = std::string_view(*text).substr(begin, end - begin);
    begin = end + 1;
    if (content.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const nlohmann::json json = nlohmann::json::parse(content, nullptr, false);
    if (!json.is_object()) place.fail("the line is no JSON object");
    if (!json.contains("id") || !json["id"].is_string()) place.fail("the line has no `id`");
    take(json, place);
  }
}

std::string text_of(const nlohmann::json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

}  // namespace

void read_cases(const std::string& path, ConformanceCases& cases) {
  const std::size_t before = cases.size();
  for_lines(path, [&](const nlohmann::json& json, const Place& place) {
    const bool is_new = cases.emplace(json["id"].get<std::string>(), read_case(json, place)).second;
    if (!is_new) place.fail(fmt::format("case `{}` is given twice", json["id"].get<std::string>()));
  });
  if (cases.size() == before) throw UsageError(fmt::format("`{}` holds no case", path));
}

std::vector<RealVerdict> read_verdicts(const std::string& path) {
  std::vector<RealVerdict> verdicts;
  std::set<std::string> ids;
  for_lines(path, [&](const nlohmann::json& json, const Place& place) {
    RealVerdict verdict;
    verdict.id = json["id"].get<std::string>();
    if (!ids.insert(verdict.id).second)
      place.fail(fmt::format("the verdict on `{}` is given twice", verdict.id));
    const std::string text = text_of(json, "verdict");
    if (text != "accept" && text != "reject") place.fail("`verdict` is neither \"accept\" nor \"reject\"");
    verdict.rejected = text == "reject";
    verdict.stage = text_of(json, "stage");
    verdict.message = text_of(json, "message");
    verdicts.push_back(std::move(verdict));
  });
  if (verdicts.empty()) throw UsageError(fmt::format("`{}` holds no verdict", path));
  return verdicts;
}

std::optional<Stack> stack_of_table(const std::string& path, const Schema& schema) {
  std::string_view rest;
  const std::string stem = std::filesystem::path(path).stem().string();
  rest = stem;
  if (!rest.starts_with("verdicts-")) return std::nullopt;
  rest.remove_prefix(9);
  const std::size_t dash = rest.rfind('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const std::string frontend(rest.substr(0, dash));
  const std::string_view release = rest.substr(dash + 1);
  if (const Stack* stack = schema.find_stack(frontend + '-' + std::string(release))) return *stack;
  const auto version = parse_version(release);
  if (!version) return std::nullopt;
  const Stack* stack = schema.find_stack(fmt::format("{}-{}.{}", frontend, version->major, version->minor));
  return stack != nullptr ? std::optional(*stack) : std::nullopt;
}

}  // namespace capstan
