#include "compiler/solve/audit.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "compiler/constraints/encode.h"
#include "compiler/solve/domain.h"
#include "compiler/solve/repair.h"

namespace capstan {
namespace {

constexpr int kMostRounds = 30;

/// Values that the literals of a rule give to facts about the target ("h100", versions, world sizes).
Domain target_domain(const Subject& subject, FactId fact) {
  Domain domain;
  const Fact& now = subject.facts.values[fact];
  domain.choices.push_back({now.set, now.state == Fact::State::unknown, now.value});
  for (const Value& literal : subject.book.candidates.literals(fact)) {
    domain.choices.push_back({true, false, literal});
    if (literal.kind() == Value::Kind::integer) {
      domain.choices.push_back({true, false, Value(literal.integer() + 1)});
      domain.choices.push_back({true, false, Value(literal.integer() - 1)});
    }
  }
  return domain;
}

class Violator {
 public:
  Violator(const RuleBook& book, std::uint32_t position, SmtOptions options)
      : book_(book), position_(position), options_(options), subject_(empty_, book) {}

  Counterexample run() {
    Counterexample any;
    std::set<std::uint32_t> held;
    for (int round = 0; round < kMostRounds; ++round) {
      const Counterexample next = solve(held);
      if (next.answer != Answer::sat) {
        if (any.answer == Answer::sat) return any;
        return next;
      }
      any = next;
      bool grown = false;
      any.alone = true;
      for (const std::uint32_t other : violated_checks(book_, with_changes(subject_.facts, next.settings))) {
        if (other == position_ || book_.index.item(other).finding == FindingKind::advice) continue;
        any.alone = false;
        grown |= held.insert(other).second;
      }
      if (any.alone || !grown) return any;
    }
    return any;
  }

 private:
  Counterexample solve(const std::set<std::uint32_t>& held) {
    Counterexample out;
    Smt smt(options_);
    Encoding encoding(smt, book_.index, subject_.facts);
    std::set<FactId> inputs(book_.index.inputs(position_).begin(), book_.index.inputs(position_).end());
    for (const std::uint32_t other : held)
      inputs.insert(book_.index.inputs(other).begin(), book_.index.inputs(other).end());
    std::vector<SoftTerm> soft;
    for (const FactId fact : inputs) {
      Domain domain;
      if (const auto found = repair_domain(subject_, fact))
        domain = *found;
      else if (subject_.name(fact).starts_with("target.") || subject_.name(fact).starts_with("cluster.")) {
        if (subject_.facts.values[fact].is_version) continue;
        domain = target_domain(subject_, fact);
      } else {
        continue;
      }
      encoding.open(fact, std::move(domain));
      if (encoding.stays(fact) != kTrue) soft.push_back({encoding.stays(fact), 1});
    }
    smt.require(encoding.violated(position_));
    for (const std::uint32_t other : held) smt.require(smt.negate(encoding.violated(other)));
    std::uint64_t cost = 0;
    out.answer = smt.minimize(soft, {}, cost);
    if (out.answer == Answer::unsat && encoding.too_wide()) out.answer = Answer::undecided;
    if (out.answer != Answer::sat) return out;
    for (const FactId fact : encoding.open_keys()) {
      if (smt.value(encoding.stays(fact))) continue;
      const Choice choice = encoding.decode(fact);
      if (!choice.unknown) out.settings.push_back({fact, choice.set, choice.value});
    }
    const auto violated = violated_checks(book_, with_changes(subject_.facts, out.settings));
    if (std::find(violated.begin(), violated.end(), position_) == violated.end())
      out.answer = Answer::undecided;
    return out;
  }

  Config empty_;
  const RuleBook& book_;
  std::uint32_t position_;
  SmtOptions options_;
  Subject subject_;
};

/// String literals that an expression compares with a bare key.
void collect_comparisons(const TypedExpr& expr, std::vector<std::pair<FactId, std::string>>& out) {
  const bool compares = expr.op == ExprOp::equal || expr.op == ExprOp::not_equal || expr.op == ExprOp::in ||
                        expr.op == ExprOp::not_in;
  if (compares && expr.children.size() == 2) {
    for (int side = 0; side < 2; ++side) {
      const TypedExpr& name = expr.children[static_cast<std::size_t>(side)];
      const TypedExpr& other = expr.children[static_cast<std::size_t>(1 - side)];
      if (name.op != ExprOp::name) continue;
      if (other.literal.kind() == Value::Kind::string) out.emplace_back(name.fact, other.literal.string());
      if (other.op == ExprOp::set && other.literal.kind() == Value::Kind::list) {
        for (const Value& item : other.literal.list()) {
          if (item.kind() == Value::Kind::string) out.emplace_back(name.fact, item.string());
        }
      }
    }
  }
  for (const TypedExpr& child : expr.children) collect_comparisons(child, out);
}

}  // namespace

const char* audit_kind_name(AuditFinding::Kind kind) {
  switch (kind) {
    case AuditFinding::Kind::dead:
      return "dead";
    case AuditFinding::Kind::implied:
      return "implied";
    case AuditFinding::Kind::unsound_fix:
      return "unsound-fix";
    case AuditFinding::Kind::unknown_value:
      return "unknown-value";
    case AuditFinding::Kind::duplicate_name:
      return "duplicate-name";
    case AuditFinding::Kind::unsatisfiable:
      return "unsatisfiable";
    case AuditFinding::Kind::undecided:
      return "undecided";
  }
  return "?";
}

Counterexample find_counterexample(const RuleBook& book, std::uint32_t position, SmtOptions options) {
  return Violator(book, position, options).run();
}

std::vector<AuditFinding> audit_rules(const RuleBook& book, SmtOptions options) {
  std::vector<AuditFinding> findings;
  Config empty;
  const Subject subject(empty, book);
  std::map<std::string, std::uint32_t> names;
  for (std::uint32_t position = 0; position < book.index.size(); ++position) {
    const RuleItem& item = book.index.item(position);
    if (item.kind == RuleItem::Kind::define) continue;
    const auto [known, fresh] = names.try_emplace(item.name, position);
    if (!fresh && book.index.item(known->second).kind == item.kind) {
      findings.push_back({AuditFinding::Kind::duplicate_name,
                          position,
                          fmt::format("`{}` applies twice at once", item.name),
                          {known->second}});
    }
    std::vector<std::pair<FactId, std::string>> literals;
    if (item.has_when) collect_comparisons(item.when, literals);
    if (item.kind == RuleItem::Kind::check) collect_comparisons(item.require, literals);
    for (const auto& [fact, literal] : literals) {
      const KeyView view = subject.key(fact);
      if (view.spec == nullptr || view.spec->values.empty() || view.spec->values_are_open) continue;
      if (std::find(view.spec->values.begin(), view.spec->values.end(), literal) != view.spec->values.end())
        continue;
      findings.push_back({AuditFinding::Kind::unknown_value,
                          position,
                          fmt::format("compares `{}` with `{}`, which the release does not know",
                                      subject.name(fact), literal),
                          {}});
    }
  }
  for (const std::uint32_t position : book.index.checks()) {
    const Counterexample example = find_counterexample(book, position, options);
    switch (example.answer) {
      case Answer::unsat:
        findings.push_back({AuditFinding::Kind::dead, position, "no config violates it", {}});
        break;
      case Answer::undecided:
        findings.push_back({AuditFinding::Kind::undecided,
                            position,
                            "no counterexample within the limit or the values tried",
                            {}});
        break;
      case Answer::sat:
        if (example.alone) break;
        AuditFinding finding{
            AuditFinding::Kind::implied, position, "whatever violates it violates others, too", {}};
        for (const std::uint32_t other :
             violated_checks(book, with_changes(subject.facts, example.settings))) {
          if (other != position) finding.others.push_back(other);
        }
        findings.push_back(std::move(finding));
        break;
    }
  }
  // For every implementation value there must be a config without findings of kind rejects or breaks.
  FactId implementation = 0;
  if (book.rules.set->names.find("model.cuda_graph_impl", implementation)) {
    const KeyView view = subject.key(implementation);
    const std::vector<std::string> values =
        view.spec == nullptr ? std::vector<std::string>{} : view.spec->values;
    for (const std::string& value : values) {
      const std::vector<Assignment> fixed{{implementation, true, Value(value)}};
      RepairRequest request;
      request.fixed = fixed;
      request.limit = 1;
      request.touch_model = true;
      request.allow_new_advice = true;
      request.smt = options;
      for (const std::uint32_t position : violated_checks(book, with_changes(subject.facts, fixed))) {
        if (book.index.item(position).finding != FindingKind::advice) request.targets.push_back(position);
      }
      if (request.targets.empty()) continue;
      const Repairs repairs = find_repairs(subject, request);
      if (!repairs.found.empty()) continue;
      findings.push_back(
          {repairs.complete ? AuditFinding::Kind::unsatisfiable : AuditFinding::Kind::undecided,
           request.targets[0],
           fmt::format("no config with `model.cuda_graph_impl = \"{}\"` satisfies all rules", value),
           {}});
    }
  }
  return findings;
}

}  // namespace capstan
