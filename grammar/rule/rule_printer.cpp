#include "grammar/rule/rule_printer.h"

#include <fmt/format.h>

namespace capstan {
namespace {

struct OperatorText {
  const char* text;
  int precedence;  // as in the grammar: a child that binds looser, or equally on the wrong side, gets
                   // parentheses
};

OperatorText operator_text(ExprOp op) {
  switch (op) {
    case ExprOp::iff:
      return {"iff", 1};
    case ExprOp::implies:
      return {"implies", 1};
    case ExprOp::or_:
      return {"or", 2};
    case ExprOp::and_:
      return {"and", 3};
    case ExprOp::not_:
      return {"not", 4};
    case ExprOp::equal:
      return {"=", 5};
    case ExprOp::not_equal:
      return {"!=", 5};
    case ExprOp::less:
      return {"<", 5};
    case ExprOp::less_equal:
      return {"<=", 5};
    case ExprOp::greater:
      return {">", 5};
    case ExprOp::greater_equal:
      return {">=", 5};
    case ExprOp::in:
      return {"in", 5};
    case ExprOp::not_in:
      return {"not in", 5};
    case ExprOp::is:
      return {"is", 5};
    case ExprOp::is_not:
      return {"is not", 5};
    case ExprOp::subset:
      return {"subset", 5};
    case ExprOp::overlaps:
      return {"overlaps", 5};
    case ExprOp::union_:
      return {"union", 6};
    case ExprOp::minus:
      return {"minus", 6};
    case ExprOp::intersect:
      return {"intersect", 6};
    case ExprOp::coalesce:
      return {"?\?", 7};
    case ExprOp::add:
      return {"+", 8};
    case ExprOp::subtract:
      return {"-", 8};
    case ExprOp::multiply:
      return {"*", 9};
    case ExprOp::divide:
      return {"/", 9};
    case ExprOp::floor_divide:
      return {"//", 9};
    case ExprOp::modulo:
      return {"%", 9};
    case ExprOp::negate:
      return {"-", 10};
    case ExprOp::conditional:
      return {"if", 0};
    default:
      return {"", 11};
  }
}

void append_quoted(const std::string& text, std::string& out) {
  out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  out += '"';
}

void append(const Expr& expr, std::string& out);

void append_child(const Expr& child, int least, std::string& out) {
  const bool parentheses = operator_text(child.op).precedence < least;
  if (parentheses) out += '(';
  append(child, out);
  if (parentheses) out += ')';
}

void append_list(const std::vector<Expr>& items, std::string& out) {
  for (std::size_t index = 0; index < items.size(); ++index) {
    if (index > 0) out += ", ";
    append(items[index], out);
  }
}

void append_literal(const Value& value, std::string& out) {
  if (value.kind() == Value::Kind::string)
    append_quoted(value.string(), out);
  else
    out += to_text(value);
}

void append(const Expr& expr, std::string& out) {
  const auto [text, precedence] = operator_text(expr.op);
  switch (expr.op) {
    case ExprOp::literal:
      append_literal(expr.literal, out);
      return;
    case ExprOp::version:
      out += 'v' + expr.name;
      return;
    case ExprOp::name:
      out += expr.name;
      return;
    case ExprOp::set:
      out += '{';
      append_list(expr.children, out);
      out += '}';
      return;
    case ExprOp::call:
      out += expr.name + '(';
      append_list(expr.children, out);
      out += ')';
      return;
    case ExprOp::conditional:
      out += "if ";
      append(expr.children[0], out);
      out += " then ";
      append(expr.children[1], out);
      out += " else ";
      append(expr.children[2], out);
      return;
    case ExprOp::not_:
      out += "not ";
      append_child(expr.children[0], precedence, out);
      return;
    case ExprOp::negate:
      out += '-';
      append_child(expr.children[0], precedence, out);
      return;
    case ExprOp::is:
    case ExprOp::is_not:
      append_child(expr.children[0], precedence + 1, out);
      out += fmt::format(" {} {}", text, expr.name);
      return;
    case ExprOp::and_:
    case ExprOp::or_:
      for (std::size_t index = 0; index < expr.children.size(); ++index) {
        if (index > 0) out += fmt::format(" {} ", text);
        append_child(expr.children[index], precedence + 1, out);
      }
      return;
    default:
      break;
  }
  const bool left_to_right = precedence >= 6;
  append_child(expr.children[0], precedence + (left_to_right ? 0 : 1), out);
  out += fmt::format(" {} ", text);
  append_child(expr.children[1], precedence + (expr.op == ExprOp::implies ? 0 : 1), out);
}

const char* comparison_text(Comparison comparison) {
  switch (comparison) {
    case Comparison::less:
      return "<";
    case Comparison::less_equal:
      return "<=";
    case Comparison::equal:
      return "=";
    case Comparison::greater_equal:
      return ">=";
    case Comparison::greater:
      return ">";
    case Comparison::not_equal:
      return "!=";
  }
  return "?";
}

void append_field(const char* name, const std::string& text, std::string& out) {
  out += fmt::format("  {:<9} {}\n", name, text);
}

void append_string_field(const char* name, const std::string& text, std::string& out) {
  std::string quoted;
  append_quoted(text, quoted);
  append_field(name, quoted, out);
}

std::string joined(const std::vector<TextWithSpan>& words) {
  std::string text;
  for (const TextWithSpan& word : words) text += (text.empty() ? "" : ", ") + word.text;
  return text;
}

std::string applies_text(const std::vector<VersionRange>& ranges) {
  if (ranges.empty()) return "any";
  std::string text;
  for (const VersionRange& range : ranges) {
    if (!text.empty()) text += ", ";
    text += range.component;
    for (const VersionRange::Bound& bound : range.bounds) {
      text += fmt::format(" {} {}", comparison_text(bound.comparison), bound.version);
    }
  }
  return text;
}

std::string action_text(const FixAction& action) {
  switch (action.kind) {
    case FixAction::Kind::set:
      return fmt::format("set {} = {}", action.key.text, print(*action.value));
    case FixAction::Kind::unset:
      return fmt::format("unset {}", action.key.text);
    case FixAction::Kind::add:
      return fmt::format("add {} to {}", print(*action.value), action.key.text);
    case FixAction::Kind::remove:
      return fmt::format("remove {} from {}", print(*action.value), action.key.text);
  }
  return "?";
}

/// Fields that all items or two of the three kinds have, in canonical order.
template <typename Item>
void append_place(const Item& item, std::string& out) {
  if (!item.frontends.empty()) append_field("frontends", joined(item.frontends), out);
  append_field("applies", applies_text(item.applies), out);
  append_field("phase", fmt::format("{} {}", item.phase.text, item.step), out);
}

template <typename Item>
void append_evidence(const Item& item, std::string& out) {
  for (const FixSyntax& fix : item.fixes) {
    std::string text = fmt::format("{} {} ", fix.applicability.text, fix.cost.text);
    append_quoted(fix.title.text, text);
    text += " { ";
    for (std::size_t index = 0; index < fix.actions.size(); ++index) {
      text += (index > 0 ? "; " : "") + action_text(fix.actions[index]);
    }
    append_field("fix", text + " }", out);
  }
  for (const SourceSyntax& source : item.sources) {
    std::string text;
    append_quoted(source.repository.text, text);
    text += ' ';
    append_quoted(source.path.text, text);
    text += ' ';
    append_quoted(source.symbol.text, text);
    text += " seen ";
    append_quoted(source.seen.text, text);
    append_field("source", text, out);
  }
  for (const EvidenceSyntax& evidence : item.evidence) {
    std::string text = fmt::format("{} {}", evidence.kind.text, evidence.date.text);
    if (!evidence.text.text.empty()) {
      text += ' ';
      append_quoted(evidence.text.text, text);
    }
    append_field("evidence", text, out);
  }
}

std::string print(const RuleSyntax& rule) {
  std::string out = fmt::format("rule {} {} {{\n", rule.code.text, rule.name.text);
  append_field("kind", rule.kind.text, out);
  if (rule.severity) append_field("severity", rule.severity->text, out);
  append_field("enforcer", rule.enforcer.text, out);
  append_place(rule, out);
  if (rule.when) append_field("when", print(*rule.when), out);
  append_field("require", print(rule.require), out);
  append_field("blame", joined(rule.blame), out);
  append_string_field("message", rule.message.text, out);
  append_string_field("why", rule.why.text, out);
  for (const TextWithSpan& pattern : rule.raises) append_string_field("raises", pattern.text, out);
  append_evidence(rule, out);
  return out + "}\n";
}

std::string print(const RewriteSyntax& rewrite) {
  std::string out = fmt::format("rewrite {} {} {{\n", rewrite.code.text, rewrite.name.text);
  if (rewrite.severity) append_field("severity", rewrite.severity->text, out);
  if (rewrite.silent) append_field("silent", "yes", out);
  append_field("enforcer", rewrite.enforcer.text, out);
  append_place(rewrite, out);
  if (rewrite.when) append_field("when", print(*rewrite.when), out);
  for (const FixAction& action : rewrite.assignments) {
    append_field("set", fmt::format("{} = {}", action.key.text, print(*action.value)), out);
  }
  if (rewrite.message) append_string_field("message", rewrite.message->text, out);
  if (rewrite.why) append_string_field("why", rewrite.why->text, out);
  append_evidence(rewrite, out);
  return out + "}\n";
}

std::string print(const DefineSyntax& define) {
  std::string out = fmt::format("define {} {{\n", define.name.text);
  append_place(define, out);
  append_field("value", print(define.value), out);
  if (define.doc) append_string_field("doc", define.doc->text, out);
  return out + "}\n";
}

}  // namespace

std::string print(const Expr& expr) {
  std::string out;
  append(expr, out);
  return out;
}

std::string print(const RuleFileSyntax& file) {
  std::string out;
  const auto add = [&](const std::string& text) { out += (out.empty() ? "" : "\n") + text; };
  for (const RuleSyntax& rule : file.rules) add(print(rule));
  for (const RewriteSyntax& rewrite : file.rewrites) add(print(rewrite));
  for (const DefineSyntax& define : file.defines) add(print(define));
  return out;
}

}  // namespace capstan
