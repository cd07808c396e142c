#include "compiler/solve/audit.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "compiler/solve/domain.h"

namespace capstan {
namespace {

using Comparison = std::pair<FactId, std::string>;

/// Keys whose values choose between implementations: each of their values must be usable.
constexpr const char* kImplementationKeys[] = {"model.cuda_graph_impl",
                                               "model.attention_backend",
                                               "model.transformer_impl",
                                               "model.moe_token_dispatcher_type",
                                               "model.moe_flex_dispatcher_backend",
                                               "model.recompute_granularity",
                                               "model.recompute_method",
                                               "model.position_embedding_type",
                                               "model.normalization",
                                               "model.cp_comm_type",
                                               "model.fp8",
                                               "model.fp8_recipe",
                                               "model.fp4",
                                               "optimizer.optimizer",
                                               "checkpoint.ckpt_format"};

/// The key that an expression is, or whose module list it reads.
void keys_compared(const TypedExpr& expr, std::vector<FactId>& out) {
  switch (expr.op) {
    case ExprOp::name:
      out.push_back(expr.fact);
      return;
    case ExprOp::union_:
    case ExprOp::minus:
    case ExprOp::intersect:
    case ExprOp::coalesce:
      for (const TypedExpr& child : expr.children) keys_compared(child, out);
      return;
    case ExprOp::call:
      if (expr.function == RuleFunction::kTokens || expr.function == RuleFunction::kSplit)
        keys_compared(expr.children[0], out);
      return;
    default:
      return;
  }
}

/// Whether the stack alone decides a condition.
std::optional<bool> truth_on_stack(const TypedExpr& expr, const Facts& facts) {
  switch (expr.op) {
    case ExprOp::not_: {
      const std::optional<bool> inner = truth_on_stack(expr.children[0], facts);
      return inner ? std::optional(!*inner) : std::nullopt;
    }
    case ExprOp::and_:
    case ExprOp::or_: {
      const bool decisive = expr.op == ExprOp::or_;
      bool all_known = true;
      for (const TypedExpr& child : expr.children) {
        const std::optional<bool> truth = truth_on_stack(child, facts);
        if (truth && *truth == decisive) return decisive;
        all_known = all_known && truth.has_value();
      }
      return all_known ? std::optional(!decisive) : std::nullopt;
    }
    case ExprOp::less:
    case ExprOp::less_equal:
    case ExprOp::greater:
    case ExprOp::greater_equal:
    case ExprOp::equal:
    case ExprOp::not_equal: {
      for (const TypedExpr& child : expr.children) {
        const bool stated = child.op == ExprOp::name && is_fixed_by_the_stack(facts.names->name(child.fact));
        if (!stated && child.op != ExprOp::version && child.op != ExprOp::literal) return std::nullopt;
      }
      const Evaluated value = evaluate_expression(expr, facts);
      if (value.state != Fact::State::known || value.value.kind() != Value::Kind::boolean)
        return std::nullopt;
      return value.value.boolean();
    }
    default:
      return std::nullopt;
  }
}

/// String literals that an expression compares with keys, where the comparison can matter on the stack.
void collect_comparisons(const TypedExpr& expr, const Facts& facts, std::vector<Comparison>& out) {
  if (truth_on_stack(expr, facts)) return;
  const bool compares = expr.op == ExprOp::equal || expr.op == ExprOp::not_equal || expr.op == ExprOp::in ||
                        expr.op == ExprOp::not_in || expr.op == ExprOp::subset || expr.op == ExprOp::overlaps;
  if (compares && expr.children.size() == 2) {
    for (std::size_t side = 0; side < 2; ++side) {
      const TypedExpr& other = expr.children[1 - side];
      std::vector<FactId> keys;
      keys_compared(expr.children[side], keys);
      for (const FactId key : keys) {
        if (other.literal.kind() == Value::Kind::string) out.emplace_back(key, other.literal.string());
        if (other.op != ExprOp::set || other.literal.kind() != Value::Kind::list) continue;
        for (const Value& item : other.literal.list()) {
          if (item.kind() == Value::Kind::string) out.emplace_back(key, item.string());
        }
      }
    }
  }
  if (expr.op == ExprOp::conditional) {
    const std::optional<bool> chosen = truth_on_stack(expr.children[0], facts);
    for (std::size_t i = 0; i < 3; ++i) {
      if (i == 0 || !chosen || (i == 1) == *chosen) collect_comparisons(expr.children[i], facts, out);
    }
    return;
  }
  for (const TypedExpr& child : expr.children) collect_comparisons(child, facts, out);
}

class Auditor {
 public:
  Auditor(const Subject& empty, const RuleProbes& probes, const SmtOptions& options)
      : empty_(empty), book_(empty.book), probes_(probes), options_(options) {}

  RuleAudit run() {
    for (std::uint32_t position = 0; position < book_.index.size(); ++position) {
      const RuleItem& item = book_.index.item(position);
      if (item.kind == RuleItem::Kind::define) continue;
      audit_name(position, item);
      audit_values(position, item);
    }
    for (std::uint32_t position = 0; position < book_.index.size(); ++position) {
      if (book_.index.item(position).kind != RuleItem::Kind::define) audit_life(position);
    }
    for (const char* key : kImplementationKeys) audit_implementation(key);
    return std::move(audit_);
  }

 private:
  void report(AuditFinding::Kind kind, std::uint32_t position, std::string text,
              std::vector<std::uint32_t> others = {}) {
    audit_.findings.push_back({kind, position, std::move(text), std::move(others)});
  }

  void audit_name(std::uint32_t position, const RuleItem& item) {
    const auto [known, fresh] = names_.try_emplace({item.kind, item.name}, position);
    if (!fresh) {
      report(AuditFinding::Kind::duplicate_name, position,
             fmt::format("`{}` applies twice at once", item.name), {known->second});
    }
  }

  void audit_values(std::uint32_t position, const RuleItem& item) {
    std::vector<Comparison> compared;
    if (item.has_when) collect_comparisons(item.when, empty_.facts, compared);
    if (item.kind == RuleItem::Kind::check) collect_comparisons(item.require, empty_.facts, compared);
    for (const ResolvedFix& fix : item.fixes) {
      for (const ResolvedAction& action : fix.actions) {
        if (action.kind == FixAction::Kind::set && action.value.op == ExprOp::literal &&
            action.value.literal.kind() == Value::Kind::string)
          compared.emplace_back(action.key, action.value.literal.string());
      }
    }
    std::sort(compared.begin(), compared.end());
    compared.erase(std::unique(compared.begin(), compared.end()), compared.end());
    for (const auto& [fact, literal] : compared) {
      const KeyView view = empty_.key(fact);
      if (view.spec == nullptr || view.spec->values.empty() || view.spec->type.any) continue;
      const std::vector<std::string>& legal = view.spec->values;
      if (literal.empty() || std::find(legal.begin(), legal.end(), literal) != legal.end()) continue;
      report(AuditFinding::Kind::unknown_value, position,
             fmt::format("compares `{}` with `{}`, which the release does not know", empty_.name(fact),
                         literal));
    }
  }

  /// The first key of the item that other releases have and this one lacks.
  std::string missing_key(std::uint32_t position) const {
    for (const FactId fact : book_.index.inputs(position)) {
      const KeyView view = empty_.key(fact);
      if (view.info != nullptr && view.spec == nullptr) return empty_.name(fact);
    }
    return {};
  }

  void audit_life(std::uint32_t position) {
    Counterexample example = find_counterexample(empty_, probes_, position, options_);
    const RuleItem& item = book_.index.item(position);
    if (example.answer == Answer::sat) {
      if (!example.alone && !example.limited && item.kind == RuleItem::Kind::check) {
        std::vector<std::uint32_t> others;
        for (const std::uint32_t other : firing_items(book_, example.facts)) {
          if (other != position && book_.index.item(other).kind == RuleItem::Kind::check)
            others.push_back(other);
        }
        for (const std::uint32_t other : others) {
          if (book_.index.item(other).message == item.message)
            report(AuditFinding::Kind::duplicate_name, position,
                   "never fires without another that says the same", {other});
        }
        report(AuditFinding::Kind::implied, position, "fires together with others only", std::move(others));
      }
      audit_.examples.emplace(position, std::move(example));
      return;
    }
    if (const std::string missing = missing_key(position); !missing.empty()) {
      report(AuditFinding::Kind::no_such_key, position,
             fmt::format("cannot fire: the release lacks `{}`", missing));
    } else if (example.answer == Answer::unsat) {
      report(AuditFinding::Kind::dead, position, "no config of this release makes it fire");
    } else {
      report(AuditFinding::Kind::unwitnessed, position, "no value tried makes it fire");
    }
  }

  /// For every implementation value there must be a config without findings of kind rejects or breaks.
  void audit_implementation(const std::string& key) {
    FactId implementation = 0;
    if (!book_.rules.set->names.find(key, implementation)) return;
    const KeyView view = empty_.key(implementation);
    if (view.spec == nullptr) return;
    for (const std::string& value : view.spec->values) {
      Value chosen(value);
      if (!view.spec->type.string && !view.spec->type.any) {
        if (!view.spec->type.list) continue;
        chosen = Value(Value::List{chosen});
      }
      const Accepted accepted = find_accepted(empty_, probes_, {implementation, true, chosen}, options_);
      if (accepted.answer == Answer::sat) continue;
      std::vector<std::uint32_t> rules(accepted.rules.begin(), accepted.rules.end());
      const std::uint32_t first = rules.front();
      rules.erase(rules.begin());
      report(accepted.answer == Answer::unsat ? AuditFinding::Kind::unsatisfiable
                                              : AuditFinding::Kind::undecided,
             first, fmt::format("no config with `{} = \"{}\"` satisfies all rules", key, value),
             std::move(rules));
    }
  }

  const Subject& empty_;
  const RuleBook& book_;
  const RuleProbes& probes_;
  SmtOptions options_;
  std::map<std::pair<RuleItem::Kind, std::string>, std::uint32_t> names_;
  RuleAudit audit_;
};

}  // namespace

const char* audit_kind_name(AuditFinding::Kind kind) {
  switch (kind) {
    case AuditFinding::Kind::dead:
      return "dead";
    case AuditFinding::Kind::unwitnessed:
      return "unwitnessed";
    case AuditFinding::Kind::no_such_key:
      return "no-such-key";
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

RuleAudit audit_rules(const Subject& empty, const RuleProbes& probes, const SmtOptions& options) {
  return Auditor(empty, probes, options).run();
}

}  // namespace capstan
