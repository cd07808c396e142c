#include "compiler/solve/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "compiler/ruleset/message.h"
#include "compiler/solve/conflict.h"
#include "compiler/solve/domain.h"

namespace capstan {
namespace {

std::string stated(const Subject& subject, FactId fact) {
  const Fact& now = subject.facts.values[fact];
  return fmt::format("`{} = {}`", subject.name(fact),
                     now.is_version ? to_text(now.version) : to_text(now.value));
}

class Reporter {
 public:
  Reporter(const CheckRequest& request, const Subject& subject, ConflictMemo& memo,
           const CheckOptions& options)
      : request_(request), options_(options), book_(subject.book), subject_(subject), memo_(memo) {}

  std::vector<Finding> run(const Evaluation& evaluation) {
    std::vector<const Violation*> shown_violations;
    std::map<FactId, std::vector<std::string>> missing;
    std::set<std::string> undecided;
    for (const Violation& violation : evaluation.violations) {
      const RuleItem& item = request_.rules.set->items[violation.item];
      const auto position = book_.index.position_of(violation.item);
      if (!position || reads_broken(*position)) continue;
      if (violation.undecided) {
        if (item.kind != RuleItem::Kind::check || only_the_cluster_is_missing(violation) ||
            needs_unread_settings(violation))
          continue;
        undecided.insert(item.code);
        for (const FactId fact : violation.missing) missing[fact].push_back(item.code);
        continue;
      }
      if (item.kind == RuleItem::Kind::rewrite && item.silent && item.message.empty()) continue;
      shown_violations.push_back(&violation);
    }
    std::vector<Finding> findings;
    std::vector<Interaction> interactions;
    std::vector<std::string> interaction_owner;
    for (const Violation* violation : shown_violations) {
      const RuleItem& item = request_.rules.set->items[violation->item];
      Finding finding;
      finding.item = violation->item;
      Diagnostic& diagnostic = finding.diagnostic;
      diagnostic.code = item.code;
      diagnostic.name = item.name;
      const bool awaits_environment = item.severity == Severity::error && lacks_environment(*violation);
      diagnostic.severity = awaits_environment ? Severity::warning : item.severity;
      diagnostic.kind = item.kind == RuleItem::Kind::rewrite ? FindingKind::advice : item.finding;
      diagnostic.message = interpolate(item.message, *violation, subject_.facts, &diagnostic.arguments);
      const std::uint32_t position = *book_.index.position_of(violation->item);
      std::vector<Participant> participants;
      std::optional<Interaction> interaction;
      if (item.kind == RuleItem::Kind::check && options_.explain) {
        const Conflict conflict = memo_.explain(subject_, position, solver_limit());
        participants = conflict.participants;
        interaction = find_interaction(subject_, conflict, solver_limit());
        // A chain that names no further setting explains nothing.
        const auto takes_part = [&](FactId fact) {
          return std::any_of(participants.begin(), participants.end(),
                             [fact](const Participant& one) { return one.fact == fact; });
        };
        if (interaction && std::all_of(interaction->keys.begin(), interaction->keys.end(), takes_part))
          interaction.reset();
      } else {
        participants = all_read(item, position, *violation);
      }
      label(item, participants, diagnostic);
      note_unknown_words(participants, diagnostic);
      if (item.kind == RuleItem::Kind::rewrite) note_changes(*violation, diagnostic);
      if (interaction) note_interaction(*interaction, item.code, interactions, interaction_owner, diagnostic);
      if (awaits_environment) note_environment(diagnostic);
      note_rule(item, diagnostic);
      diagnostic.fingerprint = fingerprint(diagnostic);
      findings.push_back(std::move(finding));
    }
    if (!undecided.empty()) findings.push_back(report_undecided(missing, undecided));
    return findings;
  }

 private:
  SmtOptions solver_limit() const {
    SmtOptions smt;
    smt.timeout_ms = options_.solver_timeout_ms;
    return smt;
  }

  /// A key that the text does not set, but what it builds on may: said once, where that is read.
  bool needs_unread_settings(const Violation& violation) const {
    return std::any_of(violation.missing.begin(), violation.missing.end(), [this](FactId fact) {
      return subject_.is_open(fact) && subject_.facts.values[fact].setting == nullptr;
    });
  }

  /// A login node cannot see the cluster, and most configs do not state it: no word about that on every run.
  bool only_the_cluster_is_missing(const Violation& violation) const {
    return std::all_of(violation.missing.begin(), violation.missing.end(),
                       [this](FactId fact) { return subject_.name(fact).starts_with("cluster."); });
  }

  /// The launcher may set what the config's text does not: with no environment stated at all, a check that
  /// some environment passes is no error.
  bool lacks_environment(const Violation& violation) {
    const auto position = book_.index.position_of(violation.item);
    if (!position || !reads_environment(*position)) return false;
    if (!environment_lack_) find_environment_lack();
    return std::binary_search(environment_lack_->begin(), environment_lack_->end(), violation.item);
  }

  bool reads_environment(std::uint32_t position) const {
    const std::vector<FactId>& inputs = book_.index.inputs(position);
    return std::any_of(inputs.begin(), inputs.end(), [this](FactId fact) {
      return section_of(subject_.name(fact)) == kEnvironmentSection;
    });
  }

  void find_environment_lack() {
    environment_lack_.emplace();
    const std::string prefix = std::string(kEnvironmentSection) + '.';
    const auto stated = request_.config.settings.lower_bound(prefix);
    if (stated != request_.config.settings.end() && stated->first.starts_with(prefix)) return;
    Facts facts = subject_.facts;
    for (FactId fact = 0; fact < facts.values.size(); ++fact) {
      if (facts.names->name(fact).starts_with(prefix)) facts.values[fact].state = Fact::State::unknown;
    }
    for (const Violation& violation : evaluate(request_.rules, std::move(facts)).violations) {
      if (violation.undecided) environment_lack_->push_back(violation.item);
    }
    std::sort(environment_lack_->begin(), environment_lack_->end());
  }

  static void note_environment(Diagnostic& diagnostic) {
    diagnostic.notes.push_back(
        {Note::Kind::help,
         "nothing says what the job's environment holds; state `[env]` or give `--env-file`", ""});
  }

  bool reads_broken(std::uint32_t position) const {
    if (request_.config.broken.empty()) return false;
    const std::vector<FactId>& inputs = book_.index.inputs(position);
    return std::any_of(inputs.begin(), inputs.end(),
                       [this](FactId fact) { return subject_.is_broken(fact); });
  }

  std::vector<Participant> all_read(const RuleItem& item, std::uint32_t position,
                                    const Violation& violation) const {
    std::vector<Participant> out;
    const auto add = [&](FactId fact) {
      for (const Participant& known : out) {
        if (known.fact == fact) return;
      }
      out.push_back({fact, {}});
    };
    for (const FactId fact : item.blame) {
      if (subject_.facts.values[fact].set) add(fact);
    }
    for (const Violation::Change& change : violation.changes) {
      if (is_changeable(subject_, change.fact)) add(change.fact);
    }
    for (const FactId fact : book_.index.inputs(position)) {
      if (subject_.facts.values[fact].set) add(fact);
    }
    return out;
  }

  const Setting* setting_of(FactId fact) const { return subject_.facts.values[fact].setting; }

  void label(const RuleItem& item, const std::vector<Participant>& participants,
             Diagnostic& diagnostic) const {
    bool primary = true;
    std::vector<std::string> defaults;
    std::vector<std::string> target;
    for (const Participant& participant : participants) {
      const std::string& name = subject_.name(participant.fact);
      diagnostic.keys.push_back(name);
      const Setting* setting = setting_of(participant.fact);
      const Span place = setting == nullptr               ? Span{}
                         : setting->origin.value.exists() ? setting->origin.value
                                                          : setting->origin.key;
      if (!place.exists()) {
        (is_changeable(subject_, participant.fact) ? defaults : target)
            .push_back(stated(subject_, participant.fact));
        continue;
      }
      bool narrowed = false;
      for (const std::size_t element : participant.elements) {
        if (element >= setting->items.size()) continue;
        diagnostic.labels.push_back({setting->items[element], "", primary});
        primary = false;
        narrowed = true;
      }
      if (narrowed) continue;
      diagnostic.labels.push_back({place, "", primary});
      primary = false;
    }
    // Nothing that takes part stands in a file: point at what the rule blames, else at where the stack is
    // stated.
    if (primary) {
      Span place;
      for (const FactId fact : item.blame) {
        if (const Setting* setting = setting_of(fact); setting != nullptr && !place.exists())
          place = setting->origin.value;
      }
      if (!place.exists()) place = request_.stack.place;
      if (!place.exists() && !request_.config.files.empty()) place = {request_.config.files.back(), 0, 0};
      if (place.exists()) diagnostic.labels.push_back({place, "", true});
    }
    if (diagnostic.keys.empty()) {
      for (const FactId fact : item.blame) diagnostic.keys.push_back(subject_.name(fact));
    }
    if (!defaults.empty()) {
      diagnostic.notes.push_back(
          {Note::Kind::assumption,
           fmt::format("not set, default of {}: {}", request_.stack.stack.name, joined(defaults, "and")),
           ""});
    }
    if (!target.empty()) {
      diagnostic.notes.push_back({Note::Kind::assumption,
                                  fmt::format("{} {}: {}", request_.stack.assumed ? "assumed stack" : "stack",
                                              request_.stack.stack.name, joined(target, "and")),
                                  ""});
    }
  }

  /// Words of lists that the release does not know and that are at fault.
  void note_unknown_words(const std::vector<Participant>& participants, Diagnostic& diagnostic) const {
    for (const Participant& participant : participants) {
      for (const std::size_t element : unknown_words(subject_, participant.fact)) {
        if (std::find(participant.elements.begin(), participant.elements.end(), element) ==
            participant.elements.end())
          continue;
        const Value& word = subject_.facts.values[participant.fact].value.list()[element];
        const std::string near = nearest(word.string(), known_words(subject_, participant.fact));
        diagnostic.notes.push_back(
            {Note::Kind::help,
             fmt::format("`{}` holds `{}`, which {} does not know{}", subject_.name(participant.fact),
                         to_text(word), request_.stack.stack.name,
                         near.empty() ? "" : fmt::format("; did you mean `{}`?", to_text(Value(near)))),
             ""});
      }
    }
  }

  void note_changes(const Violation& violation, Diagnostic& diagnostic) const {
    for (const Violation::Change& change : violation.changes) {
      diagnostic.notes.push_back(
          {Note::Kind::help,
           fmt::format("`{}`: the framework turns `{}` into `{}`", subject_.name(change.fact),
                       to_text(change.before), to_text(change.after)),
           ""});
    }
  }

  void note_interaction(const Interaction& interaction, const std::string& code,
                        std::vector<Interaction>& seen, std::vector<std::string>& owners,
                        Diagnostic& diagnostic) const {
    const auto rules_of = [](const Interaction& one) {
      std::vector<std::uint32_t> rules;
      for (const ChainLink& link : one.links) rules.push_back(link.position);
      return rules;
    };
    for (std::size_t i = 0; i < seen.size(); ++i) {
      if (rules_of(seen[i]) == rules_of(interaction) && seen[i].keys == interaction.keys) {
        diagnostic.notes.push_back(
            {Note::Kind::chain, fmt::format("part of the conflict shown with {}", owners[i]), ""});
        return;
      }
    }
    for (const ChainLink& link : interaction.links) {
      const RuleItem& item = request_.rules.set->items[request_.rules.items[link.position]];
      std::vector<std::string> because;
      for (const FactId fact : link.because) because.push_back(stated(subject_, fact));
      std::string text = because.empty() ? "" : fmt::format("because of {}, ", joined(because, "and"));
      std::vector<std::string> allowed;
      for (const Choice& choice : link.allowed) {
        const std::string value = "`" + to_text(choice.value) + "`";
        if (std::find(allowed.begin(), allowed.end(), value) == allowed.end()) allowed.push_back(value);
      }
      if (link.listed && allowed.size() <= 4) {
        text += fmt::format("{} leaves {} for `{}`", item.code,
                            allowed.empty() ? "no value" : "only " + joined(allowed, "or"),
                            subject_.name(link.about));
      } else {
        text += fmt::format("{} ({}) must be met by `{}`", item.code, item.name, subject_.name(link.about));
      }
      diagnostic.notes.push_back({Note::Kind::chain, std::move(text), ""});
    }
    std::vector<std::string> free;
    for (const FactId fact : interaction.free) free.push_back("`" + subject_.name(fact) + "`");
    diagnostic.notes.push_back(
        {Note::Kind::chain,
         fmt::format("so {} {} meets them all: another of these settings must change",
                     interaction.whole ? "no value of" : "none of the values tried for", joined(free, "and")),
         ""});
    for (const FactId fact : interaction.keys) {
      if (std::find(diagnostic.keys.begin(), diagnostic.keys.end(), subject_.name(fact)) !=
          diagnostic.keys.end())
        continue;
      diagnostic.keys.push_back(subject_.name(fact));
      const Setting* setting = setting_of(fact);
      if (setting != nullptr && setting->origin.value.exists())
        diagnostic.labels.push_back({setting->origin.value, "part of the conflict", false});
    }
    seen.push_back(interaction);
    owners.push_back(code);
  }

  static void note_rule(const RuleItem& item, Diagnostic& diagnostic) {
    if (!item.why.empty()) diagnostic.notes.push_back({Note::Kind::why, item.why, ""});
    for (const std::string& pattern : item.raises) {
      diagnostic.notes.push_back({Note::Kind::symptom, fmt::format("the framework says: {}", pattern), ""});
    }
    for (const SourceSyntax& source : item.sources) {
      diagnostic.notes.push_back({Note::Kind::source,
                                  fmt::format("{} {} {} (seen in {})", source.repository.text,
                                              source.path.text, source.symbol.text, source.seen.text),
                                  ""});
    }
    for (const EvidenceSyntax& evidence : item.evidence) {
      std::string text = fmt::format("{}, {}", evidence.kind.text, evidence.date.text);
      if (!evidence.text.text.empty()) text += ": " + evidence.text.text;
      diagnostic.notes.push_back({Note::Kind::evidence, std::move(text), ""});
    }
  }

  Finding report_undecided(const std::map<FactId, std::vector<std::string>>& missing,
                           const std::set<std::string>& codes) const {
    Finding finding;
    Diagnostic& diagnostic = finding.diagnostic;
    diagnostic.code = "TG002";
    diagnostic.name = "undecided-rules";
    diagnostic.severity = Severity::hint;
    diagnostic.kind = FindingKind::problem;
    std::vector<std::string> names;
    for (const auto& [fact, rules] : missing) {
      diagnostic.keys.push_back(subject_.name(fact));
      names.push_back("`" + subject_.name(fact) + "`");
    }
    diagnostic.message = fmt::format("{} {} could not be decided without {}", codes.size(),
                                     codes.size() == 1 ? "rule" : "rules",
                                     names.empty() ? "further facts" : joined(names, "and"));
    diagnostic.arguments.push_back({"rules", Value(static_cast<std::int64_t>(codes.size()))});
    for (const auto& [fact, rules] : missing) {
      std::vector<std::string> distinct;
      for (const std::string& code : rules) {
        if (std::find(distinct.begin(), distinct.end(), code) == distinct.end()) distinct.push_back(code);
      }
      diagnostic.notes.push_back(
          {Note::Kind::help,
           fmt::format("state `{}` to decide {}", subject_.name(fact), joined(distinct, "and")), ""});
    }
    Span place = request_.stack.place;
    if (!place.exists() && !request_.config.files.empty()) place = {request_.config.files.back(), 0, 0};
    if (place.exists()) diagnostic.labels.push_back({place, "", true});
    diagnostic.fingerprint = fingerprint(diagnostic);
    return finding;
  }

  const CheckRequest& request_;
  const CheckOptions& options_;
  const RuleBook& book_;
  const Subject& subject_;
  ConflictMemo& memo_;
  /// Checks that are undecided when the environment is unknown, sorted; none where it is stated.
  std::optional<std::vector<std::uint32_t>> environment_lack_;
};

}  // namespace

Judgement::Judgement(const CheckRequest& request)
    : request_(request),
      own_(request.shared ? nullptr : std::make_unique<StackRules>(request.schema, request.rules)),
      shared_(request.shared ? *request.shared : *own_),
      evaluation_(evaluate(request.rules, shared_.facts_of(request.config))) {}

const Subject& Judgement::subject() {
  if (!subject_) subject_.emplace(request_.config, shared_.book(), shared_.facts_of(request_.config));
  return *subject_;
}

std::vector<Finding> find_violations(const CheckRequest& request, Judgement& judgement,
                                     const CheckOptions& options) {
  // A clean config is the common case: it needs no index, no solver.
  if (judgement.evaluation().violations.empty()) return {};
  return Reporter(request, judgement.subject(), judgement.memo(), options).run(judgement.evaluation());
}

void check(const CheckRequest& request, const CheckOptions& options, Sink& sink) {
  Judgement judgement(request);
  for (Finding& finding : find_violations(request, judgement, options))
    sink.report(std::move(finding.diagnostic));
}

}  // namespace capstan
