#include "grammar/override/override_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/spirit/home/x3.hpp>
#include <charconv>
#include <cmath>
#include <string_view>
#include <system_error>

#include "grammar/source/utf8.h"

namespace capstan {
namespace {

namespace x3 = boost::spirit::x3;

constexpr std::size_t kMaxBytes = 1u << 20;
constexpr std::size_t kMaxDepth = 32;
constexpr std::size_t kMaxChoices = 10000;

/// What the semantic actions need: where the text lies, and the first problem they find.
struct Reading {
  SourceId source;
  const char* begin;
  std::optional<SyntaxProblem> problem;

  template <class Range>
  Span span(const Range& range) const {
    return {source, static_cast<std::uint32_t>(range.begin() - begin),
            static_cast<std::uint32_t>(range.end() - begin)};
  }
  Span at(const char* place, const char* end) const {
    const auto offset = static_cast<std::uint32_t>(place - begin);
    return {source, offset, offset + (place < end ? 1u : 0u)};
  }
  void refuse(std::string message, Span where) {
    if (!problem) problem = SyntaxProblem{std::move(message), where, {}};
  }
};
struct ReadingTag;

bool equal_ignoring_case(std::string_view text, std::string_view lower) {
  return std::equal(text.begin(), text.end(), lower.begin(), lower.end(), [](char a, char b) {
    return (a >= 'A' && a <= 'Z' ? static_cast<char>(a + 32) : a) == b;
  });
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Digits with single underscores between them, as Hydra and Python write numbers. Gives the digits alone.
bool take_digits(std::string_view& text, std::string& digits) {
  const std::size_t before = digits.size();
  while (!text.empty()) {
    if (is_digit(text.front())) {
      digits += text.front();
      text.remove_prefix(1);
    } else if (text.front() == '_' && digits.size() > before && text.size() > 1 && is_digit(text[1])) {
      text.remove_prefix(1);
    } else {
      break;
    }
  }
  return digits.size() > before;
}

/// Type of an unquoted value: null, booleans in any case, integers, floats (with inf and nan), else a string.
Value typed(std::string_view text, Reading& reading, Span where) {
  if (equal_ignoring_case(text, "null") || text == "None") return Value();
  if (equal_ignoring_case(text, "true")) return Value(true);
  if (equal_ignoring_case(text, "false")) return Value(false);
  std::string_view rest = text;
  std::string number;
  if (!rest.empty() && (rest.front() == '+' || rest.front() == '-')) {
    if (rest.front() == '-') number += '-';
    rest.remove_prefix(1);
  }
  if (equal_ignoring_case(rest, "inf")) return Value(number.empty() ? HUGE_VAL : -HUGE_VAL);
  if (equal_ignoring_case(rest, "nan")) return Value(std::nan(""));
  const std::size_t sign = number.size();
  const bool whole = take_digits(rest, number);
  if (whole && rest.empty()) {
    const bool leading_zero = number.size() > sign + 1 && number[sign] == '0';
    if (leading_zero) return Value(std::string(text));  // no integer for Hydra either
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
    if (error != std::errc()) reading.refuse(fmt::format("`{}` does not fit in 64 bits", text), where);
    return Value(value);
  }
  bool fraction = false, exponent = false;
  if (!rest.empty() && rest.front() == '.') {
    rest.remove_prefix(1);
    number += '.';
    fraction = take_digits(rest, number);
    if (!fraction && !whole) return Value(std::string(text));
    fraction = true;
  }
  if ((whole || fraction) && !rest.empty() && (rest.front() == 'e' || rest.front() == 'E')) {
    std::string tail = "e";
    std::string_view after = rest.substr(1);
    if (!after.empty() && (after.front() == '+' || after.front() == '-')) {
      tail += after.front();
      after.remove_prefix(1);
    }
    if (take_digits(after, tail)) {
      exponent = true;
      number += tail;
      rest = after;
    }
  }
  if (!rest.empty() || (!fraction && !exponent)) return Value(std::string(text));
  if (number[sign] == '.') number.insert(sign, "0");
  double value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (error == std::errc::result_out_of_range)
    reading.refuse(fmt::format("`{}` is out of range for a float", text), where);
  return Value(value);
}

/// Escapes of unquoted text: a backslash before one of `\()[]{}:=, ` or a tab stands for that character.
std::string unescape(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size() &&
        std::string_view("\\()[]{}:=, \t").find(text[i + 1]) != std::string_view::npos) {
      ++i;
    }
    out += text[i];
  }
  return out;
}

/// Inside quotes a backslash escapes the quote and itself; before other characters it stands for itself.
std::string unquote(std::string_view text) {
  const char quote = text.front();
  text = text.substr(1, text.size() - 2);
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size() &&
        (text[i + 1] == quote || text[i + 1] == '\\' || text.substr(i + 1).starts_with("${"))) {
      ++i;
    }
    out += text[i];
  }
  return out;
}

template <class Range>
std::string_view view(const Range& range) {
  return {&*range.begin(), static_cast<std::size_t>(range.end() - range.begin())};
}

const auto make_quoted = [](auto& context) {
  Reading& reading = x3::get<ReadingTag>(context);
  SyntaxNode& node = x3::_val(context);
  node.span = reading.span(x3::_attr(context));
  node.scalar = Value(unquote(view(x3::_attr(context))));
};

const auto make_unquoted = [](auto& context) {
  Reading& reading = x3::get<ReadingTag>(context);
  SyntaxNode& node = x3::_val(context);
  std::string_view text = view(x3::_attr(context));
  // Blanks inside belong to the value, blanks behind it do not, unless escaped.
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t') &&
         !(text.size() > 1 && text[text.size() - 2] == '\\')) {
    text.remove_suffix(1);
  }
  node.span.source = reading.source;
  node.span.begin = static_cast<std::uint32_t>(text.data() - reading.begin);
  node.span.end = node.span.begin + static_cast<std::uint32_t>(text.size());
  const bool escaped = text.find('\\') != std::string_view::npos;
  node.scalar = escaped ? Value(unescape(text)) : typed(text, reading, node.span);
};

template <SyntaxNode::Kind kind>
constexpr auto start_container = [](auto& context) {
  x3::_val(context).kind = kind;
  x3::_val(context).span = x3::get<ReadingTag>(context).get().span(x3::_attr(context));
};
const auto close_container = [](auto& context) {
  x3::_val(context).span.end = x3::get<ReadingTag>(context).get().span(x3::_attr(context)).end;
};
const auto add_item = [](auto& context) { x3::_val(context).items.push_back(std::move(x3::_attr(context))); };
const auto add_key = [](auto& context) {
  Reading& reading = x3::get<ReadingTag>(context);
  SyntaxNode& node = x3::_val(context);
  const SyntaxNode& key = x3::_attr(context);
  std::string name = key.scalar.kind() == Value::Kind::string ? key.scalar.string() : to_text(key.scalar);
  if (find(node, name) != nullptr)
    reading.refuse(fmt::format("`{}` stands twice in this dict", name), key.span);
  node.entries.push_back({std::move(name), key.span, {}});
};
const auto add_value = [](auto& context) {
  x3::_val(context).entries.back().value = std::move(x3::_attr(context));
};
const auto take_choice = [](auto& context) { x3::_val(context).push_back(std::move(x3::_attr(context))); };

const x3::rule<class ValueRule, SyntaxNode> value = "a value";
const x3::rule<class QuotedRule, SyntaxNode> quoted = "a quoted string";
const x3::rule<class UnquotedRule, SyntaxNode> unquoted = "a value";
const x3::rule<class DictKeyRule, SyntaxNode> dict_key = "a key of the dict";
const x3::rule<class ListRule, SyntaxNode> list = "a list";
const x3::rule<class DictRule, SyntaxNode> dict = "a dict";
const x3::rule<class ChoicesRule, std::vector<SyntaxNode>> choices = "values";

// A character set, not the library's class: that asserts that no byte of a longer letter comes by.
const auto blank = x3::char_(" \t");
const auto blanks = x3::omit[*blank];
const auto escape = x3::lit('\\') >> x3::char_;
const auto single_quoted = x3::raw[x3::lit('\'') > *(escape | ~x3::char_("'\\")) > '\''];
const auto double_quoted = x3::raw[x3::lit('"') > *(escape | ~x3::char_("\"\\")) > '"'];
const auto plain = escape | ~x3::char_("=,'\"()[]{}\\");
const auto key_plain = escape | ~x3::char_("=,'\"()[]{}\\:");

const auto quoted_def = single_quoted[make_quoted] | double_quoted[make_quoted];
const auto unquoted_def = x3::raw[!blank >> plain >> *plain][make_unquoted];
const auto dict_key_def = single_quoted[make_quoted] | double_quoted[make_quoted] |
                          x3::raw[!blank >> key_plain >> *key_plain][make_unquoted];
// The action stands around the expectation: the name of what was expected must be the rule's own.
const auto item = (x3::eps > value)[add_item];
const auto list_end = x3::raw[x3::lit(']')][close_container];
const auto list_must_end = x3::raw[x3::eps > x3::lit(']')][close_container];
const auto list_def = x3::raw[x3::lit('[')][start_container<SyntaxNode::Kind::list>] >> blanks >>
                      (list_end | (item >> blanks >> *(',' >> blanks >> item >> blanks) >> list_must_end));
const auto dict_pair = (x3::eps > dict_key)[add_key] >> blanks >> (x3::eps > x3::lit(':')) >> blanks >>
                       (x3::eps > value)[add_value] >> blanks;
const auto dict_end = x3::raw[x3::lit('}')][close_container];
const auto dict_must_end = x3::raw[x3::eps > x3::lit('}')][close_container];
const auto dict_def = x3::raw[x3::lit('{')][start_container<SyntaxNode::Kind::table>] >> blanks >>
                      (dict_end | (dict_pair >> *(',' >> blanks >> dict_pair) >> dict_must_end));
const auto value_def = list | dict | quoted | unquoted;
const auto choice = (x3::eps > value)[take_choice];
const auto choices_def = choice >> blanks >> *(',' >> blanks >> choice >> blanks);

BOOST_SPIRIT_DEFINE(value, quoted, unquoted, dict_key, list, dict, choices)

/// `text` (a part of the source's text) as values separated by commas; nothing, with the problem, if it is
/// none.
std::optional<std::vector<SyntaxNode>> parse_values(std::string_view text, Reading& reading,
                                                    SyntaxProblem& problem) {
  std::size_t depth = 0;
  for (const char& c : text) {  // the grammar recurses once a bracket
    if (c == '[' || c == '{') ++depth;
    if ((c == ']' || c == '}') && depth > 0) --depth;
    if (depth > kMaxDepth) {
      problem = {fmt::format("nesting is deeper than {} levels", kMaxDepth),
                 reading.at(&c, text.data() + text.size()),
                 {}};
      return std::nullopt;
    }
  }
  const char* at = text.data();
  const char* const end = at + text.size();
  std::vector<SyntaxNode> values;
  const auto whole = x3::with<ReadingTag>(std::ref(reading))[x3::eps > choices];
  try {
    x3::parse(at, end, whole, values);
  } catch (const x3::expectation_failure<const char*>& failure) {
    const char* const place = failure.where();
    std::string expected = failure.which();
    if (expected.size() == 3 && expected.front() == '\'') expected = fmt::format("`{}`", expected[1]);
    problem.where = reading.at(place, end);
    problem.expected = {expected};
    const std::string found = place == end ? "the end" : fmt::format("`{}`", std::string_view(place, 1));
    problem.message = fmt::format("expected {}, found {}", expected, found);
    return std::nullopt;
  }
  if (reading.problem) {
    problem = *reading.problem;
    return std::nullopt;
  }
  if (at != end) {
    problem.where = reading.at(at, end);
    problem.message = fmt::format("`{}` must be quoted or escaped in a value", *at);
    return std::nullopt;
  }
  return values;
}

/// Arguments of `range`: start (default 0), stop, step (default 1); stop is not included.
std::optional<std::vector<SyntaxNode>> expand_range(const std::vector<SyntaxNode>& arguments, Span where,
                                                    SyntaxProblem& problem) {
  const auto refuse = [&](std::string message, Span place) {
    problem = {std::move(message), place, {}};
    return std::nullopt;
  };
  if (arguments.empty() || arguments.size() > 3) return refuse("`range` takes one to three numbers", where);
  bool integers = true;
  for (const SyntaxNode& argument : arguments) {
    if (argument.kind != SyntaxNode::Kind::scalar || !argument.scalar.is_number()) {
      return refuse("`range` takes numbers", argument.span);
    }
    integers = integers && argument.scalar.kind() == Value::Kind::integer;
    if (!std::isfinite(argument.scalar.number()))
      return refuse("`range` takes finite numbers", argument.span);
  }
  const Value start = arguments.size() > 1 ? arguments[0].scalar : Value(0);
  const Value stop = arguments.size() > 1 ? arguments[1].scalar : arguments[0].scalar;
  const Value step = arguments.size() > 2 ? arguments[2].scalar : Value(1);
  if (step.number() == 0) return refuse("the step of `range` is zero", arguments[2].span);
  std::vector<SyntaxNode> out;
  const bool up = step.number() > 0;
  for (std::size_t i = 0;; ++i) {
    SyntaxNode node;
    node.span = where;
    if (integers) {
      // 128 bits: start + i * step of 64-bit numbers cannot overflow before kMaxChoices ends the loop.
      const auto number = static_cast<__int128>(start.integer()) +
                          static_cast<__int128>(step.integer()) * static_cast<__int128>(i);
      if (up ? number >= stop.integer() : number <= stop.integer()) break;
      node.scalar = Value(static_cast<std::int64_t>(number));
    } else {
      const double number = start.number() + step.number() * static_cast<double>(i);
      if (up ? number >= stop.number() : number <= stop.number()) break;
      node.scalar = Value(number);
    }
    if (out.size() == kMaxChoices)
      return refuse(fmt::format("`range` gives more than {} values", kMaxChoices), where);
    out.push_back(std::move(node));
  }
  if (out.empty()) return refuse("`range` gives no value", where);
  return out;
}

bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/// `choice(...)`, `range(...)` and other calls: the name before the parenthesis, if the text is one call.
std::string_view call_name(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size() && (is_name_start(text[at]) || (at > 0 && is_digit(text[at])))) ++at;
  return at > 0 && at < text.size() && text[at] == '(' && text.back() == ')' ? text.substr(0, at)
                                                                             : std::string_view();
}

}  // namespace
std::optional<Override> parse_override(SourceId source, const SourceMap& sources, OverrideMode mode,
                                       SyntaxProblem& problem) {
  return parse_override(Span{source, 0, static_cast<std::uint32_t>(sources[source].bytes().size())}, sources,
                        mode, problem);
}

std::optional<Override> parse_override(Span whole, const SourceMap& sources, OverrideMode mode,
                                       SyntaxProblem& problem) {
  const SourceId source = whole.source;
  std::string_view text = sources.text(whole);
  const char* const begin = sources[source].bytes().data();
  Reading reading{source, begin, std::nullopt};
  const auto refuse = [&](std::string message, Span where) -> std::optional<Override> {
    problem = {std::move(message), where, {}};
    return std::nullopt;
  };
  const auto span = [&](std::string_view part) {
    const auto offset = static_cast<std::uint32_t>(part.data() - begin);
    return Span{source, offset, offset + static_cast<std::uint32_t>(part.size())};
  };
  if (text.size() > kMaxBytes) return refuse("the override is longer than 1 MiB", Span{source, 0, 1});
  if (const std::size_t bad = find_invalid_utf8(text); bad != std::string_view::npos) {
    return refuse(fmt::format("byte 0x{:02X} is no valid UTF-8 here", static_cast<unsigned char>(text[bad])),
                  span(text.substr(bad, 1)));
  }
  while (!text.empty() && std::string_view(" \t\r\n").find(text.front()) != std::string_view::npos)
    text.remove_prefix(1);
  while (!text.empty() && std::string_view(" \t\r\n").find(text.back()) != std::string_view::npos) {
    if (text.size() > 1 && text[text.size() - 2] == '\\') break;
    text.remove_suffix(1);
  }
  const char* const end = text.data() + text.size();

  Override override;
  if (text.starts_with("++"))
    override.kind = Override::Kind::force_add, text.remove_prefix(2);
  else if (text.starts_with("+"))
    override.kind = Override::Kind::add, text.remove_prefix(1);
  else if (text.starts_with("~"))
    override.kind = Override::Kind::remove, text.remove_prefix(1);

  const std::string_view key = text.substr(0, text.find('='));
  std::string_view trimmed = key;
  while (!trimmed.empty() && (trimmed.back() == ' ' || trimmed.back() == '\t')) trimmed.remove_suffix(1);
  override.key_span = span(trimmed);
  if (trimmed.empty())
    return refuse("an override begins with a key, as in `model.key=value`", reading.at(text.data(), end));
  std::string part;
  for (const char& c : trimmed) {
    if (c == '.') {
      if (part.empty()) return refuse("a part of the key is empty", reading.at(&c, end));
      override.path.push_back(std::exchange(part, {}));
    } else if (is_name_start(c) || is_digit(c) || (c == '-' && !part.empty())) {
      part += c;
    } else {
      return refuse(fmt::format("`{}` cannot stand in a key", sources.text(span({&c, 1}))), span({&c, 1}));
    }
  }
  if (part.empty())
    return refuse("a part of the key is empty", reading.at(trimmed.data() + trimmed.size(), end));
  override.path.push_back(std::move(part));

  text.remove_prefix(key.size());
  if (override.kind == Override::Kind::remove) {
    if (!text.empty() && mode != OverrideMode::file)
      return refuse("`~` takes a key alone; it removes the key whatever its value is", span(text));
    override.value.span = override.key_span;
    return override;
  }
  if (text.empty()) return refuse("`=` and a value must follow the key", reading.at(end, end));
  text.remove_prefix(1);
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  if (text.empty()) {
    override.value.scalar = Value("");  // `key=` is the empty string, as in Hydra
    override.value.span = span(text);
    return override;
  }

  const std::string_view function = call_name(text);
  std::string_view values_text = text;
  if (!function.empty()) {
    if (function != "choice" && function != "range") {
      return refuse(fmt::format("`{}(...)` is not read; only `choice` and `range` are, in sweeps", function),
                    span(function));
    }
    values_text = text.substr(function.size() + 1, text.size() - function.size() - 2);
    if (mode != OverrideMode::sweep) return refuse("a sweep stands where one value is needed", span(text));
  }
  // `\\${` is a literal `${`, as OmegaConf reads it.
  auto dollar = values_text.find("${");
  while (dollar != std::string_view::npos && dollar > 0 && values_text[dollar - 1] == '\\')
    dollar = values_text.find("${", dollar + 2);
  if (dollar != std::string_view::npos && mode == OverrideMode::file) {
    override.value.kind = SyntaxNode::Kind::unsupported;
    override.value.what = "Hydra fills in what stands in `${}`";
    override.value.span = span(values_text);
    return override;
  }
  if (dollar != std::string_view::npos) {
    return refuse("interpolations (`${...}`) are not resolved; write the value",
                  span(values_text.substr(dollar, 2)));
  }
  std::optional<std::vector<SyntaxNode>> values = parse_values(values_text, reading, problem);
  if (!values) return std::nullopt;
  if (function == "range") values = expand_range(*values, span(text), problem);
  if (!values) return std::nullopt;
  if (mode != OverrideMode::sweep && values->size() > 1) {
    return refuse("several values stand where one is needed; a list is written `[a,b]`", span(text));
  }
  if (values->size() > kMaxChoices)
    return refuse(fmt::format("a sweep has more than {} values", kMaxChoices), span(text));
  override.value = values->front();
  if (mode == OverrideMode::sweep && (values->size() > 1 || !function.empty()))
    override.choices = std::move(*values);
  return override;
}

}  // namespace capstan
