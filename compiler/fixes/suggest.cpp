#include "compiler/fixes/suggest.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <tuple>

#include "compiler/fixes/meant_words.h"
#include "compiler/fixes/release_fixes.h"
#include "compiler/ruleset/evaluate.h"
#include "compiler/ruleset/rule_values.h"
#include "compiler/solve/domain.h"
#include "compiler/solve/repair.h"

namespace capstan {
namespace {

/// What the actions of fixes read: keys as the config has them; what rules define, as they left it.
Facts facts_for_actions(const Subject& subject, Facts facts) {
  for (const FactId fact : subject.book.changeable) facts.values[fact] = subject.facts.values[fact];
  return facts;
}

/// The statement of a key that loses its value to another one, which nothing sets, moves there as it is
/// written.
void add_moves(const Subject& subject, const ResolvedFix& fix, std::vector<KeyChange>& changes) {
  for (const ResolvedAction& set : fix.actions) {
    if (set.kind != FixAction::Kind::set || set.value.op != ExprOp::name) continue;
    const FactId from = set.value.fact;
    const auto same_key = [](FactId key) {
      return [key](const ResolvedAction& one) { return one.key == key; };
    };
    const auto gives_up = [&](const ResolvedAction& one) {
      return one.kind == FixAction::Kind::unset && one.key == from;
    };
    const auto takes = [&](const ResolvedAction& one) {
      return one.kind == FixAction::Kind::set && one.value.op == ExprOp::name && one.value.fact == from;
    };
    if (std::none_of(fix.actions.begin(), fix.actions.end(), gives_up) ||
        std::count_if(fix.actions.begin(), fix.actions.end(), takes) != 1 ||
        std::count_if(fix.actions.begin(), fix.actions.end(), same_key(set.key)) != 1 ||
        !subject.facts.values[from].set || subject.facts.values[set.key].set)
      continue;
    changes.push_back({KeyChange::Kind::rename, subject.name(from), {}, subject.name(set.key)});
  }
}

/// The author's actions as changes of keys. Nothing when a value is not known.
std::optional<std::vector<KeyChange>> changes_of(const Subject& subject, const ResolvedFix& fix,
                                                 const Facts& facts) {
  std::vector<KeyChange> changes;
  for (const ResolvedAction& action : fix.actions) {
    const std::string& path = subject.name(action.key);
    if (action.kind == FixAction::Kind::unset) {
      changes.push_back({KeyChange::Kind::unset, path, {}, {}});
      continue;
    }
    const Evaluated value = evaluate_expression(action.value, facts);
    if (value.state != Fact::State::known || value.is_version) return std::nullopt;
    const auto kind = action.kind == FixAction::Kind::set   ? KeyChange::Kind::set
                      : action.kind == FixAction::Kind::add ? KeyChange::Kind::add
                                                            : KeyChange::Kind::remove;
    if (kind != KeyChange::Kind::set && value.value.kind() == Value::Kind::list) {
      for (const Value& element : value.value.list()) changes.push_back({kind, path, element, {}});
    } else {
      changes.push_back({kind, path, value.value, {}});
    }
  }
  add_moves(subject, fix, changes);
  return changes;
}

/// What the changes come to, key by key.
std::vector<Assignment> assignments_of(const Subject& subject, const std::vector<KeyChange>& changes) {
  std::vector<Assignment> out;
  for (const KeyChange& change : changes) {
    FactId fact = 0;
    if (!subject.facts.names->find(change.path, fact)) continue;
    auto known =
        std::find_if(out.begin(), out.end(), [fact](const Assignment& one) { return one.fact == fact; });
    if (known == out.end()) {
      out.push_back({fact, subject.facts.values[fact].set, subject.facts.values[fact].value});
      known = std::prev(out.end());
    }
    switch (change.kind) {
      case KeyChange::Kind::set:
        *known = {fact, !change.value.is_none(), change.value};
        if (change.value.is_none()) known->value = default_choice(subject, fact).value;
        break;
      case KeyChange::Kind::unset:
        *known = {fact, false, default_choice(subject, fact).value};
        break;
      case KeyChange::Kind::add:
        *known = {fact, true, with_element(known->value, change.value)};
        break;
      case KeyChange::Kind::remove:
        *known = {fact, known->set, without_element(known->value, change.value)};
        break;
      case KeyChange::Kind::rename:
      case KeyChange::Kind::drop_table:
        break;
    }
  }
  out.erase(std::remove_if(out.begin(), out.end(),
                           [&](const Assignment& one) {
                             const Fact& now = subject.facts.values[one.fact];
                             return now.state == Fact::State::known && now.set == one.set &&
                                    now.value == one.value;
                           }),
            out.end());
  return out;
}

/// The checks that fail, as items in framework order.
std::vector<std::uint32_t> failed_checks(const CheckRequest& request, const Evaluation& evaluation) {
  std::vector<std::uint32_t> items;
  for (const Violation& violation : evaluation.violations) {
    if (!violation.undecided && request.rules.set->items[violation.item].kind == RuleItem::Kind::check)
      items.push_back(violation.item);
  }
  return items;
}

/// Whether no check is violated now but those that failed `before`, and `gone` is violated no more.
bool adds_nothing(const CheckRequest& request, const std::vector<std::uint32_t>& before,
                  const std::vector<std::uint32_t>& now, std::uint32_t gone = Finding::kNoItem) {
  for (const std::uint32_t item : now) {
    if (item == gone) return false;
    if (request.rules.set->items[item].kind == RuleItem::Kind::check &&
        std::find(before.begin(), before.end(), item) == before.end())
      return false;
  }
  return true;
}

/// What the findings of one config share.
struct Case {
  const CheckRequest& request;
  const Subject& subject;
  const Evaluation& evaluation;
  const SuggestOptions& options;
  std::vector<std::uint32_t> failed;  ///< checks, as items
  std::optional<Facts> action_facts;  ///< made when a fix needs it
};

/// The schema says what changing a key costs. An author knows more in two cases: what is dropped had no
/// effect (free), or a key that the schema calls free is none here.
CostClass cost_of(const Subject& subject, const ResolvedFix& fix, const std::vector<Assignment>& changes) {
  if (fix.cost == CostClass::free) return fix.cost;
  CostClass cost = CostClass::free;
  for (const Assignment& change : changes)
    cost = std::max(cost, cost_class_of(effect_of(subject, change.fact)));
  const bool vouched = cost == CostClass::numerics && fix.applicability == Applicability::safe;
  return cost == CostClass::free || vouched ? fix.cost : cost;
}

/// A way out that is to be judged.
struct Idea {
  std::string title;
  Applicability applicability;
  CostClass cost;
  std::vector<KeyChange> changes;
  std::vector<Assignment> assignments;  ///< what the changes come to
};

class Suggester {
 public:
  Suggester(Case& of, std::uint32_t item)
      : case_(of),
        request_(of.request),
        subject_(of.subject),
        item_(of.request.rules.set->items[item]),
        options_(of.options),
        target_(item) {}

  /// Best first.
  std::vector<Fix> run() {
    const bool is_check = item_.kind == RuleItem::Kind::check;
    const auto position = subject_.index().position_of(target_);
    if (!position || (item_.fixes.empty() && !is_check)) return {};
    position_ = *position;
    if (is_check) misspelt();
    for (const ResolvedFix& fix : item_.fixes) authored(fix);
    for (const Idea& idea : half_ideas_) add_with_more(idea);
    if (is_check && (fixes_.empty() || item_.fixes.empty())) searched();
    std::stable_sort(fixes_.begin(), fixes_.end(), [](const Fix& a, const Fix& b) {
      return std::tuple(a.applicability == Applicability::display_only, a.applicability) <
             std::tuple(b.applicability == Applicability::display_only, b.applicability);
    });
    if (fixes_.size() > options_.limit) fixes_.resize(options_.limit);
    return std::move(fixes_);
  }

  /// The search met its limit: that there is no suggestion says nothing.
  bool limit_met() const { return limit_met_; }

 private:
  bool verified(const std::vector<Assignment>& assignments) const {
    return adds_nothing(request_, case_.failed, subject_.variants().violations(assignments), target_);
  }

  /// Words that the release does not know, each replaced by the known one that it is nearest to.
  void misspelt() {
    for (const FactId fact : subject_.index().inputs(position_)) {
      const Fact& now = subject_.facts.values[fact];
      if (!is_changeable(subject_, fact) || subject_.is_broken(fact) || !now.set) continue;
      const KeyView view = subject_.key(fact);
      // A comma parts words only where a string is another way to write a list.
      if (now.value.kind() == Value::Kind::string &&
          (view.spec == nullptr ||
           (!view.spec->type.any && now.value.string().find(',') != std::string::npos)))
        continue;
      const std::vector<std::string> known = known_words(subject_, fact);
      const auto meant = meant_words(now.value, known);
      const auto less = without_strange_words(meant ? meant->value : now.value, known);
      if (meant && write_meant(fact, *meant)) continue;
      if (less) write_meant(fact, meant ? MeantWords{less->value, meant->title + ", " + less->title} : *less);
    }
  }

  /// False where it does not do alone: it may with more, but comes after what the rule's author says.
  bool write_meant(FactId fact, const MeantWords& meant) {
    const Assignment change{fact, true, meant.value};
    const CostClass cost = cost_class_of(effect_of(subject_, fact));
    const bool is_safe = cost == CostClass::free && !changes_the_run(subject_, fact);
    Idea idea{meant.title,
              is_safe ? Applicability::safe : Applicability::unsafe,
              cost,
              {key_change(subject_, change)},
              {change}};
    if (!verified(idea.assignments)) {
      half_ideas_.push_back(std::move(idea));
      return false;
    }
    add(idea.title, idea.applicability, idea.cost, idea.changes, idea.assignments);
    return true;
  }

  void authored(const ResolvedFix& fix) {
    if (!case_.action_facts) case_.action_facts = facts_for_actions(subject_, case_.evaluation.final_facts);
    const auto changes = changes_of(subject_, fix, *case_.action_facts);
    if (!changes) return;
    const std::vector<Assignment> assignments = assignments_of(subject_, *changes);
    if (assignments.empty()) return;
    if (verified(assignments)) {
      add(fix.title, fix.applicability, cost_of(subject_, fix, assignments), *changes, assignments);
      return;
    }
    if (item_.kind == RuleItem::Kind::check)
      add_with_more(
          {fix.title, fix.applicability, cost_of(subject_, fix, assignments), *changes, assignments});
  }

  /// What does not do alone, with the smallest further changes with which it does.
  void add_with_more(const Idea& idea) {
    RepairRequest request = search();
    request.fixed = idea.assignments;
    request.limit = 1;
    const Repairs repairs = find_repairs(subject_, request);
    limit_met_ = limit_met_ || !repairs.complete;
    if (repairs.found.empty()) return;
    const Repair& repair = repairs.found[0];
    std::vector<KeyChange> all = idea.changes;
    std::vector<Assignment> further;
    for (const Assignment& change : repair.changes) {
      if (std::find(idea.assignments.begin(), idea.assignments.end(), change) != idea.assignments.end())
        continue;
      further.push_back(change);
      all.push_back(key_change(subject_, change));
    }
    if (!verified(repair.changes)) return;
    // Where the further changes do it alone, the idea has no part in it.
    if (verified(further)) return;
    CostClass cost = idea.cost;
    Applicability applicability = idea.applicability;
    for (const Assignment& change : further) {
      cost = std::max(cost, cost_class_of(effect_of(subject_, change.fact)));
      if (!is_safe_change(subject_, change.fact))
        applicability = std::max(applicability, Applicability::unsafe);
    }
    add(fmt::format("{}; with it {}", idea.title, describe(subject_, further)), applicability, cost, all,
        repair.changes);
  }

  RepairRequest search() const {
    RepairRequest request;
    request.targets = {position_};
    request.limit = options_.limit;
    request.touch_model = options_.touch_model;
    request.smt.timeout_ms = options_.solver_timeout_ms;
    request.smt.context = options_.context;
    return request;
  }

  void searched() {
    RepairRequest request = search();
    Repairs repairs = find_repairs(subject_, request);
    bool cut = !repairs.complete;
    // What defines the model is changed by people: such ways are told where there is no other, and never
    // taken unasked.
    const bool model = repairs.found.empty() && !cut && !request.touch_model;
    if (model) {
      request.touch_model = true;
      request.limit = std::min<std::size_t>(request.limit, 3);
      repairs = find_repairs(subject_, request);
      cut = !repairs.complete;
    }
    limit_met_ = limit_met_ || cut;
    for (const Repair& repair : repairs.found) {
      if (!verified(repair.changes)) continue;
      std::vector<KeyChange> changes;
      for (const Assignment& change : repair.changes) changes.push_back(key_change(subject_, change));
      const std::string title = describe(subject_, repair.changes);
      add(model ? "changes the model: " + title : title,
          model ? Applicability::display_only : repair.applicability, repair.cost, changes, repair.changes);
    }
  }

  void add(std::string title, Applicability applicability, CostClass cost,
           const std::vector<KeyChange>& changes, const std::vector<Assignment>& assignments) {
    for (const auto& known : assignments_) {
      if (known == assignments) return;
    }
    assignments_.push_back(assignments);
    EditPlan plan = plan_edits(changes, request_.config, request_.sources);
    Fix fix;
    fix.title = std::move(title);
    fix.applicability = applicability;
    fix.cost = cost;
    fix.edits = std::move(plan.edits);
    fix.verified = true;
    if (!plan.by_hand.empty()) {
      fix.applicability = Applicability::display_only;
      std::string words;
      for (const std::string& clause : plan.by_hand) words += (words.empty() ? "" : ", ") + clause;
      fix.title += ": " + words;
    }
    fixes_.push_back(std::move(fix));
  }

  Case& case_;
  const CheckRequest& request_;
  const Subject& subject_;
  const RuleItem& item_;
  const SuggestOptions& options_;
  std::uint32_t target_;
  std::uint32_t position_ = 0;
  std::vector<Fix> fixes_;
  std::vector<std::vector<Assignment>> assignments_;
  std::vector<Idea> half_ideas_;  ///< that do not do alone
  bool limit_met_ = false;
};

}  // namespace

KeyChange key_change(const Subject& subject, const Assignment& assignment) {
  return {assignment.set ? KeyChange::Kind::set : KeyChange::Kind::unset,
          subject.name(assignment.fact),
          assignment.value,
          {}};
}

std::optional<std::vector<Assignment>> fix_assignments(const Subject& subject, const ResolvedFix& fix) {
  const auto changes = changes_of(
      subject, fix, facts_for_actions(subject, evaluate(subject.book.rules, subject.facts).final_facts));
  if (!changes) return std::nullopt;
  return assignments_of(subject, *changes);
}

bool fix_can_work(const Subject& subject, std::uint32_t position, const ResolvedFix& fix,
                  const SmtOptions& options) {
  const auto assignments = fix_assignments(subject, fix);
  if (!assignments || assignments->empty()) return false;
  RepairRequest request;
  request.fixed = *assignments;
  request.targets = {position};
  request.limit = 1;
  request.smt = options;
  return !find_repairs(subject, request).found.empty();
}

void add_fixes(const CheckRequest& request, Judgement& judgement, std::vector<Finding>& findings,
               const SuggestOptions& given) {
  if (findings.empty()) return;
  SuggestOptions options = given;
  if (!options.context) options.context = make_solver_context();
  const Evaluation& evaluation = judgement.evaluation();
  Case one{request, judgement.subject(), evaluation, options, failed_checks(request, evaluation), {}};
  for (Finding& finding : findings) {
    if (finding.item == Finding::kNoItem) continue;
    if (options.without != nullptr && options.without->contains(finding.diagnostic.fingerprint)) continue;
    // A hint gets the fixes that its author wrote; none is searched for it.
    if (finding.diagnostic.severity == Severity::hint && request.rules.set->items[finding.item].fixes.empty())
      continue;
    Suggester suggester(one, finding.item);
    for (Fix& fix : suggester.run()) finding.diagnostic.fixes.push_back(std::move(fix));
    if (finding.diagnostic.fixes.empty() && suggester.limit_met()) {
      finding.diagnostic.notes.push_back(
          {Note::Kind::help, "undecided: the search for a way out met its limit", ""});
    }
  }
}

namespace {

/// A word that no list of the schema holds is told once: a rule that marks it says more than the warning.
void leave_out_words_told(const std::vector<Finding>& findings, Sink& sink) {
  const auto marked = [&findings](const Span& place) {
    return std::any_of(findings.begin(), findings.end(), [&place](const Finding& finding) {
      const std::vector<Label>& labels = finding.diagnostic.labels;
      return std::any_of(labels.begin(), labels.end(),
                         [&place](const Label& label) { return label.primary && label.span == place; });
    });
  };
  for (Diagnostic& diagnostic : sink.take()) {
    const bool told = diagnostic.code == "TY005" && diagnostic.severity == Severity::warning &&
                      !diagnostic.labels.empty() && marked(diagnostic.labels.front().span);
    if (!told) sink.report(std::move(diagnostic));
  }
}

}  // namespace

void check_and_suggest(const CheckRequest& request, const CheckOptions& options, Sink& sink) {
  Judgement judgement(request);
  if (options.suggest_fixes) add_release_fixes(request, judgement, options, sink);
  std::vector<Finding> findings = find_violations(request, judgement, options);
  if (options.suggest_fixes) {
    SuggestOptions suggest_options;
    suggest_options.solver_timeout_ms = options.solver_timeout_ms;
    suggest_options.without = options.without_fixes;
    add_fixes(request, judgement, findings, suggest_options);
  }
  leave_out_words_told(findings, sink);
  for (Finding& finding : findings) sink.report(std::move(finding.diagnostic));
}

}  // namespace capstan
