#include <boost/spirit/home/x3.hpp>

#include <algorithm>

#include "grammar/rule/rule_parser.h"
#include "grammar/rule/rule_scan.h"

namespace capstan {
namespace {

namespace x3 = boost::spirit::x3;

enum class Side { left, right, none };

struct OperatorInfo {
  std::string_view spelling;
  ExprOp op;
  int precedence;
  Side side;
};

constexpr int kNotPrecedence = 4;
constexpr int kComparisonPrecedence = 5;
constexpr int kNegatePrecedence = 10;

// Longer spellings before their prefixes.
constexpr OperatorInfo kSymbols[] = {
    {"!=", ExprOp::not_equal, 5, Side::none},     {"<=", ExprOp::less_equal, 5, Side::none},
    {">=", ExprOp::greater_equal, 5, Side::none}, {"<", ExprOp::less, 5, Side::none},
    {">", ExprOp::greater, 5, Side::none},        {"=", ExprOp::equal, 5, Side::none},
    {"?\?", ExprOp::coalesce, 7, Side::left},     {"+", ExprOp::add, 8, Side::left},
    {"-", ExprOp::subtract, 8, Side::left},       {"*", ExprOp::multiply, 9, Side::left},
    {"//", ExprOp::floor_divide, 9, Side::left},  {"/", ExprOp::divide, 9, Side::left},
    {"%", ExprOp::modulo, 9, Side::left}};
constexpr OperatorInfo kWords[] = {{"iff", ExprOp::iff, 1, Side::none},
                                   {"implies", ExprOp::implies, 1, Side::right},
                                   {"or", ExprOp::or_, 2, Side::left},
                                   {"and", ExprOp::and_, 3, Side::left},
                                   {"in", ExprOp::in, 5, Side::none},
                                   {"subset", ExprOp::subset, 5, Side::none},
                                   {"overlaps", ExprOp::overlaps, 5, Side::none},
                                   {"union", ExprOp::union_, 6, Side::left},
                                   {"minus", ExprOp::minus, 6, Side::left},
                                   {"intersect", ExprOp::intersect, 6, Side::left}};

/// Builds the tree while the grammar reads: a shunting yard whose operators and operands wait on stacks, one
/// frame per open parenthesis. Recursion of the grammar is bounded by kMaxExpressionDepth, and so is the
/// height of the tree.
class TreeBuilder {
 public:
  explicit TreeBuilder(RuleScan& state) : scan(state) {}

  void open_frame() { frames_.push_back(operators_.size()); }
  /// Reduces all operators of the frame; its value is the top operand.
  bool close_frame() {
    if (scan.fatal) return false;
    while (operators_.size() > frames_.back()) {
      if (!reduce()) return false;
    }
    frames_.pop_back();
    return true;
  }
  /// Forgets a frame whose expression did not come, such as that of the elements of `{}`.
  void abandon_frame() {
    operators_.resize(frames_.back());
    frames_.pop_back();
  }

  bool push(Expr expr, int height = 1) {
    operands_.push_back({std::move(expr), height});
    return true;
  }
  bool push_prefix(ExprOp op, int precedence, Span span) {
    if (operators_.size() > frames_.back() && operators_.back().precedence > precedence) {
      scan.fail(scan.begin + span.begin, scan.begin + span.end,
                "`not` after an operator that binds tighter needs parentheses");
      return false;
    }
    operators_.push_back({op, precedence, true, span});
    // A long chain of prefixes is a tall tree.
    if (operators_.size() - frames_.back() > 2 * static_cast<std::size_t>(kMaxExpressionDepth))
      return too_deep(span);
    return true;
  }
  bool push_binary(const OperatorInfo& info, Span span) {
    while (operators_.size() > frames_.back()) {
      const Pending& top = operators_.back();
      if (top.precedence < info.precedence) break;
      if (top.precedence == info.precedence && !top.prefix) {
        if (top.op == ExprOp::implies && info.op == ExprOp::implies) break;
        if (info.side != Side::left) {
          scan.fail(scan.begin + span.begin, scan.begin + span.end,
                    info.precedence == kComparisonPrecedence
                        ? "comparisons do not chain; join two with `and`"
                        : "`iff` and `implies` in a row need parentheses");
          return false;
        }
      }
      if (!reduce()) return false;
    }
    operators_.push_back({info.op, info.precedence, false, span});
    return true;
  }
  /// `x is WORD`: binds like a comparison.
  bool push_test(ExprOp op, TextWithSpan word) {
    if (!push_binary({"is", op, kComparisonPrecedence, Side::none}, word.span)) return false;
    Expr test;
    test.name = std::move(word.text);
    test.span = word.span;
    return push(std::move(test), 0);
  }
  /// Takes the top `count` operands as children of a new node that spans from `first` to `last`.
  bool gather(ExprOp op, std::size_t count, std::string name, const char* first, const char* last) {
    Expr node;
    node.op = op;
    node.name = std::move(name);
    node.span = scan.span(first, last);
    int height = 0;
    node.children.reserve(count);
    for (auto at = operands_.end() - static_cast<std::ptrdiff_t>(count); at != operands_.end(); ++at) {
      height = std::max(height, at->height);
      node.children.push_back(std::move(at->expr));
    }
    operands_.resize(operands_.size() - count);
    if (height + 1 > kMaxExpressionDepth) return too_deep(node.span);
    return push(std::move(node), height + 1);
  }
  void widen(const char* first, const char* last) { operands_.back().expr.span = scan.span(first, last); }
  Expr take() { return std::move(operands_.back().expr); }
  bool too_deep(Span span) {
    scan.fail(scan.begin + span.begin, scan.begin + span.end,
              "the expression nests deeper than " + std::to_string(kMaxExpressionDepth) + " levels");
    return false;
  }

  // What an open set or call has gathered so far.
  struct Call {
    std::string name;
    const char* first;
    std::size_t count = 0;
  };
  std::vector<Call> calls;

  RuleScan& scan;

 private:
  struct Pending {
    ExprOp op;
    int precedence;
    bool prefix;
    Span span;
  };
  struct Operand {
    Expr expr;
    int height;
  };

  bool reduce() {
    const Pending pending = operators_.back();
    operators_.pop_back();
    Expr node;
    node.op = pending.op;
    int height = 0;
    if (pending.prefix) {
      Operand& operand = operands_.back();
      height = operand.height;
      node.span = {pending.span.source, pending.span.begin, operand.expr.span.end};
      node.children.push_back(std::move(operand.expr));
      operands_.pop_back();
    } else {
      Operand right = std::move(operands_.back());
      operands_.pop_back();
      Operand left = std::move(operands_.back());
      operands_.pop_back();
      height = std::max(left.height, right.height);
      node.span = {left.expr.span.source, left.expr.span.begin, right.expr.span.end};
      if (node.op == ExprOp::is || node.op == ExprOp::is_not) {
        node.name = std::move(right.expr.name);
        node.children.push_back(std::move(left.expr));
      } else if (node.op == ExprOp::and_ || node.op == ExprOp::or_) {
        // `and` and `or` take any number of children, so that long chains make flat trees.
        int inner = 0;
        if (left.expr.op == node.op) {
          node.children = std::move(left.expr.children);
          inner = left.height - 1;
        } else {
          node.children.push_back(std::move(left.expr));
          inner = left.height;
        }
        if (right.expr.op == node.op) {
          for (Expr& child : right.expr.children) node.children.push_back(std::move(child));
          inner = std::max(inner, right.height - 1);
        } else {
          node.children.push_back(std::move(right.expr));
          inner = std::max(inner, right.height);
        }
        height = inner;
      } else {
        node.children.push_back(std::move(left.expr));
        node.children.push_back(std::move(right.expr));
      }
    }
    if (height + 1 > kMaxExpressionDepth) return too_deep(node.span);
    operands_.push_back({std::move(node), height + 1});
    return true;
  }

  std::vector<Operand> operands_;
  std::vector<Pending> operators_;
  std::vector<std::size_t> frames_;
};

struct builder_tag;

/// A terminal: a function from the place and the builder to success.
template <typename Scan>
struct Token : x3::parser<Token<Scan>> {
  using attribute_type = x3::unused_type;
  static constexpr bool has_attribute = false;
  Scan scan;
  explicit Token(Scan function) : scan(function) {}
  template <typename Context, typename RuleContext, typename Attribute>
  bool parse(const char*& first, const char* const&, const Context& context, RuleContext&, Attribute&) const {
    return scan(first, x3::get<builder_tag>(context));
  }
};

/// Counts the depth of open constructs and gives each its own frame of operators.
template <typename Subject>
struct Nested : x3::unary_parser<Subject, Nested<Subject>> {
  using attribute_type = x3::unused_type;
  static constexpr bool has_attribute = false;
  explicit Nested(const Subject& inner) : x3::unary_parser<Subject, Nested<Subject>>(inner) {}
  template <typename Context, typename RuleContext, typename Attribute>
  bool parse(const char*& first, const char* const& last, const Context& context, RuleContext& rule,
             Attribute& attribute) const {
    TreeBuilder& builder = x3::get<builder_tag>(context);
    if (builder.scan.depth >= kMaxExpressionDepth) {
      const char* at = skip_blanks(first, last);
      return builder.too_deep(builder.scan.span(at, std::min(at + 1, last)));
    }
    ++builder.scan.depth;
    builder.open_frame();
    const bool matched = this->subject.parse(first, last, context, rule, attribute);
    --builder.scan.depth;
    if (matched) return builder.close_frame();
    builder.abandon_frame();
    return false;
  }
};
const auto nested = [](const auto& subject) {
  return Nested<std::decay_t<decltype(x3::as_parser(subject))>>(x3::as_parser(subject));
};

auto keyword(std::string_view word) {
  return Token(
      [word](const char*& at, TreeBuilder& builder) { return scan_keyword(at, builder.scan, word); });
}
auto symbol(std::string_view text) {
  return Token(
      [text](const char*& at, TreeBuilder& builder) { return scan_symbol(at, builder.scan, text, text); });
}

const Token opening_if([](const char*& at, TreeBuilder& builder) {
  const char* const first = skip_blanks(at, builder.scan.end);
  if (!scan_keyword(at, builder.scan, "if")) return false;
  builder.calls.push_back({"", first});
  return true;
});
const Token closing_if([](const char*& at, TreeBuilder& builder) {
  const TreeBuilder::Call call = builder.calls.back();
  builder.calls.pop_back();
  return builder.gather(ExprOp::conditional, 3, "", call.first, at);
});

const Token prefix([](const char*& at, TreeBuilder& builder) {
  const char* const first = skip_blanks(at, builder.scan.end);
  const char* last = first;
  if (scan_keyword(last, builder.scan, "not")) {
    at = last;
    return builder.push_prefix(ExprOp::not_, kNotPrecedence, builder.scan.span(first, last));
  }
  if (!builder.scan.fatal && scan_symbol(last, builder.scan, "-", "a value")) {
    at = last;
    return builder.push_prefix(ExprOp::negate, kNegatePrecedence, builder.scan.span(first, last));
  }
  return false;
});

/// Whether the item goes on at `first`, on a line behind that of `at`: with its next field, or its end.
bool begins_field(const char* at, const char* first, const TreeBuilder& builder) {
  if (std::find(at, first, '\n') == first || first == builder.scan.end) return false;
  if (*first == '}') return builder.calls.empty();
  constexpr std::string_view kFields[] = {"kind",   "severity", "enforcer", "frontends", "applies",
                                          "phase",  "when",     "require",  "blame",     "message",
                                          "why",    "raises",   "fix",      "source",    "evidence",
                                          "silent", "set",      "value",    "doc"};
  const char* const last = std::find_if(first, builder.scan.end, [](char c) { return c < 'a' || c > 'z'; });
  const std::string_view word(first, static_cast<std::size_t>(last - first));
  return last != builder.scan.end && (*last == ' ' || *last == '\t') &&
         std::find(std::begin(kFields), std::end(kFields), word) != std::end(kFields);
}

const Token literal([](const char*& at, TreeBuilder& builder) {
  RuleScan& scan = builder.scan;
  const char* const first = skip_blanks(at, scan.end);
  if (!scan.fatal && begins_field(at, first, builder)) {
    // The field lacks its value; what stands on the next line is not to blame.
    scan.fail(at, at, "the line ends too early");
    scan.fatal->expected = {"`not`", "a value"};
    return false;
  }
  if (scan.fatal || first == scan.end) {
    scan.expect(first, "a value");
    return false;
  }
  Expr expr;
  if (*first == '"') {
    TextWithSpan text;
    if (!scan_string(at, scan, text)) return false;
    expr.literal = Value(std::move(text.text));
    expr.span = text.span;
    return builder.push(std::move(expr));
  }
  if (*first >= '0' && *first <= '9') return scan_number(at, scan, expr) && builder.push(std::move(expr));
  if (*first == 'v' && first + 1 != scan.end && first[1] >= '0' && first[1] <= '9') {
    return scan_version_literal(at, scan, expr) && builder.push(std::move(expr));
  }
  scan.expect(first, "a value");
  // Words are looked up without noting what was expected: "a value" says it all.
  RuleScan quiet(scan.source, {scan.begin, static_cast<std::size_t>(scan.end - scan.begin)});
  TextWithSpan word;
  const char* last = first;
  if (!scan_choice(last, quiet, {"true", "false", "none"}, word)) return false;
  at = last;
  if (word.text != "none") expr.literal = Value(word.text == "true");
  expr.span = word.span;
  return builder.push(std::move(expr));
});

/// `f(`: the opening of a call.
const Token opening_call([](const char*& at, TreeBuilder& builder) {
  RuleScan& scan = builder.scan;
  RuleScan quiet(scan.source, {scan.begin, static_cast<std::size_t>(scan.end - scan.begin)});
  TextWithSpan name;
  const char* last = at;
  if (scan.fatal || !scan_path(last, quiet, name, "") || last == scan.end || *last != '(') return false;
  if (name.text.find('.') != std::string::npos) {
    scan.fail(scan.begin + name.span.begin, last, "a function has no dotted name");
    return false;
  }
  at = last + 1;
  builder.calls.push_back({std::move(name.text), scan.begin + name.span.begin});
  return true;
});
const Token name([](const char*& at, TreeBuilder& builder) {
  TextWithSpan path;
  if (!scan_path(at, builder.scan, path, "a value")) return false;
  Expr expr;
  expr.op = ExprOp::name;
  expr.name = std::move(path.text);
  expr.span = path.span;
  return builder.push(std::move(expr));
});
const Token opening_set([](const char*& at, TreeBuilder& builder) {
  const char* const first = skip_blanks(at, builder.scan.end);
  if (!scan_symbol(at, builder.scan, "{", "a value")) return false;
  builder.calls.push_back({"", first});
  return true;
});
const Token opening_parenthesis([](const char*& at, TreeBuilder& builder) {
  const char* const first = skip_blanks(at, builder.scan.end);
  if (!scan_symbol(at, builder.scan, "(", "a value")) return false;
  builder.calls.push_back({"", first});
  return true;
});
const Token counted([](const char*&, TreeBuilder& builder) { return ++builder.calls.back().count > 0; });

auto closing(ExprOp op, std::string_view text) {
  return Token([op, text](const char*& at, TreeBuilder& builder) {
    if (!scan_symbol(at, builder.scan, text, text)) return false;
    TreeBuilder::Call call = std::move(builder.calls.back());
    builder.calls.pop_back();
    return builder.gather(op, call.count, std::move(call.name), call.first, at);
  });
}
const Token closing_parenthesis([](const char*& at, TreeBuilder& builder) {
  if (!scan_symbol(at, builder.scan, ")", ")")) return false;
  builder.widen(builder.calls.back().first, at);
  builder.calls.pop_back();
  return true;
});

const Token binary([](const char*& at, TreeBuilder& builder) {
  RuleScan& scan = builder.scan;
  const char* const first = skip_blanks(at, scan.end);
  scan.expect(first, "an operator");
  if (scan.fatal) return false;
  const std::string_view rest(first, static_cast<std::size_t>(scan.end - first));
  if (rest.starts_with("==")) {
    scan.fail(first, first + 2, "equality is written `=`");
    return false;
  }
  for (const OperatorInfo& info : kSymbols) {
    if (!rest.starts_with(info.spelling)) continue;
    at = first + info.spelling.size();
    return builder.push_binary(info, scan.span(first, at));
  }
  RuleScan quiet(scan.source, {scan.begin, static_cast<std::size_t>(scan.end - scan.begin)});
  for (const OperatorInfo& info : kWords) {
    const char* last = first;
    if (!scan_keyword(last, quiet, info.spelling)) continue;
    at = last;
    return builder.push_binary(info, scan.span(first, last));
  }
  const char* last = first;
  if (scan_keyword(last, quiet, "not") && scan_keyword(last, quiet, "in")) {
    at = last;
    return builder.push_binary({"not in", ExprOp::not_in, kComparisonPrecedence, Side::none},
                               scan.span(first, last));
  }
  return false;
});
const Token is_test([](const char*& at, TreeBuilder& builder) {
  RuleScan& scan = builder.scan;
  RuleScan quiet(scan.source, {scan.begin, static_cast<std::size_t>(scan.end - scan.begin)});
  const char* last = at;
  if (scan.fatal || !scan_keyword(last, quiet, "is")) return false;
  const bool negated = scan_keyword(last, scan, "not");
  TextWithSpan word;
  if (!scan_choice(last, scan, {"none", "set", "bool", "int", "float", "string", "list", "table"}, word)) {
    // Nothing else can follow `is`: stop here, so that the message is about this place.
    scan.fatal = scan.problem();
    return false;
  }
  at = last;
  return builder.push_test(negated ? ExprOp::is_not : ExprOp::is, std::move(word));
});

const x3::rule<class expression_rule> expression = "expression";

const auto elements = expression >> counted >> *(symbol(",") >> expression >> counted);
const auto conditional = opening_if > expression > keyword("then") > expression > keyword("else") > expression
                         > closing_if;
const auto call = opening_call > -elements > closing(ExprOp::call, ")");
const auto set = opening_set > -elements > closing(ExprOp::set, "}");
const auto parentheses = opening_parenthesis > expression > closing_parenthesis;
const auto operand = *prefix >> (literal | set | parentheses | call | name);
const auto chain = operand >> *(is_test | (binary > operand));
const auto expression_def = nested(conditional | chain);

BOOST_SPIRIT_DEFINE(expression)

}  // namespace

bool scan_expression(const char*& at, RuleScan& scan, Expr& out) {
  TreeBuilder builder(scan);
  const auto grammar = x3::with<builder_tag>(builder)[expression];
  try {
    const char* first = at;
    if (!x3::parse(first, scan.end, grammar) || scan.fatal) return false;
    at = first;
  } catch (const x3::expectation_failure<const char*>&) {
    return false;  // `scan` knows what was expected
  }
  out = builder.take();
  return true;
}

}  // namespace capstan
