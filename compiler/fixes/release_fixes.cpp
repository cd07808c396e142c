#include "compiler/fixes/release_fixes.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "compiler/config/bind.h"
#include "compiler/fixes/meant_words.h"
#include "compiler/fixes/migrate.h"
#include "compiler/fixes/suggest.h"
#include "compiler/solve/domain.h"
#include "compiler/solve/repair.h"

namespace capstan {
namespace {

constexpr int kMostReleaseFixes = 20;

using Problems = std::multiset<std::string>;

/// What binding and the rules say about one config.
struct Verdict {
  Config config;  ///< bound again
  Facts facts;
  Problems problems;
  std::vector<std::uint32_t> shown;  ///< positions of violated checks that read no broken key; sorted
};

class ReleaseFixer {
 public:
  ReleaseFixer(const CheckRequest& request, Judgement& judgement, const CheckOptions& options)
      : request_(request), judgement_(judgement), options_(options) {}

  void run(Diagnostic& diagnostic) {
    if (diagnostic.keys.size() != 1) return;
    const std::string& path = diagnostic.keys[0];
    setting_ = request_.config.find(path);
    if (setting_ == nullptr) return;
    view_ = request_.schema.find(path);
    if (diagnostic.code == "TY002") return judge_guess_at_name(diagnostic);
    if (view_.info == nullptr) return;
    if (diagnostic.code == "TY005" && diagnostic.fixes.size() == 1) return judge_guess_at_word(diagnostic);
    if (!diagnostic.fixes.empty()) return;
    if (diagnostic.code == "TY005" && diagnostic.arguments.size() == 1) leave_value_out(diagnostic);
    if (diagnostic.code == "TY003") {
      if (const auto changes = native_spelling(request_.config, path, request_.schema))
        add(fmt::format("write it as {}", said(*changes)), Applicability::safe, *changes, diagnostic);
      leave_key_out(path, diagnostic);
    }
  }

 private:
  Verdict judge(Config config) {
    Verdict verdict;
    config.broken.clear();
    Sink sink;
    bind(config, request_.schema, sink);
    for (const Diagnostic& problem : sink.diagnostics()) {
      std::string text = problem.code + " " + problem.message;
      for (const std::string& key : problem.keys) text += " " + key;
      verdict.problems.insert(std::move(text));
    }
    verdict.facts = judgement_.facts_of(config);
    const RuleBook& book = judgement_.book();
    std::vector<FactId> broken;
    for (const std::string& path : config.broken) {
      FactId fact = 0;
      if (verdict.facts.names->find(path, fact)) broken.push_back(fact);
    }
    for (const std::uint32_t position : violated_checks(book, verdict.facts)) {
      if (!reads_any(book.index, position, broken)) verdict.shown.push_back(position);
    }
    std::sort(verdict.shown.begin(), verdict.shown.end());
    verdict.config = std::move(config);
    return verdict;
  }

  const Verdict& before() {
    if (!before_) before_ = judge(request_.config);
    return *before_;
  }

  std::vector<std::uint32_t> added_rules(const Verdict& after) {
    std::vector<std::uint32_t> added;
    std::set_difference(after.shown.begin(), after.shown.end(), before().shown.begin(), before().shown.end(),
                        std::back_inserter(added));
    return added;
  }

  /// The problem is gone and no other came.
  bool clears(const Verdict& after) {
    return after.problems.size() < before().problems.size() &&
           std::includes(before().problems.begin(), before().problems.end(), after.problems.begin(),
                         after.problems.end());
  }

  static bool sets(const std::vector<KeyChange>& changes, const std::string& path) {
    return std::any_of(changes.begin(), changes.end(), [&](const KeyChange& change) {
      return change.kind == KeyChange::Kind::set && change.path == path;
    });
  }

  static std::string said(const std::vector<KeyChange>& changes) {
    std::string out;
    for (const KeyChange& change : changes) {
      std::string part;
      if (change.kind == KeyChange::Kind::rename && !sets(changes, change.new_path))
        part = fmt::format("`{}`", change.new_path);
      else if (change.kind == KeyChange::Kind::set)
        part = fmt::format("`{} = {}`", change.path, to_text(change.value));
      else
        continue;
      out += (out.empty() ? "" : ", ") + part;
    }
    return out;
  }

  void add(std::string title, Applicability applicability, std::vector<KeyChange> changes,
           Diagnostic& diagnostic) {
    CostClass cost = CostClass::free;
    // Saying the same in the release's words costs nothing.
    if (applicability != Applicability::safe) cost = cost_class_of(view_.info->effect);
    Verdict after = judge(with_key_changes(request_.config, changes));
    if (!clears(after)) return;
    if (std::vector<std::uint32_t> added = added_rules(after); !added.empty()) {
      const std::optional<Repair> further = needed(after, std::move(added), changes);
      if (!further) return;
      const Subject subject(after.config, judgement_.book(), after.facts);
      for (const Assignment& change : further->changes) changes.push_back(key_change(subject, change));
      after = judge(with_key_changes(request_.config, changes));
      if (!clears(after) || !added_rules(after).empty()) return;
      title += "; with it " + describe(subject, further->changes);
      applicability = std::max(applicability, further->applicability);
      cost = std::max(cost, further->cost);
    }
    EditPlan plan = plan_edits(changes, request_.config, request_.sources);
    Fix fix;
    fix.title = std::move(title);
    fix.applicability = plan.complete() ? applicability : Applicability::display_only;
    std::string words;
    for (const std::string& clause : plan.by_hand) words += (words.empty() ? ": " : ", ") + clause;
    fix.title += words;
    fix.cost = cost;
    fix.edits = std::move(plan.edits);
    fix.verified = true;
    diagnostic.fixes.push_back(std::move(fix));
  }

  /// The smallest further changes with which the rules that then fail hold.
  std::optional<Repair> needed(const Verdict& after, std::vector<std::uint32_t> rules,
                               const std::vector<KeyChange>& changes) {
    const Subject subject(after.config, judgement_.book(), after.facts);
    RepairRequest search;
    search.targets = std::move(rules);
    for (const KeyChange& change : changes) {
      FactId fact = 0;
      for (const std::string& path : {change.path, change.new_path}) {
        if (subject.facts.names->find(path, fact)) search.frozen.push_back(fact);
      }
    }
    search.limit = 1;
    search.smt.timeout_ms = options_.solver_timeout_ms;
    Repairs repairs = find_repairs(subject, search);
    if (repairs.found.empty()) return std::nullopt;
    return std::move(repairs.found[0]);
  }

  void leave_value_out(Diagnostic& diagnostic) {
    const Value& found = diagnostic.arguments[0].second;
    const std::string& path = setting_->path;
    if (setting_->value.kind() == Value::Kind::list)
      add(fmt::format("leave `{}` out", to_text(found)), Applicability::unsafe,
          {{KeyChange::Kind::remove, path, found, {}}}, diagnostic);
    else if (setting_->value == found)
      leave_key_out(path, diagnostic);
  }

  /// Every release that has the key holds what is written by default.
  bool is_default_everywhere() const {
    const std::vector<KeyRange>& ranges = view_.info->ranges;
    return !ranges.empty() && std::all_of(ranges.begin(), ranges.end(), [this](const KeyRange& range) {
      return range.spec.has_default && range.spec.default_value == setting_->value;
    });
  }

  /// Only people leave what defines the model to another value.
  void leave_key_out(const std::string& path, Diagnostic& diagnostic) {
    const bool model = view_.info->effect == KeyEffect::model && !is_default_everywhere();
    add(fmt::format("{}leave `{}` out", model ? "changes the model: " : "", path),
        model ? Applicability::display_only : Applicability::unsafe, {{KeyChange::Kind::unset, path, {}, {}}},
        diagnostic);
  }

  /// A guess is right or wrong whatever rules say about it; where they say something, the user knows before.
  void judge_guess(const std::vector<KeyChange>& changes, Fix& fix, Diagnostic& diagnostic) {
    const Verdict after = judge(with_key_changes(request_.config, changes));
    const std::vector<std::uint32_t> added = added_rules(after);
    fix.verified = clears(after) && added.empty();
    if (added.empty()) return;
    std::string codes;
    for (const std::uint32_t position : added)
      codes += (codes.empty() ? "`" : ", `") + judgement_.book().index.item(position).code + "`";
    diagnostic.notes.push_back(
        {Note::Kind::help, fmt::format("written so, {} {} found", codes, added.size() == 1 ? "is" : "are"),
         ""});
  }

  void judge_guess_at_name(Diagnostic& diagnostic) {
    if (diagnostic.fixes.size() != 1 || diagnostic.fixes[0].edits.size() != 1) return;
    Fix& fix = diagnostic.fixes.front();
    const std::string& path = setting_->path;
    const std::string other = path.substr(0, path.rfind('.') + 1) + fix.edits[0].replacement;
    // No second time: that is no TOML, or another layer's value that would be overruled.
    if (request_.config.find(other) != nullptr) {
      diagnostic.notes.push_back({Note::Kind::help, fmt::format("`{}` is set as well", other), ""});
      diagnostic.fixes.clear();
      return;
    }
    // What was not read so far is then.
    if (const KeyView target = request_.schema.find(other); target.info != nullptr)
      fix.cost = std::max(fix.cost, cost_class_of(target.info->effect));
    fix.applicability = std::max(fix.applicability, Applicability::unsafe);
    judge_guess({{KeyChange::Kind::rename, path, {}, other}}, fix, diagnostic);
  }

  /// The word that the diagnostic marks, as the known one that it is nearest to: in the quotes that stand
  /// there, and no second time where the list has it.
  void judge_guess_at_word(Diagnostic& diagnostic) {
    if (diagnostic.arguments.empty() || view_.spec == nullptr) return;
    const Value& found = diagnostic.arguments[0].second;
    if (found.kind() != Value::Kind::string) return;
    const auto meant = meant_words(setting_->value, view_.spec->values, &found.string());
    if (!meant) return;
    const std::vector<KeyChange> changes = {{KeyChange::Kind::set, setting_->path, meant->value, {}}};
    EditPlan plan = plan_edits(changes, request_.config, request_.sources);
    if (!plan.complete()) return;
    Fix& fix = diagnostic.fixes.front();
    fix.title = meant->title;
    fix.edits = std::move(plan.edits);
    fix.cost = cost_class_of(view_.info->effect);
    judge_guess(changes, fix, diagnostic);
  }

  const CheckRequest& request_;
  Judgement& judgement_;
  const CheckOptions& options_;
  const Setting* setting_ = nullptr;
  KeyView view_;
  std::optional<Verdict> before_;
};

}  // namespace

void add_release_fixes(const CheckRequest& request, Judgement& judgement, const CheckOptions& options,
                       Sink& sink) {
  ReleaseFixer fixer(request, judgement, options);
  int left = kMostReleaseFixes;
  for (Diagnostic& problem : sink.take()) {
    const bool concerns = problem.code == "TY002" || problem.code == "TY003" || problem.code == "TY005";
    if (concerns && left > 0) {
      fixer.run(problem);
      if (!problem.fixes.empty()) --left;
    }
    sink.report(std::move(problem));
  }
}

Config with_key_changes(const Config& config, const std::vector<KeyChange>& changes) {
  Config changed = config;
  for (const KeyChange& change : changes) {
    const Setting* setting = changed.find(change.path);
    Setting next = setting ? *setting : Setting{};
    next.path = change.path;
    std::erase(changed.open, change.path);
    switch (change.kind) {
      case KeyChange::Kind::set:
        if (change.value.is_none()) {
          changed.settings.erase(change.path);
          continue;
        }
        next.value = change.value;
        break;
      case KeyChange::Kind::unset:
        changed.settings.erase(change.path);
        continue;
      case KeyChange::Kind::add:
        next.value = with_element(next.value, change.value);
        break;
      case KeyChange::Kind::remove:
        if (setting == nullptr) continue;
        next.value = without_element(next.value, change.value);
        break;
      case KeyChange::Kind::rename:
        if (setting == nullptr) continue;
        changed.settings.erase(change.path);
        next.path = change.new_path;
        break;
      case KeyChange::Kind::drop_table:
        continue;
    }
    next.items.clear();
    changed.settings[next.path] = std::move(next);
  }
  return changed;
}

}  // namespace capstan
