#include "compiler/facts/gpu.h"

#include <array>
#include <cctype>
#include <cmath>
#include <utility>

namespace capstan {
namespace {

constexpr std::array<std::pair<std::string_view, std::int64_t>, 22> kModels = {{
    {"v100", 70},  {"t4", 75},     {"a100", 80},  {"a800", 80},  {"a30", 80},   {"a10", 86},
    {"a10g", 86},  {"a40", 86},    {"l4", 89},    {"l40", 89},   {"l40s", 89},  {"h20", 90},
    {"h100", 90},  {"h200", 90},   {"h800", 90},  {"gh200", 90}, {"b200", 100}, {"gb200", 100},
    {"b300", 103}, {"gb300", 103}, {"thor", 110}, {"gb10", 121},
}};

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

const std::pair<std::string_view, std::int64_t>* find_model(std::string_view lower_text) {
  // Word by word, so that "a100" is not found in "ga1000".
  std::size_t begin = 0;
  while (begin < lower_text.size()) {
    std::size_t end = lower_text.find_first_of(" -_/", begin);
    if (end == std::string_view::npos) end = lower_text.size();
    const std::string_view word = lower_text.substr(begin, end - begin);
    for (const auto& model : kModels) {
      if (model.first == word) return &model;
    }
    begin = end + 1;
  }
  return nullptr;
}

}  // namespace

std::optional<std::int64_t> compute_capability_of(std::string_view gpu) {
  const auto* model = find_model(lower(gpu));
  return model == nullptr ? std::nullopt : std::optional(model->second);
}

std::string gpu_model(std::string_view gpu) {
  std::string text = lower(gpu);
  const auto* model = find_model(text);
  return model == nullptr ? text : std::string(model->first);
}

std::optional<std::int64_t> read_compute_capability(const Value& value) {
  const auto plausible = [](std::int64_t capability) {
    return capability >= 50 && capability < 1000 ? std::optional(capability) : std::nullopt;
  };
  switch (value.kind()) {
    case Value::Kind::integer: {
      const std::int64_t number = value.integer();
      if (number >= 5 && number < 50) return number * 10;
      return plausible(number);
    }
    case Value::Kind::floating: {
      const double number = value.floating();
      if (!(number >= 5.0 && number < 50.0)) return std::nullopt;
      return plausible(std::llround(number * 10.0));
    }
    case Value::Kind::string: {
      std::string_view text = value.string();
      if (text.starts_with("sm_")) text.remove_prefix(3);
      if (!text.empty() && (text.back() == 'a' || text.back() == 'f')) text.remove_suffix(1);  // sm_90a
      std::int64_t whole = 0, minor = -1;
      std::size_t digits = 0;
      for (std::size_t at = 0; at < text.size(); ++at) {
        if (text[at] == '.' && minor < 0 && digits > 0) {
          minor = 0;
          continue;
        }
        if (text[at] < '0' || text[at] > '9' || ++digits > 4) return std::nullopt;
        if (minor < 0)
          whole = whole * 10 + (text[at] - '0');
        else
          minor = minor * 10 + (text[at] - '0');
      }
      if (digits == 0) return std::nullopt;
      if (minor >= 0) return minor < 10 ? plausible(whole * 10 + minor) : std::nullopt;
      return plausible(whole < 50 ? whole * 10 : whole);
    }
    default:
      return std::nullopt;
  }
}

}  // namespace capstan
