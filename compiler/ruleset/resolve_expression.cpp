// ExpressionResolver: operators and functions.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/ruleset/expression_resolver.h"
#include "compiler/ruleset/rule_values.h"
#include "grammar/rule/rule_printer.h"

namespace capstan {
namespace {

/// Signature of a function: what its arguments may be, and what it gives.
struct FunctionInfo {
  std::string_view name;
  RuleFunction function;
  int arguments;
  int first, second;  ///< kinds of which one must be possible; none is always taken
  int result;
};

constexpr int kText = kKindString;
constexpr FunctionInfo kFunctions[] = {
    {"tokens", RuleFunction::kTokens, 1, kKindString | kKindElements, 0, kKindSet},
    {"members", RuleFunction::kMembers, 1, kKindString | kKindElements, 0, kKindSet},
    {"strings", RuleFunction::kStrings, 1, kKindString | kKindElements, 0, kKindSet},
    {"split", RuleFunction::kSplit, 2, kKindString | kKindElements, kText, kKindSet},
    {"size", RuleFunction::kSize, 1, kKindElements, 0, kKindInteger},
    {"length", RuleFunction::kLength, 1, kKindElements | kKindString, 0, kKindInteger | kKindNone},
    {"sum", RuleFunction::kSum, 1, kKindElements, 0, kKindNumber | kKindNone},
    {"product", RuleFunction::kProduct, 1, kKindElements, 0, kKindNumber | kKindNone},
    {"contains", RuleFunction::kContains, 2, kText, kText, kKindBoolean},
    {"starts_with", RuleFunction::kStartsWith, 2, kText, kText, kKindBoolean},
    {"ends_with", RuleFunction::kEndsWith, 2, kText, kText, kKindBoolean},
    {"before", RuleFunction::kBefore, 2, kText, kText, kKindString | kKindNone},
    {"after", RuleFunction::kAfter, 2, kText, kText, kKindString | kKindNone},
    {"count", RuleFunction::kCount, 2, kText, kText, kKindInteger},
    {"characters", RuleFunction::kCharacters, 1, kText, 0, kKindSet},
    {"lower", RuleFunction::kLower, 1, kText, 0, kKindString | kKindNone},
    {"min", RuleFunction::kMin, 2, kKindNumber | kKindVersion, kKindNumber | kKindVersion, 0},
    {"max", RuleFunction::kMax, 2, kKindNumber | kKindVersion, kKindNumber | kKindVersion, 0},
    {"abs", RuleFunction::kAbs, 1, kKindNumber, 0, kKindNumber | kKindNone},
    {"divides", RuleFunction::kDivides, 2, kKindNumber, kKindNumber, kKindBoolean},
    {"integer", RuleFunction::kInteger, 1, kText | kKindInteger, 0, kKindInteger | kKindNone},
    {"allocator", RuleFunction::kAllocator, 2, kText, kText, kKindString | kKindNone},
    {"allocator_problem", RuleFunction::kAllocatorProblem, 1, kText, 0, kKindString | kKindNone},
    {"field", RuleFunction::kField, 2, kKindTable, kText, kKindAny & ~kKindVersion & ~kKindSet},
    {"layout", RuleFunction::kLayout, 2, kKindString | kKindElements, kText,
     kKindInteger | kKindString | kKindBoolean | kKindNone}};

/// Lists and sets compare with each other, integers with floats.
int comparable_bits(int bits) {
  if (bits & kKindNumber) bits |= kKindNumber;
  if (bits & kKindElements) bits |= kKindElements;
  return bits;
}

TypedExpr typed(const Expr& expr) {
  TypedExpr out;
  out.op = expr.op;
  out.span = expr.span;
  return out;
}

KindWord kind_word(std::string_view word) {
  constexpr std::pair<std::string_view, KindWord> kWords[] = {
      {"set", KindWord::kSet},   {"none", KindWord::kNone},   {"bool", KindWord::kBool},
      {"int", KindWord::kInt},   {"float", KindWord::kFloat}, {"string", KindWord::kString},
      {"list", KindWord::kList}, {"table", KindWord::kTable},
  };
  for (const auto& [known, kind] : kWords) {
    if (word == known) return kind;
  }
  return KindWord::kNothing;
}

}  // namespace

void ExpressionResolver::require_kinds(const Expr& expr, const Kinds& kinds, int mask, const char* wanted) {
  if (kinds.has(mask)) return;
  problem("RU004", fmt::format("`{}` is {}, but {} is needed here", print(expr), describe(kinds), wanted),
          expr.span);
}

void ExpressionResolver::check_words(const Expr& subject, const Kinds& allowed, const Expr& expr,
                                     const Kinds& kinds) {
  // What is spelt out may differ from anything; only a key has legal values.
  if (subject.op == ExprOp::literal || subject.op == ExprOp::set) return;
  check_words(print(subject), allowed, expr, kinds);
}

void ExpressionResolver::check_words(const std::string& name, const Kinds& allowed, const Expr& expr,
                                     const Kinds& kinds) {
  if (!allowed.words || !kinds.words) return;
  for (const std::string& word : *kinds.words) {
    if (std::find(allowed.words->begin(), allowed.words->end(), word) != allowed.words->end()) continue;
    const std::string near = nearest(word, *allowed.words);
    std::string message =
        fmt::format("`{}` has the value \"{}\" in none of the releases that the rule applies to{}", name,
                    word, near.empty() ? "" : fmt::format("; did you mean \"{}\"?", near));
    if (!allowed.open_words) {
      problem("RU008", std::move(message), expr.span);
    } else if (expr.span.exists()) {
      // A key that takes any string, where the framework's own check names the good ones: tell the author,
      // keep the rule.
      Diagnostic diagnostic;
      diagnostic.code = "RU008";
      diagnostic.name = "rule-unknown-value";
      diagnostic.severity = Severity::warning;
      diagnostic.message = std::move(message);
      diagnostic.labels.push_back({expr.span, "", true});
      sink_.report(std::move(diagnostic));
    }
  }
}

void ExpressionResolver::check_fits(const std::string& key, const Kinds& key_kinds, const Expr& expr,
                                    const Kinds& kinds) {
  if (!kinds.has(comparable_bits(key_kinds.bits))) {
    problem("RU004", fmt::format("`{}` holds {}, not {}", key, describe(key_kinds), describe(kinds)),
            expr.span);
    return;
  }
  if (expr.op == ExprOp::literal || expr.op == ExprOp::set) check_words(key, key_kinds, expr, kinds);
}

void ExpressionResolver::check_action(const FixAction& action, const Kinds& key_kinds, const Kinds& kinds) {
  const std::string& key = action.key.text;
  if (defined_.contains(key)) {
    problem("RU004", fmt::format("`{}` is computed by a rule; a fix edits keys of the config", key),
            action.key.span);
    return;
  }
  switch (action.kind) {
    case FixAction::Kind::unset:
      return;
    case FixAction::Kind::set:
      check_fits(key, key_kinds, *action.value, kinds);
      return;
    case FixAction::Kind::add:
    case FixAction::Kind::remove:
      if (!key_kinds.has(kKindList | kKindString)) {
        problem("RU004", fmt::format("`{}` holds {}; only a list has elements", key, describe(key_kinds)),
                action.key.span);
      } else if (action.value->op == ExprOp::literal) {
        check_words(key, key_kinds, *action.value, kinds);
      }
      return;
  }
}

TypedExpr ExpressionResolver::resolve_condition(const Expr& expr) {
  Kinds kinds;
  TypedExpr out = resolve(expr, kinds);
  if (!kinds.has(kKindBoolean) || !kinds.only(kKindBoolean | kKindNone)) {
    // What failed already is of any kind; one report is enough.
    if (kinds.bits == any_kinds().bits && failed_) return out;
    problem("RU004",
            fmt::format("`{}` is {}, but a condition is needed here: compare it with something", print(expr),
                        describe(kinds)),
            expr.span);
  }
  return out;
}

TypedExpr ExpressionResolver::resolve(const Expr& expr, Kinds& kinds) {
  switch (expr.op) {
    case ExprOp::literal: {
      TypedExpr out = typed(expr);
      out.literal = expr.literal;
      kinds = kinds_of(expr.literal);
      return out;
    }
    case ExprOp::version: {
      TypedExpr out = typed(expr);
      kinds = of_bits(kKindVersion);
      if (const auto version = parse_version(expr.name))
        out.version = *version;
      else
        problem("RU005", fmt::format("`v{}` is no version", expr.name), expr.span);
      return out;
    }
    case ExprOp::name: {
      TypedExpr out = typed(expr);
      if (const auto id = resolve_name(expr.name, expr.span, kinds)) {
        out.fact = *id;
        reads_.push_back(*id);
      }
      return out;
    }
    case ExprOp::set:
      return resolve_set(expr, kinds);
    case ExprOp::not_:
    case ExprOp::and_:
    case ExprOp::or_:
    case ExprOp::implies:
    case ExprOp::iff: {
      TypedExpr out = typed(expr);
      for (const Expr& child : expr.children) out.children.push_back(resolve_condition(child));
      kinds = of_bits(kKindBoolean);
      return out;
    }
    case ExprOp::equal:
    case ExprOp::not_equal:
    case ExprOp::less:
    case ExprOp::less_equal:
    case ExprOp::greater:
    case ExprOp::greater_equal:
      return resolve_comparison(expr, kinds);
    case ExprOp::in:
    case ExprOp::not_in:
      return resolve_membership(expr, kinds);
    case ExprOp::is:
    case ExprOp::is_not:
      return resolve_is(expr, kinds);
    case ExprOp::union_:
    case ExprOp::minus:
    case ExprOp::intersect:
    case ExprOp::subset:
    case ExprOp::overlaps:
      return resolve_set_operator(expr, kinds);
    case ExprOp::add:
    case ExprOp::subtract:
    case ExprOp::multiply:
    case ExprOp::divide:
    case ExprOp::floor_divide:
    case ExprOp::modulo:
    case ExprOp::negate:
      return resolve_arithmetic(expr, kinds);
    case ExprOp::coalesce: {
      TypedExpr out = typed(expr);
      Kinds first, second;
      out.children.push_back(resolve(expr.children[0], first));
      out.children.push_back(resolve(expr.children[1], second));
      first.bits = static_cast<std::uint16_t>(first.bits & ~kKindNone);
      kinds = join(first, second);
      return out;
    }
    case ExprOp::conditional: {
      TypedExpr out = typed(expr);
      Kinds then, otherwise;
      out.children.push_back(resolve_condition(expr.children[0]));
      out.children.push_back(resolve(expr.children[1], then));
      out.children.push_back(resolve(expr.children[2], otherwise));
      kinds = join(then, otherwise);
      return out;
    }
    case ExprOp::call:
      return resolve_call(expr, kinds);
  }
  return typed(expr);
}

TypedExpr ExpressionResolver::resolve_set(const Expr& expr, Kinds& kinds) {
  TypedExpr out = typed(expr);
  kinds = of_bits(kKindSet);
  std::vector<std::string> words;
  bool any_word = false;
  bool constant = true;
  for (const Expr& child : expr.children) {
    Kinds element;
    out.children.push_back(resolve(child, element));
    constant = constant && out.children.back().op == ExprOp::literal;
    if (element.has(kKindVersion) || element.only(kKindElements | kKindTable)) {
      problem("RU004", fmt::format("a set holds booleans, numbers and strings, not `{}`", print(child)),
              child.span);
    }
    kinds.elements = static_cast<std::uint16_t>(kinds.elements | element.bits);
    if (element.words)
      words.insert(words.end(), element.words->begin(), element.words->end());
    else
      any_word = any_word || element.has(kKindString);
  }
  if (!any_word) kinds.words = std::make_shared<const std::vector<std::string>>(std::move(words));
  if (constant) {
    Value::List elements;
    for (TypedExpr& child : out.children) elements.push_back(std::move(child.literal));
    out.literal = Value(unique_elements(elements));
    out.children.clear();
  }
  return out;
}

TypedExpr ExpressionResolver::resolve_comparison(const Expr& expr, Kinds& kinds) {
  TypedExpr out = typed(expr);
  Kinds left, right;
  out.children.push_back(resolve(expr.children[0], left));
  out.children.push_back(resolve(expr.children[1], right));
  kinds = of_bits(kKindBoolean);
  const Expr &a = expr.children[0], &b = expr.children[1];
  if (failed_ && (left.bits == any_kinds().bits || right.bits == any_kinds().bits)) return out;
  const bool equality = expr.op == ExprOp::equal || expr.op == ExprOp::not_equal;
  const int left_bits = equality ? left.bits : left.bits & (kKindNumber | kKindVersion);
  const int right_bits = equality ? right.bits : right.bits & (kKindNumber | kKindVersion);
  if ((comparable_bits(left_bits) & comparable_bits(right_bits)) == 0) {
    const std::string left_text = fmt::format("`{}` ({})", print(a), describe(left));
    const std::string right_text = fmt::format("`{}` ({})", print(b), describe(right));
    problem("RU004",
            equality ? fmt::format("{} never equals {}", left_text, right_text)
                     : fmt::format("{} and {} have no order", left_text, right_text),
            expr.span);
    return out;
  }
  if (equality) {
    if (b.op == ExprOp::literal || b.op == ExprOp::set)
      check_words(a, left, b, right);
    else if (a.op == ExprOp::literal || a.op == ExprOp::set)
      check_words(b, right, a, left);
  }
  return out;
}

TypedExpr ExpressionResolver::resolve_membership(const Expr& expr, Kinds& kinds) {
  TypedExpr out = typed(expr);
  Kinds element, set;
  out.children.push_back(resolve(expr.children[0], element));
  out.children.push_back(resolve(expr.children[1], set));
  kinds = of_bits(kKindBoolean);
  const Expr &a = expr.children[0], &b = expr.children[1];
  require_kinds(b, set, kKindElements, "a list or set");
  if (!set.has(kKindElements)) return out;
  if (set.elements != 0 && (comparable_bits(element.bits) & comparable_bits(set.elements)) == 0) {
    Kinds elements = of_bits(set.elements);
    problem("RU004",
            fmt::format("`{}` ({}) is never in `{}`, which holds {}", print(a), describe(element), print(b),
                        describe(elements)),
            expr.span);
    return out;
  }
  if (b.op == ExprOp::set)
    check_words(a, element, b, set);
  else if (a.op == ExprOp::literal)
    check_words(b, set, a, element);
  return out;
}

TypedExpr ExpressionResolver::resolve_set_operator(const Expr& expr, Kinds& kinds) {
  TypedExpr out = typed(expr);
  Kinds left, right;
  out.children.push_back(resolve(expr.children[0], left));
  out.children.push_back(resolve(expr.children[1], right));
  const Expr &a = expr.children[0], &b = expr.children[1];
  require_kinds(a, left, kKindElements | kKindNone, "a list or set");
  require_kinds(b, right, kKindElements | kKindNone, "a list or set");
  if (expr.op != ExprOp::union_) {
    if (b.op == ExprOp::set)
      check_words(a, left, b, right);
    else if (a.op == ExprOp::set)
      check_words(b, right, a, left);
  }
  if (expr.op == ExprOp::subset || expr.op == ExprOp::overlaps) {
    kinds = of_bits(kKindBoolean);
    return out;
  }
  kinds = expr.op == ExprOp::union_ ? join(left, right) : left;
  kinds.bits = kKindSet;
  return out;
}

namespace {

bool is_zero(const TypedExpr& expr) {
  return expr.op == ExprOp::literal && (expr.literal == Value(0) || expr.literal == Value(0.0));
}

}  // namespace

TypedExpr ExpressionResolver::resolve_arithmetic(const Expr& expr, Kinds& kinds) {
  TypedExpr out = typed(expr);
  bool integers = expr.op != ExprOp::divide;
  for (const Expr& child : expr.children) {
    Kinds of_child;
    out.children.push_back(resolve(child, of_child));
    require_kinds(child, of_child, kKindNumber, "a number");
    integers = integers && !of_child.has(kKindFloating);
  }
  if (expr.op == ExprOp::negate && out.children[0].op == ExprOp::literal) {
    out.op = ExprOp::literal;
    out.literal = negate_number(out.children[0].literal);
    out.children.clear();
  }
  const bool divides =
      expr.op == ExprOp::divide || expr.op == ExprOp::floor_divide || expr.op == ExprOp::modulo;
  if (divides && is_zero(out.children[1]))
    problem("RU004", fmt::format("`{}` divides by zero: it is always none", print(expr)), expr.span);
  kinds = of_bits((integers ? kKindInteger : kKindNumber) | kKindNone);
  if (out.op == ExprOp::literal) kinds = kinds_of(out.literal);
  return out;
}

TypedExpr ExpressionResolver::resolve_is(const Expr& expr, Kinds& kinds) {
  TypedExpr out = typed(expr);
  out.name = expr.name;
  out.kind = kind_word(expr.name);
  kinds = of_bits(kKindBoolean);
  const Expr& child = expr.children[0];
  Kinds of_child;
  TypedExpr inner = resolve(child, of_child);
  if (child.op == ExprOp::name) {
    out.fact = inner.fact;
    if (expr.name == "set" && defined_.contains(child.name)) {
      problem("RU004", fmt::format("`{}` is computed by a rule; no config sets it", child.name), expr.span);
    }
    return out;
  }
  if (expr.name == "set") problem("RU004", "only a key is set; this is an expression", expr.span);
  out.children.push_back(std::move(inner));
  return out;
}

TypedExpr ExpressionResolver::resolve_call(const Expr& expr, Kinds& kinds) {
  TypedExpr out = typed(expr);
  out.name = expr.name;
  std::vector<Kinds> arguments;
  for (const Expr& child : expr.children) out.children.push_back(resolve(child, arguments.emplace_back()));
  kinds = any_kinds();
  const auto* info = std::find_if(std::begin(kFunctions), std::end(kFunctions),
                                  [&](const FunctionInfo& function) { return function.name == expr.name; });
  if (info == std::end(kFunctions)) {
    std::vector<std::string> names;
    for (const FunctionInfo& function : kFunctions) names.emplace_back(function.name);
    const std::string near = nearest(expr.name, names);
    problem("RU003",
            fmt::format("there is no function `{}`{}", expr.name,
                        near.empty() ? "" : fmt::format("; did you mean `{}`?", near)),
            expr.span);
    return out;
  }
  out.function = info->function;
  if (static_cast<int>(arguments.size()) != info->arguments) {
    problem("RU004",
            fmt::format("`{}` takes {} argument{}, not {}", expr.name, info->arguments,
                        info->arguments == 1 ? "" : "s", arguments.size()),
            expr.span);
    return out;
  }
  for (std::size_t index = 0; index < arguments.size(); ++index) {
    const int mask = index == 0 ? info->first : info->second;
    require_kinds(expr.children[index], arguments[index], mask, describe(of_bits(mask)).c_str());
  }
  if (info->function == RuleFunction::kDivides && is_zero(out.children[0]))
    problem("RU004", fmt::format("`{}` never holds: nothing is a multiple of zero", print(expr)), expr.span);
  kinds = of_bits(info->result);
  switch (info->function) {
    case RuleFunction::kTokens:
    case RuleFunction::kMembers:
    case RuleFunction::kStrings:
      kinds.elements = static_cast<std::uint16_t>(kKindString | arguments[0].elements);
      kinds.words = arguments[0].words;
      kinds.open_words = arguments[0].open_words;
      break;
    case RuleFunction::kSplit:
    case RuleFunction::kCharacters:
      kinds.elements = kKindString;
      break;
    case RuleFunction::kMin:
    case RuleFunction::kMax:
      kinds = of_bits(((arguments[0].bits | arguments[1].bits) & (kKindNumber | kKindVersion)) | kKindNone);
      break;
    case RuleFunction::kField:
      kinds.elements = kKindAny & ~kKindVersion;
      break;
    default:
      break;
  }
  return out;
}

}  // namespace capstan
