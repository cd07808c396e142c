#include "compiler/ruleset/resolve.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "compiler/ruleset/expression_resolver.h"
#include "compiler/ruleset/message.h"
#include "compiler/ruleset/version_ranges.h"

namespace capstan {
namespace {

constexpr std::pair<std::string_view, Enforcer> kEnforcers[] = {
    {"core", Enforcer::core},
    {"bridge", Enforcer::bridge},
    {"megatron-lm", Enforcer::megatron_lm},
    {"torch", Enforcer::torch},
    {"nccl", Enforcer::nccl},
    {"transformer-engine", Enforcer::transformer_engine},
    {"capstan", Enforcer::capstan}};

/// One item of a file, before its expressions are resolved.
struct Pending {
  const RuleFile* file = nullptr;
  const RuleSyntax* rule = nullptr;  // exactly one of the three
  const RewriteSyntax* rewrite = nullptr;
  const DefineSyntax* define = nullptr;
  RuleItem item;
  Span name_span;
  bool good = true;
  bool reach_unknown = false;  // its releases are wrong
};

/// "2026-08-22"; the grammar has seen to the digits.
bool is_day(const std::string& date) {
  if (date.size() != 10) return false;
  const int year = std::stoi(date.substr(0, 4));
  const auto month = static_cast<unsigned>(std::stoi(date.substr(5, 2)));
  const auto day = static_cast<unsigned>(std::stoi(date.substr(8, 2)));
  return std::chrono::year_month_day(std::chrono::year(year), std::chrono::month(month),
                                     std::chrono::day(day))
      .ok();
}

class RuleSetResolver {
 public:
  RuleSetResolver(const std::vector<std::string>& phases, const Schema& schema, Sink& sink)
      : schema_(schema), specs_(schema), sink_(sink) {
    set_.phases = phases;
  }

  RuleSet run(const std::vector<RuleFile>& files) {
    for (const RuleFile& file : files) {
      for (const RuleSyntax& rule : file.syntax.rules) add_rule(file, rule);
      for (const RewriteSyntax& rewrite : file.syntax.rewrites) add_rewrite(file, rewrite);
      for (const DefineSyntax& define : file.syntax.defines) add_define(file, define);
    }
    check_codes();
    put_in_order();
    for (Pending& pending : pending_) {
      if (pending.reach_unknown) continue;  // what its names stand for follows from its releases
      resolve_item(pending);
      if (pending.good) set_.items.push_back(std::move(pending.item));
    }
    return std::move(set_);
  }

 private:
  void problem(Pending& pending, const char* code, std::string message, Span span) {
    pending.good = false;
    sink_.problem(code, std::move(message), span);
  }

  template <typename Syntax>
  Pending& add_shared(const RuleFile& file, const Syntax& syntax) {
    Pending& pending = pending_.emplace_back();
    pending.file = &file;
    pending.item.file = file.path;
    pending.item.span = syntax.span;
    pending.item.step = syntax.step;
    resolve_phase(pending, syntax.phase);
    resolve_applies(pending, syntax.applies);
    for (const TextWithSpan& frontend : syntax.frontends) pending.item.frontends.push_back(frontend.text);
    std::sort(pending.item.frontends.begin(), pending.item.frontends.end());
    return pending;
  }

  template <typename Syntax>
  Pending& add_coded(const RuleFile& file, const Syntax& syntax) {
    Pending& pending = add_shared(file, syntax);
    RuleItem& item = pending.item;
    item.code = syntax.code.text;
    item.name = syntax.name.text;
    pending.name_span = syntax.code.span;
    item.sources = syntax.sources;
    item.evidence = syntax.evidence;
    for (const EvidenceSyntax& evidence : syntax.evidence) {
      if (!is_day(evidence.date.text))
        problem(pending, "RU001", fmt::format("`{}` is no day of the calendar", evidence.date.text),
                evidence.date.span);
    }
    for (const auto& [name, enforcer] : kEnforcers) {
      if (name == syntax.enforcer.text) item.enforcer = enforcer;
    }
    if (syntax.severity) {
      item.severity = syntax.severity->text == "error"     ? Severity::error
                      : syntax.severity->text == "warning" ? Severity::warning
                                                           : Severity::hint;
    }
    for (const TextWithSpan& frontend : syntax.frontends) {
      if (!runs(frontend.text, item.enforcer)) {
        problem(pending, "RU005",
                fmt::format("front-end `{}` never runs checks of `{}`", frontend.text, syntax.enforcer.text),
                frontend.span);
      }
    }
    check_reach(pending);
    pending.reach_unknown = !pending.good;
    return pending;
  }

  void add_rule(const RuleFile& file, const RuleSyntax& rule) {
    Pending& pending = add_coded(file, rule);
    pending.rule = &rule;
    RuleItem& item = pending.item;
    item.kind = RuleItem::Kind::check;
    item.finding = rule.kind.text == "rejects"  ? FindingKind::rejects
                   : rule.kind.text == "breaks" ? FindingKind::breaks
                                                : FindingKind::advice;
    if (!rule.severity)
      item.severity = item.finding == FindingKind::advice ? Severity::warning : Severity::error;
    item.message = rule.message.text;
    item.why = rule.why.text;
    for (const TextWithSpan& pattern : rule.raises) item.raises.push_back(pattern.text);
  }

  void add_rewrite(const RuleFile& file, const RewriteSyntax& rewrite) {
    Pending& pending = add_coded(file, rewrite);
    pending.rewrite = &rewrite;
    RuleItem& item = pending.item;
    item.kind = RuleItem::Kind::rewrite;
    item.finding = FindingKind::advice;
    if (!rewrite.severity) item.severity = Severity::hint;
    item.silent = rewrite.silent;
    if (rewrite.message) item.message = rewrite.message->text;
    if (rewrite.why) item.why = rewrite.why->text;
  }

  void add_define(const RuleFile& file, const DefineSyntax& define) {
    Pending& pending = add_shared(file, define);
    pending.define = &define;
    pending.item.kind = RuleItem::Kind::define;
    pending.item.name = define.name.text;
    pending.name_span = define.name.span;
    if (define.doc) pending.item.message = define.doc->text;
    const std::string_view section = section_of(define.name.text);
    const auto& sections = schema_.sections();
    if (section.size() == define.name.text.size()) {
      problem(pending, "RU003", fmt::format("a fact has a dotted name, such as `graph.{}`", define.name.text),
              define.name.span);
    } else if (section == kEnvironmentSection || section == "target" ||
               std::find(sections.begin(), sections.end(), section) != sections.end()) {
      problem(
          pending, "RU003",
          fmt::format("`{}` is a section of the config; a fact that rules define needs another first part",
                      section),
          define.name.span);
    } else {
      defined_[define.name.text].pending.push_back(define.name.span);
    }
  }

  void resolve_phase(Pending& pending, const TextWithSpan& phase) {
    const auto found = std::find(set_.phases.begin(), set_.phases.end(), phase.text);
    pending.item.phase = static_cast<int>(found - set_.phases.begin());
    if (found != set_.phases.end()) return;
    const std::string near = nearest(phase.text, set_.phases);
    problem(pending, "RU005",
            fmt::format("there is no phase `{}`{}", phase.text,
                        near.empty() ? "" : fmt::format("; did you mean `{}`?", near)),
            phase.span);
  }

  /// Releases of a component that the stacks name, as (major, minor).
  std::set<std::pair<int, int>> known_releases(std::string_view component) const {
    std::set<std::pair<int, int>> releases;
    for (const Stack& stack : schema_.stacks()) {
      if (const Version* version = stack.version_of(component))
        releases.emplace(version->major, version->minor);
    }
    return releases;
  }

  void resolve_applies(Pending& pending, const std::vector<VersionRange>& ranges) {
    const auto& components = schema_.components();
    for (const VersionRange& range : ranges) {
      if (range.component == "capstan" ||
          std::find(components.begin(), components.end(), range.component) == components.end()) {
        const std::string near = nearest(range.component, components);
        problem(pending, "RU005",
                fmt::format("there is no component `{}`{}", range.component,
                            near.empty() ? "" : fmt::format("; did you mean `{}`?", near)),
                range.span);
        continue;
      }
      ResolvedRange resolved{range.component, {}};
      const auto releases = known_releases(range.component);
      for (const VersionRange::Bound& bound : range.bounds) {
        const auto version = parse_version(bound.version);
        if (!version) {
          problem(pending, "RU005", fmt::format("`{}` is no version", bound.version), bound.span);
          continue;
        }
        if (!releases.empty() && !releases.contains({version->major, version->minor})) {
          std::string known;
          for (const auto& [major, minor] : releases)
            known += fmt::format("{}{}.{}", known.empty() ? "" : ", ", major, minor);
          problem(pending, "RU005",
                  fmt::format("`{}` has no release {}; known are {}", range.component, bound.version, known),
                  bound.span);
          continue;
        }
        resolved.bounds.push_back({bound.comparison, *version});
      }
      pending.item.applies.push_back(std::move(resolved));
    }
  }

  /// Known stacks on which an item can be active; a component that stacks leave open may be there in any
  /// version.
  std::vector<const Stack*> stacks_of(const RuleItem& item) const {
    RuleItem pinned;
    pinned.kind = item.kind;
    pinned.enforcer = item.enforcer;
    pinned.frontends = item.frontends;
    for (const ResolvedRange& range : item.applies) {
      if (!known_releases(range.component).empty()) pinned.applies.push_back(range);
    }
    std::vector<const Stack*> stacks;
    for (const Stack& stack : schema_.stacks()) {
      if (is_active(pinned, stack)) stacks.push_back(&stack);
    }
    return stacks;
  }

  void check_reach(Pending& pending) {
    if (!pending.good || !stacks_of(pending.item).empty()) return;
    problem(pending, "RU005",
            fmt::format("`{}` applies to no known stack: its ranges and front-ends exclude each other",
                        pending.item.code),
            pending.name_span);
  }

  /// Items are large: each is moved once.
  void put_in_order() {
    std::vector<std::size_t> order(pending_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [this](std::size_t left, std::size_t right) {
      const RuleItem& a = pending_[left].item;
      const RuleItem& b = pending_[right].item;
      return std::tie(a.phase, a.step, a.code, a.name) < std::tie(b.phase, b.step, b.code, b.name);
    });
    std::vector<Pending> sorted;
    sorted.reserve(pending_.size());
    for (const std::size_t index : order) sorted.push_back(std::move(pending_[index]));
    pending_ = std::move(sorted);
  }

  /// One code is one rule: one file and name, and where it is written several times, never two at once on a
  /// stack.
  void check_codes() {
    // Places of the items seen so far: by code, and of those without one by name.
    std::unordered_map<std::string_view, std::vector<std::size_t>> by_code, by_name;
    for (std::size_t index = 0; index < pending_.size(); ++index) {
      Pending& pending = pending_[index];
      const RuleItem& item = pending.item;
      if (!item.code.empty() && pending.file->of_user && !item.code.starts_with('X')) {
        problem(pending, "RU006",
                fmt::format("`{}`: codes of own rules start with `X`, so that they never meet one of Capstan",
                            item.code),
                pending.name_span);
      }
      std::vector<std::size_t>& alike = item.code.empty() ? by_name[item.name] : by_code[item.code];
      alike.push_back(index);
      for (const std::size_t other : alike) {
        if (other == index) break;
        const RuleItem& first = pending_[other].item;
        const bool one_rule = first.name == item.name && (item.code.empty() || first.file == item.file);
        if (one_rule && (!can_overlap(first.applies, item.applies) ||
                         !share_frontend(first.frontends, item.frontends) || !shared_stack(first, item))) {
          continue;
        }
        report_duplicate(pending, pending_[other]);
        break;
      }
    }
  }

  bool shared_stack(const RuleItem& a, const RuleItem& b) const {
    const std::vector<const Stack*> of_a = stacks_of(a), of_b = stacks_of(b);
    return std::any_of(of_a.begin(), of_a.end(), [&](const Stack* stack) {
      return std::find(of_b.begin(), of_b.end(), stack) != of_b.end();
    });
  }

  void report_duplicate(Pending& pending, const Pending& first) {
    pending.good = false;
    Diagnostic diagnostic;
    diagnostic.code = "RU006";
    diagnostic.name = "rule-duplicate-code";
    const std::string& name = pending.item.code.empty() ? pending.item.name : pending.item.code;
    if (pending.item.file != first.item.file || pending.item.name != first.item.name) {
      diagnostic.message = fmt::format("`{}` is already given in `{}`", name, first.item.file);
    } else {
      diagnostic.message = fmt::format("`{}` is given twice for the same releases", name);
    }
    if (pending.name_span.exists()) diagnostic.labels.push_back({pending.name_span, "", true});
    if (first.name_span.exists()) diagnostic.labels.push_back({first.name_span, "first given here", false});
    sink_.report(std::move(diagnostic));
  }

  void resolve_item(Pending& pending) {
    RuleItem& item = pending.item;
    ExpressionResolver resolver(schema_, specs_, defined_, set_.names, sink_,
                                {item.applies, item.frontends, stacks_of(item)});
    if (pending.rule != nullptr) {
      item.has_when = pending.rule->when.has_value();
      if (item.has_when) item.when = resolver.resolve_condition(*pending.rule->when);
      item.require = resolver.resolve_condition(pending.rule->require);
      finish_reads(item, resolver);
      for (const TextWithSpan& key : pending.rule->blame) {
        Kinds kinds;
        if (const auto id = resolver.resolve_name(key.text, key.span, kinds)) item.blame.push_back(*id);
      }
      resolve_fixes(pending.rule->fixes, resolver, item);
      resolve_holes(item.message, pending.rule->message.span, resolver, item);
    } else if (pending.rewrite != nullptr) {
      item.has_when = pending.rewrite->when.has_value();
      if (item.has_when) item.when = resolver.resolve_condition(*pending.rewrite->when);
      for (const FixAction& assignment : pending.rewrite->assignments)
        resolve_assignment(pending, assignment, resolver);
      finish_reads(item, resolver);
      for (const ResolvedAction& action : item.assignments) item.blame.push_back(action.key);
      resolve_fixes(pending.rewrite->fixes, resolver, item);
      if (pending.rewrite->message)
        resolve_holes(item.message, pending.rewrite->message->span, resolver, item);
    } else {
      Kinds kinds;
      item.value = resolver.resolve(pending.define->value, kinds);
      item.defined = set_.names.intern(item.name);
      finish_reads(item, resolver);
      if (const auto fact = defined_.find(item.name); fact != defined_.end()) {
        fact->second.definitions.push_back({item.applies, item.frontends, kinds});
        std::erase(fact->second.pending, pending.name_span);
      }
    }
    if (resolver.failed()) pending.good = false;
    item.shown.insert(item.shown.end(), item.reads.begin(), item.reads.end());
    item.shown.insert(item.shown.end(), item.blame.begin(), item.blame.end());
    std::sort(item.shown.begin(), item.shown.end());
    item.shown.erase(std::unique(item.shown.begin(), item.shown.end()), item.shown.end());
  }

  static void finish_reads(RuleItem& item, const ExpressionResolver& resolver) {
    item.reads = resolver.reads();
    std::sort(item.reads.begin(), item.reads.end());
    item.reads.erase(std::unique(item.reads.begin(), item.reads.end()), item.reads.end());
  }

  void resolve_assignment(Pending& pending, const FixAction& assignment, ExpressionResolver& resolver) {
    ResolvedAction action{};
    action.kind = FixAction::Kind::set;
    Kinds key, value;
    const auto id = resolver.resolve_name(assignment.key.text, assignment.key.span, key);
    action.value = resolver.resolve(*assignment.value, value);
    if (!id) return;
    if (section_of(assignment.key.text) == "target" || section_of(assignment.key.text) == "cluster") {
      problem(pending, "RU004", fmt::format("no framework changes `{}`", assignment.key.text),
              assignment.key.span);
      return;
    }
    const auto& done = pending.item.assignments;
    if (std::any_of(done.begin(), done.end(),
                    [&](const ResolvedAction& other) { return other.key == *id; })) {
      problem(pending, "RU002", fmt::format("`{}` is set twice by one rewrite", assignment.key.text),
              assignment.key.span);
      return;
    }
    resolver.check_fits(assignment.key.text, key, *assignment.value, value);
    action.key = *id;
    pending.item.assignments.push_back(std::move(action));
    // Later items read what this one may have written.
    if (const auto fact = defined_.find(assignment.key.text); fact != defined_.end()) {
      fact->second.definitions.push_back({pending.item.applies, pending.item.frontends, value});
    }
  }

  void resolve_fixes(const std::vector<FixSyntax>& fixes, ExpressionResolver& resolver, RuleItem& item) {
    for (const FixSyntax& syntax : fixes) {
      ResolvedFix fix;
      fix.title = syntax.title.text;
      fix.applicability = syntax.applicability.text == "safe" ? Applicability::safe : Applicability::unsafe;
      fix.cost = syntax.cost.text == "free"     ? CostClass::free
                 : syntax.cost.text == "memory" ? CostClass::memory
                 : syntax.cost.text == "speed"  ? CostClass::speed
                                                : CostClass::numerics;
      for (const FixAction& action : syntax.actions) {
        ResolvedAction resolved{};
        resolved.kind = action.kind;
        Kinds key, value;
        const auto id = resolver.resolve_name(action.key.text, action.key.span, key);
        if (action.value) resolved.value = resolver.resolve(*action.value, value);
        if (!id) continue;
        resolved.key = *id;
        resolver.check_action(action, key, value);
        fix.actions.push_back(std::move(resolved));
      }
      item.fixes.push_back(std::move(fix));
    }
  }

  void resolve_holes(const std::string& message, Span span, ExpressionResolver& resolver, RuleItem& item) {
    for (const std::string& name : message_holes(message)) {
      Kinds kinds;
      if (const auto id = resolver.resolve_name(name, span, kinds)) item.shown.push_back(*id);
    }
  }

  const Schema& schema_;
  KeySpecs specs_;
  Sink& sink_;
  RuleSet set_;
  DefinedFacts defined_;
  std::vector<Pending> pending_;
};

}  // namespace

RuleSet resolve(const std::vector<RuleFile>& files, const std::vector<std::string>& phases,
                const Schema& schema, Sink& sink) {
  return RuleSetResolver(phases, schema, sink).run(files);
}

}  // namespace capstan
