#include "compiler/ruleset/rule_set_binary.h"

#include <utility>

#include "compiler/schema/version_binary.h"
#include "grammar/rule/evidence_binary.h"
#include "grammar/rule/rule_parser.h"
#include "grammar/source/binary_archive.h"

namespace capstan {
namespace {

struct RuleSetWriter : BinaryWriter {};
struct RuleSetReader : BinaryReader {
  using BinaryReader::BinaryReader;
  int depth = 0;          ///< of expressions
  std::size_t names = 0;  ///< every FactId is below
};

template <typename Archive>
void visit_fact(Archive& archive, FactId& fact) {
  visit(archive, fact);
  if constexpr (Archive::kReads) {
    if (fact >= archive.names) archive.fail();
  }
}

template <typename Archive>
void visit_facts(Archive& archive, std::vector<FactId>& facts) {
  visit(archive, facts);
  if constexpr (Archive::kReads) {
    for (const FactId fact : facts) {
      if (fact >= archive.names) return archive.fail();
    }
  }
}

template <typename Archive>
void visit(Archive& archive, TypedExpr& expr) {
  if constexpr (Archive::kReads) {
    if (++archive.depth > kMaxExpressionDepth + 1) return archive.fail();
  }
  visit_enum(archive, expr.op, ExprOp::call);
  visit_enum(archive, expr.function, RuleFunction::kLayout);
  visit_enum(archive, expr.kind, KindWord::kTable);
  visit_fact(archive, expr.fact);
  if (expr.op == ExprOp::version) visit(archive, expr.version);
  visit_all(archive, expr.literal, expr.name, expr.children, expr.span);
  if constexpr (Archive::kReads) --archive.depth;
}

template <typename Archive>
void visit(Archive& archive, ResolvedBound& bound) {
  visit_enum(archive, bound.comparison, Comparison::not_equal);
  visit(archive, bound.version);
}
template <typename Archive>
void visit(Archive& archive, ResolvedRange& range) {
  visit_all(archive, range.component, range.bounds);
}
template <typename Archive>
void visit(Archive& archive, ResolvedAction& action) {
  visit_enum(archive, action.kind, FixAction::Kind::remove);
  visit_fact(archive, action.key);
  visit(archive, action.value);
}
template <typename Archive>
void visit(Archive& archive, ResolvedFix& fix) {
  visit_enum(archive, fix.applicability, Applicability::unsafe);
  visit_enum(archive, fix.cost, CostClass::numerics);
  visit_all(archive, fix.title, fix.actions);
}

template <typename Archive>
void visit(Archive& archive, RuleItem& item) {
  visit_enum(archive, item.kind, RuleItem::Kind::define);
  visit_enum(archive, item.finding, FindingKind::advice);
  visit_enum(archive, item.severity, Severity::error);
  visit_enum(archive, item.enforcer, Enforcer::capstan);
  visit_all(archive, item.code, item.name, item.silent, item.frontends, item.applies, item.phase, item.step,
            item.has_when, item.when, item.require, item.assignments, item.value);
  visit_fact(archive, item.defined);
  visit_facts(archive, item.blame);
  visit_facts(archive, item.reads);
  visit_facts(archive, item.shown);
  visit_all(archive, item.message, item.why, item.raises, item.fixes, item.sources, item.evidence, item.file,
            item.span);
}

}  // namespace

std::string encode_rule_set(const RuleSet& rules) {
  RuleSetWriter writer;
  std::vector<std::string> names;
  for (FactId id = 0; id < rules.names.size(); ++id) names.push_back(rules.names.name(id));
  RuleSet copy = rules;  // the description names parts as they are read: not const
  visit_all(writer, names, copy.phases, copy.items);
  return std::move(writer.bytes);
}

std::optional<RuleSet> decode_rule_set(std::string_view bytes) {
  RuleSetReader reader(bytes);
  RuleSet rules;
  std::vector<std::string> names;
  visit(reader, names);
  for (const std::string& name : names) rules.names.intern(name);
  if (rules.names.size() != names.size()) return std::nullopt;  // a name twice would shift all ids
  reader.names = names.size();
  visit_all(reader, rules.phases, rules.items);
  if (!reader.complete()) return std::nullopt;
  return rules;
}

}  // namespace capstan
