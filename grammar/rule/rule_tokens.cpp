#include <boost/spirit/home/x3.hpp>

#include <algorithm>
#include <charconv>

#include "grammar/rule/rule_scan.h"

namespace capstan {
namespace {

namespace x3 = boost::spirit::x3;
using x3::ascii::alnum;
using x3::ascii::char_;
using x3::ascii::digit;

// The lexical grammar. Nothing here recurses, so plain objects do.
const auto comment = '#' >> *(char_ - '\n');
const auto blanks = *(char_(" \t\r\n") | comment);
const auto name_part = char_("A-Za-z_") >> *(alnum | char_('_')) >> *(char_('-') >> +(alnum | char_('_')));
const auto dotted_name = name_part % '.';
const auto digits = digit >> *(digit | (char_('_') >> &digit));
const auto exponent = char_("eE") >> -char_("+-") >> +digit;
const auto number = digits >> -(char_('.') >> +digit) >> -exponent;
const auto version = digit >> *(alnum | (char_(".+") >> &alnum));
const auto code = x3::repeat(2, 3)[char_("A-Z")] >> x3::repeat(3)[digit] >> !(alnum | char_("_-"));
const auto kebab = char_("a-z") >> *char_("a-z0-9") >> *(char_('-') >> +char_("a-z0-9")) >>
                   !(char_("A-Z_.-"));
const auto date = x3::repeat(4)[digit] >> '-' >> x3::repeat(2)[digit] >> '-' >> x3::repeat(2)[digit] >>
                  !(alnum | char_("_-"));

constexpr std::string_view kReserved[] = {"true",    "false", "none",  "not",       "and",    "or",
                                          "implies", "iff",   "in",    "is",        "if",     "then",
                                          "else",    "union", "minus", "intersect", "subset", "overlaps"};

bool is_reserved(std::string_view word) {
  return std::find(std::begin(kReserved), std::end(kReserved), word) != std::end(kReserved);
}

/// The text that `grammar` matches at the next token, or an empty one.
template <typename Grammar>
std::string_view match(const char*& first, const RuleScan& scan, const Grammar& grammar) {
  first = skip_blanks(first, scan.end);
  const char* last = first;
  if (scan.fatal || !x3::parse(last, scan.end, grammar)) return {};
  return {first, static_cast<std::size_t>(last - first)};
}

template <typename Grammar>
bool scan_text(const char*& at, RuleScan& scan, const Grammar& grammar, std::string_view description,
               TextWithSpan& out) {
  const char* first = at;
  const std::string_view text = match(first, scan, grammar);
  if (text.empty()) {
    scan.expect(first, description);
    return false;
  }
  at = first + text.size();
  out = {std::string(text), scan.span(first, at)};
  return true;
}

/// One string in double quotes, appended to `out`. False when none stands there or it is malformed (then
/// fatal).
bool scan_quoted(const char*& at, RuleScan& scan, std::string& out) {
  const char* first = at;
  if (match(first, scan, char_('"')).empty()) return false;
  for (const char* c = first + 1; c != scan.end && *c != '\n' && *c != '\r'; ++c) {
    if (*c == '"') {
      at = c + 1;
      return true;
    }
    if (*c != '\\') {
      out += *c;
      continue;
    }
    if (++c == scan.end) break;
    switch (*c) {
      case '"':
        out += '"';
        break;
      case '\\':
        out += '\\';
        break;
      case 'n':
        out += '\n';
        break;
      default:
        scan.fail(c - 1, c + 1, "a string may escape only `\\\"`, `\\\\` and `\\n`");
        return false;
    }
  }
  scan.fail(first, first + 1, "this string does not end on its line");
  return false;
}

std::string without_underscores(std::string_view text) {
  std::string plain(text);
  plain.erase(std::remove(plain.begin(), plain.end(), '_'), plain.end());
  return plain;
}

bool convert_integer(const char* first, std::string_view text, RuleScan& scan, std::int64_t& out) {
  const std::string plain = without_underscores(text);
  if (std::from_chars(plain.data(), plain.data() + plain.size(), out).ec == std::errc()) return true;
  scan.fail(first, first + text.size(), "the integer does not fit in 64 bits");
  return false;
}

}  // namespace

void RuleScan::expect(const char* at, std::string_view description) {
  if (fatal || at < farthest) return;
  if (at > farthest) {
    farthest = at;
    expected.clear();
  }
  if (std::find(expected.begin(), expected.end(), description) == expected.end())
    expected.push_back(description);
}

void RuleScan::fail(const char* first, const char* last, std::string message) {
  if (!fatal) fatal = SyntaxProblem{std::move(message), span(first, std::min(last, end)), {}};
}

SyntaxProblem RuleScan::problem() const {
  if (fatal) return *fatal;
  // Show the whole word that stands there, or one character of anything else.
  const char* last = farthest;
  x3::parse(last, end, dotted_name | +digit);
  if (last == farthest && last != end) {
    ++last;
    while (last != end && (static_cast<unsigned char>(*last) & 0xC0) == 0x80)
      ++last;  // rest of a UTF-8 sequence
  }
  SyntaxProblem problem;
  problem.message = farthest == end ? std::string("the file ends too early")
                                    : "unexpected `" + std::string(farthest, last) + "`";
  problem.where = span(farthest, last);
  for (const std::string_view description : expected) {
    // Descriptions are phrases ("a string") or tokens, which are quoted.
    const bool phrase = description.find(' ') != std::string_view::npos;
    problem.expected.push_back(phrase ? std::string(description) : "`" + std::string(description) + "`");
  }
  return problem;
}

const char* skip_blanks(const char* at, const char* end) {
  x3::parse(at, end, blanks);
  return at;
}

bool scan_keyword(const char*& at, RuleScan& scan, std::string_view word) {
  const char* first = at;
  if (match(first, scan, dotted_name) != word) {
    scan.expect(first, word);
    return false;
  }
  at = first + word.size();
  return true;
}

bool scan_choice(const char*& at, RuleScan& scan, const std::vector<std::string_view>& words,
                 TextWithSpan& out) {
  const char* first = at;
  const std::string_view text = match(first, scan, dotted_name);
  if (std::find(words.begin(), words.end(), text) == words.end()) {
    for (const std::string_view word : words) scan.expect(first, word);
    return false;
  }
  at = first + text.size();
  out = {std::string(text), scan.span(first, at)};
  return true;
}

bool scan_symbol(const char*& at, RuleScan& scan, std::string_view symbol, std::string_view description) {
  const char* first = skip_blanks(at, scan.end);
  const std::string_view rest(first, static_cast<std::size_t>(scan.end - first));
  if (scan.fatal || !rest.starts_with(symbol)) {
    scan.expect(first, description);
    return false;
  }
  at = first + symbol.size();
  return true;
}

bool scan_path(const char*& at, RuleScan& scan, TextWithSpan& out, std::string_view description) {
  const char* first = at;
  const std::string_view text = match(first, scan, dotted_name);
  if (text.empty() || is_reserved(text)) {
    scan.expect(first, description);
    return false;
  }
  at = first + text.size();
  out = {std::string(text), scan.span(first, at)};
  return true;
}

bool scan_single_string(const char*& at, RuleScan& scan, TextWithSpan& out) {
  const char* const first = skip_blanks(at, scan.end);
  const char* last = first;
  std::string text;
  if (!scan_quoted(last, scan, text)) {
    scan.expect(first, "a string");
    return false;
  }
  at = last;
  out = {std::move(text), scan.span(first, last)};
  return true;
}

bool scan_string(const char*& at, RuleScan& scan, TextWithSpan& out) {
  if (!scan_single_string(at, scan, out)) return false;
  for (const char* next = at; scan_quoted(next, scan, out.text);) at = next;
  out.span.end = scan.span(at, at).end;
  return !scan.fatal;
}

bool scan_number(const char*& at, RuleScan& scan, Expr& out) {
  const char* first = at;
  const std::string_view text = match(first, scan, number);
  if (text.empty()) {
    scan.expect(first, "a number");
    return false;
  }
  out.op = ExprOp::literal;
  if (text.find_first_of(".eE") == std::string_view::npos) {
    std::int64_t integer = 0;
    if (!convert_integer(first, text, scan, integer)) return false;
    out.literal = Value(integer);
  } else {
    const std::string plain = without_underscores(text);
    double floating = 0;
    if (std::from_chars(plain.data(), plain.data() + plain.size(), floating).ec != std::errc()) {
      scan.fail(first, first + text.size(), "the number is too large or too small for a float");
      return false;
    }
    out.literal = Value(floating);
  }
  const char* after = first + text.size();
  if (x3::parse(after, scan.end, x3::ascii::alpha | char_('_'))) {
    scan.fail(first, after, "a number and a name need a blank between them");
    return false;
  }
  at = first + text.size();
  out.span = scan.span(first, at);
  return true;
}

bool scan_integer(const char*& at, RuleScan& scan, std::int64_t& out) {
  const char* first = at;
  const std::string_view text = match(first, scan, digits >> !(alnum | char_("_.")));
  if (text.empty()) {
    scan.expect(first, "an integer");
    return false;
  }
  if (!convert_integer(first, text, scan, out)) return false;
  at = first + text.size();
  return true;
}

bool scan_version_literal(const char*& at, RuleScan& scan, Expr& out) {
  const char* first = at;
  const std::string_view text = match(first, scan, 'v' >> version);
  if (text.empty()) {
    scan.expect(first, "a version such as `v2.10`");
    return false;
  }
  at = first + text.size();
  out.op = ExprOp::version;
  out.name = std::string(text.substr(1));
  out.span = scan.span(first, at);
  return true;
}

bool scan_version(const char*& at, RuleScan& scan, TextWithSpan& out) {
  return scan_text(at, scan, version, "a version such as `0.16`", out);
}

bool scan_code(const char*& at, RuleScan& scan, TextWithSpan& out) {
  return scan_text(at, scan, code, "a code such as `CG004`", out);
}

bool scan_kebab_name(const char*& at, RuleScan& scan, TextWithSpan& out) {
  return scan_text(at, scan, kebab, "a name in kebab-case", out);
}

bool scan_date(const char*& at, RuleScan& scan, TextWithSpan& out) {
  return scan_text(at, scan, date, "a date such as `2026-08-22`", out);
}

bool scan_end(const char*& at, RuleScan& scan) {
  at = skip_blanks(at, scan.end);
  if (!scan.fatal && at == scan.end) return true;
  scan.expect(at, "the end of the text");
  return false;
}

}  // namespace capstan
