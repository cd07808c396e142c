#include "grammar/arguments/python_assignments.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/spirit/home/x3.hpp>
#include <charconv>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>

namespace capstan {
namespace {

namespace x3 = boost::spirit::x3;

constexpr std::size_t kMaxDepth = 32;

struct Reading {
  SourceId source;
  const char* begin;
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
std::string unescape(std::string_view text) {
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
      case '\n':
        break;
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
  if (!raw) text = unescape(text);
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
  if (owner == "F" || owner == "torch.nn.functional")
    node.scalar = Value("F." + member);
  else if (owner.find('.') == std::string::npos && owner.front() >= 'A' && owner.front() <= 'Z' &&
           owner.size() > 1)
    node.scalar = Value(member);
  else
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

const x3::rule<class LiteralRule, SyntaxNode> literal = "a literal";
const x3::rule<class StringRule, SyntaxNode> string = "a string";
const x3::rule<class NumberRule, SyntaxNode> number = "a number";
const x3::rule<class WordRule, SyntaxNode> word = "a word";
const x3::rule<class ListRule, SyntaxNode> list = "a list";
const x3::rule<class DictRule, SyntaxNode> dict = "a dict";

/// Inside brackets line ends and comments are blanks; at the top level they never come (a logical line is one
/// statement).
const auto comment = '#' >> *(x3::char_ - '\n');
const auto gap = x3::omit[*(x3::space | (x3::lit('\\') >> '\n') | comment)];
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
const auto digits = x3::digit >> *(x3::digit | '_');
const auto exponent = x3::char_("eE") >> -x3::char_("+-") >> digits;
const auto float_body =
    (digits >> '.' >> -digits >> -exponent) | (x3::lit('.') >> digits >> -exponent) | (digits >> exponent);
const auto radix_body = x3::lit('0') >> x3::char_("xXoObB") >> +(x3::xdigit | '_');
const auto number_def = x3::raw[-x3::char_("+-") >> (radix_body | float_body | digits)][make_number];
const auto name = (x3::alpha | '_') >> *(x3::alnum | '_');
const auto dotted = x3::raw[name >> *('.' >> name)];
const auto word_def = dotted[make_word] | dotted[make_member];
const auto items_of = [](auto close) {
  return gap >> -(literal[add_item] >> gap >> *(',' >> gap >> literal[add_item] >> gap) >> -(',' >> gap)) >>
         x3::raw[x3::lit(close)][close_container];
};
// A tuple needs a comma; `(x)` is x.
const auto list_def =
    (x3::raw[x3::lit('[')][open_container<SyntaxNode::Kind::list>] >> items_of(']')) |
    (x3::raw[x3::lit('(')][open_container<SyntaxNode::Kind::list>] >> gap >> literal[add_item] >> gap >>
     ',' >> gap >>
     -(literal[add_item] >> gap >> *(',' >> gap >> literal[add_item] >> gap) >> -(',' >> gap)) >>
     x3::raw[x3::lit(')')][close_container]);
const auto pair = string[add_key] >> gap >> ':' >> gap >> literal[add_value] >> gap;
const auto dict_def =
    x3::raw[x3::lit('{')][open_container<SyntaxNode::Kind::table>] >> gap >>
    -(pair >> *(',' >> gap >> pair) >> -(',' >> gap)) >> x3::raw[x3::lit('}')][close_container];
const auto literal_def = string | number | dict | list | word;

BOOST_SPIRIT_DEFINE(literal, string, number, word, list, dict)

/// A statement: one line, or several joined by brackets, strings or backslashes.
struct LogicalLine {
  std::size_t begin = 0, end = 0;  ///< without indentation, trailing blanks and trailing comment
  std::size_t indent = 0;
};

class LineSplitter {
 public:
  LineSplitter(SourceId source, std::string_view text) : source_(source), text_(text) {}

  bool run(std::vector<LogicalLine>& lines, std::vector<Comment>& comments, SyntaxProblem& problem) {
    while (at_ < text_.size()) {
      const std::size_t start = at_;
      while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
      LogicalLine line{at_, at_, at_ - start};
      if (!take_line(line, comments, problem)) return false;
      if (line.end > line.begin) lines.push_back(line);
    }
    return true;
  }

 private:
  bool refuse(SyntaxProblem& problem, const char* message, std::size_t at) {
    problem = {message, {source_, static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(at + 1)}, {}};
    return false;
  }

  bool take_line(LogicalLine& line, std::vector<Comment>& comments, SyntaxProblem& problem) {
    std::vector<std::size_t> brackets;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n') {
        ++number_;
        ++at_;
        if (brackets.empty()) return true;
        continue;
      }
      if (c == '\\' && at_ + 1 < text_.size()) {
        number_ += text_[at_ + 1] == '\n';
        at_ += 2;
        line.end = at_;
        continue;
      }
      if (c == '#') {
        const std::size_t begin = at_;
        at_ = std::min(text_.find('\n', at_), text_.size());
        const std::size_t end = at_ > begin && text_[at_ - 1] == '\r' ? at_ - 1 : at_;
        comments.push_back({{source_, static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end)},
                            number_,
                            line.end == line.begin && brackets.empty()});
        continue;
      }
      if (c == '"' || c == '\'') {
        if (!take_string(problem)) return false;
        line.end = at_;
        continue;
      }
      if (c == '(' || c == '[' || c == '{') {
        brackets.push_back(at_);
        if (brackets.size() > 1000) return refuse(problem, "brackets are nested too deeply", at_);
      } else if (c == ')' || c == ']' || c == '}') {
        if (brackets.empty()) return refuse(problem, "this bracket was not opened", at_);
        brackets.pop_back();
      }
      ++at_;
      if (c != ' ' && c != '\t' && c != '\r') line.end = at_;
    }
    if (!brackets.empty()) return refuse(problem, "this bracket is not closed", brackets.back());
    return true;
  }

  bool take_string(SyntaxProblem& problem) {
    const std::size_t begin = at_;
    const char quote = text_[at_];
    const bool triple = text_.substr(at_).starts_with(std::string(3, quote));
    at_ += triple ? 3 : 1;
    while (at_ < text_.size()) {
      if (text_[at_] == '\\') {
        number_ += at_ + 1 < text_.size() && text_[at_ + 1] == '\n';
        at_ = std::min(at_ + 2, text_.size());
        continue;
      }
      if (text_[at_] == '\n') {
        if (!triple) break;
        ++number_;
      }
      if (text_[at_] == quote && (!triple || text_.substr(at_).starts_with(std::string(3, quote)))) {
        at_ += triple ? 3 : 1;
        return true;
      }
      ++at_;
    }
    return refuse(problem, "the string is not closed", begin);
  }

  SourceId source_;
  std::string_view text_;
  std::size_t at_ = 0;
  std::uint32_t number_ = 1;
};

bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_name(char c) {
  return is_name_start(c) || (c >= '0' && c <= '9');
}

/// `a.b.c` at the beginning of the text: its parts and its length.
std::vector<std::string> dotted_name(std::string_view text, std::size_t& length) {
  std::vector<std::string> parts;
  length = 0;
  while (length < text.size() && is_name_start(text[length])) {
    const std::size_t begin = length;
    while (length < text.size() && is_name(text[length])) ++length;
    parts.emplace_back(text.substr(begin, length - begin));
    if (length + 1 >= text.size() || text[length] != '.' || !is_name_start(text[length + 1])) break;
    ++length;
  }
  return parts;
}

bool starts_with_word(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view wanted) {
    return text.starts_with(wanted) && (text.size() == wanted.size() || !is_name(text[wanted.size()]));
  });
}

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

std::optional<PythonRecipe> parse_python_recipe(SourceId source, const SourceMap& sources,
                                                SyntaxProblem& problem) {
  const std::string_view text = sources[source].bytes();
  PythonRecipe recipe;
  std::vector<LogicalLine> lines;
  if (!LineSplitter(source, text).run(lines, recipe.comments, problem)) return std::nullopt;

  struct Assignment {
    std::string variable;
    PythonAssignment assignment;
  };
  std::vector<Assignment> assignments;
  std::map<std::string, Span> calls;
  std::map<std::string, std::size_t> uses;
  std::size_t conditional_indent =
      std::string_view::npos;  // indentation of the innermost open condition or loop
  const auto span = [&](std::size_t begin, std::size_t end) {
    return Span{source, static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end)};
  };
  for (const LogicalLine& line : lines) {
    const std::string_view statement = text.substr(line.begin, line.end - line.begin);
    if (line.indent <= conditional_indent && conditional_indent != std::string_view::npos)
      conditional_indent = std::string_view::npos;
    if (starts_with_word(statement, {"if", "elif", "else", "for", "while", "try", "except", "finally", "with",
                                     "match", "case"})) {
      if (conditional_indent == std::string_view::npos) conditional_indent = line.indent;
      continue;
    }
    std::size_t length = 0;
    const std::vector<std::string> parts = dotted_name(statement, length);
    if (parts.empty()) continue;
    std::size_t at = length;
    while (at < statement.size() && (statement[at] == ' ' || statement[at] == '\t')) ++at;
    const bool subscript = at < statement.size() && statement[at] == '[';
    const std::size_t equal = statement.find('=', at);
    const bool plain = at < statement.size() && statement[at] == '=' &&
                       (at + 1 >= statement.size() || statement[at + 1] != '=');
    const bool augmented = !plain && at + 1 < statement.size() &&
                           std::string_view("+-*/%|&^").find(statement[at]) != std::string_view::npos &&
                           equal != std::string_view::npos && equal <= at + 2;
    if (!plain && !augmented && !(subscript && equal != std::string_view::npos)) continue;
    if (parts.size() == 1) {
      if (plain && statement.find('(', at) != std::string_view::npos) {
        std::size_t begin = at + 1;
        while (begin < statement.size() && statement[begin] == ' ') ++begin;
        calls[parts[0]] = span(line.begin + begin, line.end);
      }
      continue;
    }
    Assignment assignment;
    assignment.variable = parts[0];
    assignment.assignment.path.assign(parts.begin() + 1, parts.end());
    assignment.assignment.key_span = span(line.begin, line.begin + length);
    SyntaxNode& node = assignment.assignment.value;
    std::size_t begin = equal + 1;
    while (begin < statement.size() && (statement[begin] == ' ' || statement[begin] == '\t')) ++begin;
    const std::string_view value = statement.substr(std::min(begin, statement.size()));
    const auto unknown = [&](std::string what) {
      node = SyntaxNode{};
      node.kind = SyntaxNode::Kind::unsupported;
      node.what = std::move(what);
      node.span = span(line.begin + begin, line.end);
    };
    if (conditional_indent != std::string_view::npos) {
      unknown("a value set under a condition or in a loop");
    } else if (augmented) {
      unknown("an augmented assignment");
    } else if (subscript) {
      unknown("an assignment to an element");
    } else if (too_deep(value)) {
      unknown("a value nested too deeply");
    } else {
      Reading reading{source, text.data()};
      const char* first = value.data();
      const char* const last = first + value.size();
      const auto whole = x3::with<ReadingTag>(std::ref(reading))[gap >> literal >> gap];
      if (!x3::parse(first, last, whole, node) || first != last) unknown("an expression that is no literal");
    }
    ++uses[assignment.variable];
    assignments.push_back(std::move(assignment));
  }
  for (const auto& [variable, count] : uses) {
    if (recipe.variable.empty() || count > uses[recipe.variable]) recipe.variable = variable;
  }
  for (Assignment& assignment : assignments) {
    if (assignment.variable == recipe.variable)
      recipe.assignments.push_back(std::move(assignment.assignment));
  }
  if (const auto call = calls.find(recipe.variable); call != calls.end()) recipe.base = call->second;
  return recipe;
}

}  // namespace capstan
