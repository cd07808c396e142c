#include "grammar/arguments/python_literal.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/spirit/home/x3.hpp>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace capstan {
namespace {

namespace x3 = boost::spirit::x3;

constexpr std::size_t kMaxDepth = 32;

struct Reading {
  SourceId source;
  const char* begin;
  std::vector<SyntaxProblem>& repeated;
  template <class Range>
  Span span(const Range& range) const {
    return {source, static_cast<std::uint32_t>(range.begin() - begin),
            static_cast<std::uint32_t>(range.end() - begin)};
  }
};
struct ReadingTag;

template <class Range>
std::string view(const Range& range) {
  return {range.begin(), range.end()};
}

void append_utf8(std::uint32_t code, std::string& out) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0 | (code >> 6));
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0 | (code >> 12));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | (code >> 18));
    out += static_cast<char>(0x80 | ((code >> 12) & 0x3F));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  }
}

/// Text between the quotes with Python's escapes resolved; unknown escapes stay as written, as in Python.
/// Nothing for a character that is told by its name in Unicode (`\N{BULLET}`).
std::optional<std::string> unescape(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out += text[i];
      continue;
    }
    const char c = text[++i];
    const auto hex = [&](std::size_t digits) {
      std::uint32_t code = 0;
      const char* const first = text.data() + i + 1;
      if (i + digits < text.size() &&
          std::from_chars(first, first + digits, code, 16).ptr == first + digits && code <= 0x10FFFF) {
        append_utf8(code, out);
        i += digits;
      } else {
        out += '\\';
        out += c;
      }
    };
    switch (c) {
      case 'n':
        out += '\n';
        break;
      case 't':
        out += '\t';
        break;
      case 'r':
        out += '\r';
        break;
      case '\\':
      case '\'':
      case '"':
        out += c;
        break;
      case 'a':
        out += '\a';
        break;
      case 'b':
        out += '\b';
        break;
      case 'f':
        out += '\f';
        break;
      case 'v':
        out += '\v';
        break;
      case '\n':
        break;
      case 'N':
        return std::nullopt;
      case '0':
      case '1':
      case '2':
      case '3':
      case '4':
      case '5':
      case '6':
      case '7': {
        std::uint32_t code = 0;
        std::size_t digits = 0;
        while (digits < 3 && i + digits < text.size() && text[i + digits] >= '0' && text[i + digits] <= '7')
          code = code * 8 + static_cast<std::uint32_t>(text[i + digits++] - '0');
        append_utf8(code, out);
        i += digits - 1;
        break;
      }
      case 'x':
        hex(2);
        break;
      case 'u':
        hex(4);
        break;
      case 'U':
        hex(8);
        break;
      default:
        out += '\\';
        out += c;
    }
  }
  return out;
}

const auto make_string = [](auto& context) {
  SyntaxNode& node = x3::_val(context);
  const Reading& reading = x3::get<ReadingTag>(context);
  const Span span = reading.span(x3::_attr(context));
  std::string text = view(x3::_attr(context));
  const bool raw = text.front() == 'r' || text.front() == 'R';
  if (raw) text.erase(0, 1);
  const bool triple = text.size() >= 6 && text[1] == text[0] && text[2] == text[0];
  const std::size_t quotes = triple ? 3 : 1;
  text = text.substr(quotes, text.size() - 2 * quotes);
  if (!raw) {
    std::optional<std::string> plain = unescape(text);
    if (!plain) {
      x3::_pass(context) = false;
      return;
    }
    text = std::move(*plain);
  }
  if (node.span.exists()) {  // adjacent strings join
    node.scalar = Value(node.scalar.string() + text);
    node.span.end = span.end;
  } else {
    node.scalar = Value(text);
    node.span = span;
  }
};

const auto make_number = [](auto& context) {
  SyntaxNode& node = x3::_val(context);
  node.span = x3::get<ReadingTag>(context).get().span(x3::_attr(context));
  std::string text = view(x3::_attr(context));
  if (text.ends_with('_') || text.find("__") != std::string::npos) {
    x3::_pass(context) = false;
    return;
  }
  text.erase(std::remove(text.begin(), text.end(), '_'), text.end());
  const bool negative = text.front() == '-';
  std::string digits = text.substr(text.front() == '-' || text.front() == '+' ? 1 : 0);
  int radix = 10;
  if (digits.size() > 2 && digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X')) radix = 16;
  if (digits.size() > 2 && digits[0] == '0' && (digits[1] == 'o' || digits[1] == 'O')) radix = 8;
  if (digits.size() > 2 && digits[0] == '0' && (digits[1] == 'b' || digits[1] == 'B')) radix = 2;
  if (radix != 10) digits.erase(0, 2);
  const bool whole = radix != 10 || digits.find_first_not_of("0123456789") == std::string::npos;
  bool good = false;
  const bool octal_of_old = whole && radix == 10 && digits.size() > 1 && digits[0] == '0' &&
                            digits.find_first_not_of('0') != std::string::npos;
  if (octal_of_old) {
    x3::_pass(context) = false;
    return;
  }
  if (whole) {
    std::int64_t value = 0;
    const std::string signed_digits = (negative ? "-" : "") + digits;
    const auto [end, error] =
        std::from_chars(signed_digits.data(), signed_digits.data() + signed_digits.size(), value, radix);
    good = error == std::errc() && end == signed_digits.data() + signed_digits.size();
    node.scalar = Value(value);
  } else {
    if (digits.front() == '.') digits.insert(0, "0");
    double value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    good = error == std::errc() && end == digits.data() + digits.size();
    node.scalar = Value(negative ? -value : value);
  }
  x3::_pass(context) = good;
};

const auto make_word = [](auto& context) {
  SyntaxNode& node = x3::_val(context);
  node.span = x3::get<ReadingTag>(context).get().span(x3::_attr(context));
  const std::string word = view(x3::_attr(context));
  if (word == "True")
    node.scalar = Value(true);
  else if (word == "False")
    node.scalar = Value(false);
  else if (word == "None")
    node.scalar = Value();
  else if (word == "torch.bfloat16")
    node.scalar = Value("bf16");
  else if (word == "torch.float16" || word == "torch.half")
    node.scalar = Value("fp16");
  else if (word == "torch.float32" || word == "torch.float")
    node.scalar = Value("fp32");
  else
    x3::_pass(context) = false;
};

/// `AttnBackend.flash`, `CudaGraphScope.attn`: an enum member stands for its name. `F.silu` and the like: a
/// function by its name.
const auto make_member = [](auto& context) {
  SyntaxNode& node = x3::_val(context);
  node.span = x3::get<ReadingTag>(context).get().span(x3::_attr(context));
  const std::string word = view(x3::_attr(context));
  const std::size_t dot = word.rfind('.');
  const std::string owner = word.substr(0, dot), member = word.substr(dot + 1);
  const bool of_class = dot != std::string::npos && owner.find('.') == std::string::npos &&
                        owner.size() > 1 && owner.front() >= 'A' && owner.front() <= 'Z';
  if (dot != std::string::npos && (owner == "F" || owner == "torch.nn.functional"))
    node.scalar = Value("F." + member);
  else if (of_class)
    node.scalar = Value(member), node.what = "a member of a class";
  else  // what a name holds is not known here
    x3::_pass(context) = false;
};

template <SyntaxNode::Kind kind>
constexpr auto open_container = [](auto& context) {
  x3::_val(context).kind = kind;
  x3::_val(context).span = x3::get<ReadingTag>(context).get().span(x3::_attr(context));
};
const auto close_container = [](auto& context) {
  x3::_val(context).span.end = x3::get<ReadingTag>(context).get().span(x3::_attr(context)).end;
};
const auto add_item = [](auto& context) { x3::_val(context).items.push_back(std::move(x3::_attr(context))); };
const auto add_key = [](auto& context) {
  const SyntaxNode& key = x3::_attr(context);
  x3::_val(context).entries.push_back({key.scalar.string(), key.span, {}});
};
const auto add_value = [](auto& context) {
  x3::_val(context).entries.back().value = std::move(x3::_attr(context));
};
/// Keys are unique in a table: of equal ones Python keeps the place of the first and the value of the last.
const auto close_dict = [](auto& context) {
  close_container(context);
  std::vector<SyntaxEntry> unique;
  std::unordered_map<std::string, std::size_t> places;
  for (SyntaxEntry& entry : x3::_val(context).entries) {
    const auto [found, is_new] = places.emplace(entry.key, unique.size());
    if (is_new) {
      unique.push_back(std::move(entry));
    } else {
      x3::get<ReadingTag>(context).get().repeated.push_back(
          {fmt::format("the key `{}` stands twice in this dict; the last one holds", entry.key),
           entry.key_span,
           {}});
      unique[found->second] = std::move(entry);
    }
  }
  x3::_val(context).entries = std::move(unique);
};

const x3::rule<class LiteralRule, SyntaxNode> literal = "a literal";
const x3::rule<class StringRule, SyntaxNode> string = "a string";
const x3::rule<class NumberRule, SyntaxNode> number = "a number";
const x3::rule<class WordRule, SyntaxNode> word = "a word";
const x3::rule<class ListRule, SyntaxNode> list = "a list";
const x3::rule<class DictRule, SyntaxNode> dict = "a dict";
const x3::rule<class ParenthesesRule, SyntaxNode> in_parentheses = "a value in parentheses";

// Character sets, not the library's classes: those assert that no byte of a longer letter comes by.
const auto blank_character = x3::char_(" \t\r\n\f\v");
const auto digit = x3::char_("0-9");
const auto hex_digit = x3::char_("0-9a-fA-F");
const auto letter = x3::char_("a-zA-Z");

/// Inside brackets line ends and comments are blanks; at the top level they never come (a logical line is one
/// statement).
const auto comment = '#' >> *(x3::char_ - '\n');
const auto gap = x3::omit[*(blank_character | (x3::lit('\\') >> '\n') | comment)];
const auto escaped = x3::lit('\\') >> x3::char_;
const auto quoted = [](auto quote) {
  return x3::lit(quote) >> *(escaped | (x3::char_ - quote - '\\' - '\n')) >> quote;
};
const auto tripled = [](const char* quote) {
  return x3::lit(quote) >> *(escaped | (x3::char_ - x3::lit(quote) - '\\')) >> x3::lit(quote);
};
const auto one_string =
    x3::raw[-x3::char_("rR") >> (tripled("\"\"\"") | tripled("'''") | quoted('"') | quoted('\''))];
const auto string_def = one_string[make_string] >> *(gap >> one_string[make_string]);
const auto digits = digit >> *(digit | '_');
const auto exponent = x3::char_("eE") >> -x3::char_("+-") >> digits;
const auto float_body =
    (digits >> '.' >> -digits >> -exponent) | (x3::lit('.') >> digits >> -exponent) | (digits >> exponent);
const auto radix_body = x3::lit('0') >> x3::char_("xXoObB") >> +(hex_digit | '_');
const auto number_def = x3::raw[-x3::char_("+-") >> (radix_body | float_body | digits)][make_number];
const auto name = (letter | '_') >> *(letter | digit | '_');
const auto dotted = x3::raw[name >> *('.' >> name)];
const auto word_def = dotted[make_word] | dotted[make_member];
const auto further_items =
    -(literal[add_item] >> gap >> *(',' >> gap >> literal[add_item] >> gap) >> -(',' >> gap));
const auto list_def = x3::raw[x3::lit('[')][open_container<SyntaxNode::Kind::list>] >> gap >> further_items >>
                      x3::raw[x3::lit(']')][close_container];
const auto pair = string[add_key] >> gap >> ':' >> gap >> literal[add_value] >> gap;
const auto dict_def = x3::raw[x3::lit('{')][open_container<SyntaxNode::Kind::table>] >> gap >>
                      -(pair >> *(',' >> gap >> pair) >> -(',' >> gap)) >> x3::raw[x3::lit('}')][close_dict];
// `(x)` is x, a tuple needs a comma. What stands behind the bracket is read once, whichever of the two it is:
// a second try at each depth would take exponential time.
const auto take_inner = [](auto& context) {
  SyntaxNode inner = std::move(x3::_val(context).items.front());
  x3::_val(context) = std::move(inner);
};
const auto in_parentheses_def = x3::raw[x3::lit('(')][open_container<SyntaxNode::Kind::list>] >> gap >>
                                (x3::raw[x3::lit(')')][close_container] |
                                 (literal[add_item] >> gap >>
                                  (x3::lit(')')[take_inner] |
                                   (',' >> gap >> further_items >> x3::raw[x3::lit(')')][close_container]))));
const auto literal_def = string | number | dict | list | in_parentheses | word;

BOOST_SPIRIT_DEFINE(literal, string, number, word, list, dict, in_parentheses)

bool too_deep(std::string_view text) {
  std::size_t depth = 0;
  for (const char c : text) {
    if (c == '[' || c == '(' || c == '{') ++depth;
    if ((c == ']' || c == ')' || c == '}') && depth > 0) --depth;
    if (depth > kMaxDepth) return true;
  }
  return false;
}

}  // namespace

std::optional<SyntaxNode> parse_python_literal(Span place, const SourceMap& sources, std::string& why,
                                               std::vector<SyntaxProblem>& repeated) {
  const std::string_view text = sources[place.source].bytes();
  const std::string_view value = sources.text(place);
  if (too_deep(value)) {
    why = "a value nested too deeply";
    return std::nullopt;
  }
  std::vector<SyntaxProblem> found;
  Reading reading{place.source, text.data(), found};
  const char* first = value.data();
  const char* const last = first + value.size();
  SyntaxNode node;
  const auto whole = x3::with<ReadingTag>(std::ref(reading))[gap >> literal >> gap];
  if (x3::parse(first, last, whole, node) && first == last) {
    repeated.insert(repeated.end(), found.begin(), found.end());
    return node;
  }
  why = "an expression that is no literal";
  return std::nullopt;
}

}  // namespace capstan
