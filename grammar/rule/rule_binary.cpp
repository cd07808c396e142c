#include "grammar/rule/rule_binary.h"

#include <utility>

#include "grammar/rule/evidence_binary.h"
#include "grammar/rule/rule_parser.h"
#include "grammar/source/binary_archive.h"

namespace capstan {
namespace {

struct RuleFileWriter : BinaryWriter {};
struct RuleFileReader : BinaryReader {
  using BinaryReader::BinaryReader;
  int depth = 0;  ///< of expressions
};

/// Later stages index children without looking, so the count must fit the operator.
bool has_fitting_children(const Expr& expr) {
  const std::size_t count = expr.children.size();
  switch (expr.op) {
    case ExprOp::literal:
    case ExprOp::version:
    case ExprOp::name:
      return count == 0;
    case ExprOp::set:
    case ExprOp::call:
      return true;
    case ExprOp::and_:
    case ExprOp::or_:
      return count >= 2;
    case ExprOp::not_:
    case ExprOp::negate:
    case ExprOp::is:
    case ExprOp::is_not:
      return count == 1;
    case ExprOp::conditional:
      return count == 3;
    default:
      return count == 2;
  }
}

template <typename Archive>
void visit(Archive& archive, Expr& expr) {
  if constexpr (Archive::kReads) {
    if (++archive.depth > kMaxExpressionDepth + 1) return archive.fail();
  }
  visit_enum(archive, expr.op, ExprOp::call);
  visit(archive, expr.span);
  if (expr.op == ExprOp::literal)
    visit(archive, expr.literal);
  else
    visit(archive, expr.name);
  visit(archive, expr.children);
  if constexpr (Archive::kReads) {
    --archive.depth;
    if (archive.good && !has_fitting_children(expr)) archive.fail();
  }
}

template <typename Archive>
void visit(Archive& archive, VersionRange::Bound& bound) {
  visit_enum(archive, bound.comparison, Comparison::not_equal);
  visit_all(archive, bound.version, bound.span);
}
template <typename Archive>
void visit(Archive& archive, VersionRange& range) {
  visit_all(archive, range.component, range.bounds, range.span);
}
template <typename Archive>
void visit(Archive& archive, FixAction& action) {
  visit_enum(archive, action.kind, FixAction::Kind::remove);
  visit_all(archive, action.key, action.value, action.span);
  if constexpr (Archive::kReads) {
    if (action.value.has_value() == (action.kind == FixAction::Kind::unset)) archive.fail();
  }
}
template <typename Archive>
void visit(Archive& archive, FixSyntax& fix) {
  visit_all(archive, fix.applicability, fix.cost, fix.title, fix.actions, fix.span);
}
template <typename Archive>
void visit(Archive& archive, RuleSyntax& rule) {
  visit_all(archive, rule.code, rule.name, rule.kind, rule.severity, rule.enforcer, rule.frontends,
            rule.applies, rule.phase, rule.step, rule.when, rule.require, rule.blame, rule.message, rule.why,
            rule.raises, rule.fixes, rule.sources, rule.evidence, rule.span);
}
template <typename Archive>
void visit(Archive& archive, RewriteSyntax& rewrite) {
  visit_all(archive, rewrite.code, rewrite.name, rewrite.severity, rewrite.silent, rewrite.enforcer,
            rewrite.frontends, rewrite.applies, rewrite.phase, rewrite.step, rewrite.when,
            rewrite.assignments, rewrite.message, rewrite.why, rewrite.fixes, rewrite.sources,
            rewrite.evidence, rewrite.span);
}
template <typename Archive>
void visit(Archive& archive, DefineSyntax& define) {
  visit_all(archive, define.name, define.frontends, define.applies, define.phase, define.step, define.value,
            define.doc, define.span);
}

}  // namespace

std::string encode_binary(const RuleFileSyntax& file) {
  RuleFileSyntax copy = file;  // the description names parts as they are read: not const
  RuleFileWriter writer;
  visit_all(writer, copy.rules, copy.rewrites, copy.defines);
  return std::move(writer.bytes);
}

std::optional<RuleFileSyntax> decode_binary(std::string_view bytes) {
  RuleFileSyntax file;
  RuleFileReader reader(bytes);
  visit_all(reader, file.rules, file.rewrites, file.defines);
  if (!reader.complete()) return std::nullopt;
  return file;
}

}  // namespace capstan
