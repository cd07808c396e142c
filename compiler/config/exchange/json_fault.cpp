#include "compiler/config/exchange/json_fault.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "grammar/source/byte_order_mark.h"

namespace capstan {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";
constexpr std::size_t kMaxDepth = 64;  // as the reader behind it

/// Takes every value and keeps none; remembers where the text stops being JSON.
struct FaultFinder : nlohmann::json_sax<nlohmann::json> {
  std::size_t place = 0;
  std::size_t depth = 0;
  bool too_deep = false, out_of_range = false;

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return open(); }
  bool key(string_t&) override { return true; }
  bool end_object() override { return --depth, true; }
  bool start_array(std::size_t) override { return open(); }
  bool end_array() override { return --depth, true; }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::json::exception& fault) override {
    constexpr int kNumberOutOfRange = 406;
    place = position;
    out_of_range = fault.id == kNumberOutOfRange;
    return false;
  }

 private:
  bool open() { return !(too_deep = ++depth > kMaxDepth); }
};

/// NaN, Infinity and -Infinity as numbers of the same length.
std::string without_python_numbers(std::string_view text) {
  std::string out(text);
  for (std::size_t at = 0; at < out.size(); ++at) {
    if (out[at] == '"') {
      for (++at; at < out.size() && out[at] != '"'; ++at) at += out[at] == '\\';
      continue;
    }
    for (const std::string_view word :
         {std::string_view("NaN"), std::string_view("-Infinity"), std::string_view("Infinity")}) {
      if (out.compare(at, word.size(), word) != 0) continue;
      out.replace(at, word.size(), "0" + std::string(word.size() - 1, ' '));
      break;
    }
  }
  return out;
}

/// The opening quote of the string that `at` stands in; npos outside of strings.
std::size_t string_around(std::string_view text, std::size_t at) {
  std::size_t open = std::string_view::npos;
  for (std::size_t i = 0; i < std::min(at, text.size()); ++i) {
    if (open != std::string_view::npos && text[i] == '\\')
      ++i;
    else if (text[i] == '"')
      open = open == std::string_view::npos ? i : std::string_view::npos;
  }
  return open;
}

/// `\ud800` without its other half; the fault lies at its end or behind it.
bool is_half_of_pair(std::string_view text, std::size_t at) {
  const std::size_t escape = text.rfind("\\u", at);
  if (escape == std::string_view::npos || at - escape > 6 || escape + 4 > text.size()) return false;
  const char first = static_cast<char>(text[escape + 2] | 0x20),
             second = static_cast<char>(text[escape + 3] | 0x20);
  return first == 'd' && std::string_view("89abcdef").find(second) != std::string_view::npos;
}

std::string explain(std::string_view text, std::size_t at) {
  if (at >= text.size()) return "the text ends inside of the JSON";
  const std::string_view rest = text.substr(at);
  const std::size_t before = at == 0 ? std::string_view::npos : text.find_last_not_of(kBlanks, at - 1);
  const char last = before == std::string_view::npos ? ' ' : text[before];
  if (rest.starts_with("//") || rest.starts_with("/*") || rest.starts_with('#'))
    return "JSON has no comments";
  if ((rest.front() == '}' || rest.front() == ']') && last == ',')
    return "a comma stands in front of the closing bracket";
  if (rest.front() == '\'') return "JSON has double quotes only";
  if (rest.starts_with("True") || rest.starts_with("False") || rest.starts_with("None"))
    return "JSON writes `true`, `false` and `null`";
  const bool value_ends = last == '"' || last == '}' || last == ']' || (last >= '0' && last <= '9') ||
                          (last >= 'a' && last <= 'z');
  if (value_ends && (rest.front() == '"' || rest.front() == '{' || rest.front() == '['))
    return "a comma or a colon is missing in front of this";
  return "this is no JSON";
}

}  // namespace

std::optional<JsonFault> find_json_fault(std::string_view text) {
  const std::size_t mark = byte_order_mark_size(text);
  const std::string plain = without_python_numbers(text.substr(mark));
  FaultFinder finder;
  if (nlohmann::json::sax_parse(plain, &finder)) return std::nullopt;
  if (finder.too_deep) return std::nullopt;  // the reader says so, with its place
  // The position counts the characters read: the fault is the last of them, or the beginning of its word.
  std::size_t at = std::min(finder.place == 0 ? 0 : finder.place - 1, plain.size());
  const auto is_word = [&](std::size_t index) {
    const char c = plain[index];
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '/';
  };
  while (at > 0 && at < plain.size() && is_word(at) && is_word(at - 1)) --at;
  std::string message = finder.out_of_range ? "this number is out of range" : explain(plain, at);
  if (const std::size_t open = string_around(plain, at); open != std::string_view::npos) {
    const bool unclosed = at >= plain.size() || plain[at] == '\n' || plain[at] == '\r';
    message = unclosed                     ? "the quote is not closed"
              : is_half_of_pair(plain, at) ? "half a pair of surrogates stands for no character"
              : plain[at] == '\\' || plain[at - 1] == '\\' ? "JSON has no such escape"
                                                           : "JSON allows no such character in a string";
    if (unclosed) at = open;
  }
  const auto begin = static_cast<std::uint32_t>(std::min(mark + at, text.size()));
  const auto end = static_cast<std::uint32_t>(std::min<std::size_t>(begin + 1, text.size()));
  return JsonFault{begin, end, std::move(message)};
}

}  // namespace capstan
