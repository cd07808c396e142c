#include "compiler/config/pipeline_layout.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <string>

#include "grammar/source/ascii_case.h"

namespace capstan {
namespace {

constexpr std::size_t kMaxLength = 65536;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// `*12` at `at`: the factor, and `at` moved behind it; none (and `at` untouched) where no factor stands.
std::optional<std::size_t> factor_at(std::string_view text, std::size_t& at) {
  if (at + 1 >= text.size() || text[at] != '*' || !is_digit(text[at + 1])) return std::nullopt;
  std::size_t factor = 0;
  for (++at; at < text.size() && is_digit(text[at]); ++at)
    factor = std::min(factor * 10 + static_cast<std::size_t>(text[at] - '0'), kMaxLength + 1);
  return factor;
}

bool append(std::string& out, std::string_view part, std::size_t times) {
  if (!part.empty() && times > (kMaxLength - out.size()) / part.size()) return false;
  for (std::size_t i = 0; i < times; ++i) out += part;
  return out.size() <= kMaxLength;
}

/// `(tt|)*2` -> `tt|tt|`: a bracket ends at the first `)`; one without a factor stays, and is refused later.
std::optional<std::string> unroll_brackets(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t close = text[at] == '(' ? text.find(')', at + 1) : std::string_view::npos;
    if (close != std::string_view::npos && close > at + 1) {
      std::size_t end = close + 1;
      if (const auto factor = factor_at(text, end)) {
        if (!append(out, text.substr(at + 1, close - at - 1), *factor)) return std::nullopt;
        at = end;
        continue;
      }
    }
    if (!append(out, text.substr(at++, 1), 1)) return std::nullopt;
  }
  return out;
}

/// `t*3` -> `ttt`
std::optional<std::string> unroll_letters(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view letter = text.substr(at++, 1);
    if (!append(out, letter, factor_at(text, at).value_or(1))) return std::nullopt;
  }
  return out;
}

std::optional<PipelineLayout> read_text(std::string_view text) {
  if (text.size() > kMaxLength) return std::nullopt;
  std::string plain(text);
  plain.erase(std::remove(plain.begin(), plain.end(), ','), plain.end());
  const std::optional<std::string> flat = unroll_brackets(plain);
  const std::optional<std::string> letters = flat ? unroll_letters(*flat) : std::nullopt;
  if (!letters) return std::nullopt;
  PipelineLayout layout(1);
  for (const char letter : *letters) {
    switch (letter) {
      case '|':
        layout.emplace_back();
        break;
      case 'E':
        layout.back().push_back(PipelineLayer::embedding);
        break;
      case 't':
        layout.back().push_back(PipelineLayer::decoder);
        break;
      case 'm':
        layout.back().push_back(PipelineLayer::mtp);
        break;
      case 'L':
        layout.back().push_back(PipelineLayer::loss);
        break;
      default:
        return std::nullopt;
    }
  }
  return layout;
}

constexpr std::string_view kNames[] = {"embedding", "decoder", "mtp", "loss", "encoder"};

std::string_view name_of(PipelineLayer layer) {
  return kNames[static_cast<std::size_t>(layer)];
}

std::optional<PipelineLayer> layer_named(std::string_view name) {
  const auto* found = std::find(std::begin(kNames), std::end(kNames), name);
  if (found == std::end(kNames)) return std::nullopt;
  return static_cast<PipelineLayer>(found - std::begin(kNames));
}

std::optional<PipelineLayout> read_list(const Value::List& stages) {
  PipelineLayout layout;
  std::size_t layers = 0;
  for (const Value& stage : stages) {
    if (stage.kind() != Value::Kind::list) return std::nullopt;
    layout.emplace_back();
    for (const Value& entry : stage.list()) {
      if (entry.kind() != Value::Kind::string) return std::nullopt;
      std::string_view name = entry.string();
      while (!name.empty() && std::isspace(static_cast<unsigned char>(name.front()))) name.remove_prefix(1);
      while (!name.empty() && std::isspace(static_cast<unsigned char>(name.back()))) name.remove_suffix(1);
      const auto layer = layer_named(lower_ascii(name));
      if (!layer || ++layers > kMaxLength) return std::nullopt;
      layout.back().push_back(*layer);
    }
  }
  if (layout.size() > kMaxLength) return std::nullopt;
  return layout;
}

Value count_of(const PipelineLayout& layout, PipelineLayer layer) {
  std::int64_t count = 0;
  for (const auto& stage : layout) count += std::count(stage.begin(), stage.end(), layer);
  return Value(count);
}

bool holds(const std::vector<PipelineLayer>& stage, PipelineLayer layer) {
  return std::find(stage.begin(), stage.end(), layer) != stage.end();
}

}  // namespace

std::optional<PipelineLayout> read_pipeline_layout(const Value& layout) {
  if (layout.kind() == Value::Kind::string) return read_text(layout.string());
  if (layout.kind() == Value::Kind::list) return read_list(layout.list());
  return std::nullopt;
}

Value pipeline_layout_fact(const Value& value, std::string_view fact) {
  const std::optional<PipelineLayout> layout = read_pipeline_layout(value);
  if (!layout) return {};
  if (fact == "stages") return Value(static_cast<std::int64_t>(layout->size()));
  if (const auto layer = layer_named(fact)) return count_of(*layout, *layer);

  std::vector<PipelineLayer> flat;
  for (const auto& stage : *layout) flat.insert(flat.end(), stage.begin(), stage.end());
  if (fact == "first" && !flat.empty()) return Value(std::string(name_of(flat.front())));
  if (fact == "last" && !flat.empty()) return Value(std::string(name_of(flat.back())));
  if (fact == "decoder_after_mtp") {
    const auto mtp = std::find(flat.begin(), flat.end(), PipelineLayer::mtp);
    return Value(std::find(mtp, flat.end(), PipelineLayer::decoder) != flat.end());
  }
  const auto has_mtp = [](const auto& stage) { return holds(stage, PipelineLayer::mtp); };
  if (fact == "first_mtp_stage") {
    const auto found = std::find_if(layout->begin(), layout->end(), has_mtp);
    if (found != layout->end()) return Value(static_cast<std::int64_t>(found - layout->begin()));
  }
  if (fact == "last_mtp_stage") {
    const auto found = std::find_if(layout->rbegin(), layout->rend(), has_mtp);
    if (found != layout->rend()) return Value(static_cast<std::int64_t>(layout->rend() - found) - 1);
  }
  return {};
}

}  // namespace capstan
