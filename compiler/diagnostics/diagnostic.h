// One type for every finding, from a TOML syntax error to a replay that differed. Stages create diagnostics
// and give them to a Sink; only renderers turn them into text. Message style: the situation, lower case, no
// final period, keys and values in back-ticks.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "grammar/source/span.h"
#include "grammar/source/value.h"

namespace capstan {

enum class Severity { hint, warning, error };

/// What a finding claims (design: kinds are never mixed up).
enum class FindingKind {
  problem,  ///< Capstan itself cannot go on or was given something it cannot read: syntax, type, unknown key,
            ///< run failure
  rejects,  ///< the real framework of that release refuses the config
  breaks,   ///< the framework accepts it and it fails, hangs or computes wrongly later
  advice    ///< legal, but slow, fragile, deprecated or without effect
};

struct Label {
  Span span;
  std::string text;  ///< may be empty; says where part of the message came from, never narrates the code
  bool primary = false;
};

struct Note {
  enum class Kind { why, help, evidence, assumption, chain, source, symptom };
  Kind kind = Kind::help;
  std::string text;
  std::string url;
};

/// Replacement of a byte range. An insertion has begin == end.
struct Edit {
  Span span;
  std::string replacement;
};

enum class Applicability {
  safe,         ///< keeps numerics and what is trained; may cost nothing or only memory or speed as stated
  unsafe,       ///< changes numerics or what the user asked for
  display_only  ///< cannot be applied to a file (the value comes from the command line or the environment)
};

/// What a repair costs the user, mildest first.
enum class CostClass { free, memory, speed, numerics };

struct Fix {
  std::string title;
  Applicability applicability = Applicability::display_only;
  CostClass cost = CostClass::free;
  std::vector<Edit> edits;
  bool verified = false;  ///< the edited config was checked again: the finding is gone and none was added
};

struct Diagnostic {
  std::string code;  ///< from codes.def or from a rule file, e.g. "CG004"
  std::string name;  ///< the bad pattern in kebab-case, e.g. "graph-moe-and-router"
  Severity severity = Severity::error;
  FindingKind kind = FindingKind::problem;
  std::string message;
  std::vector<std::pair<std::string, Value>> arguments;  ///< the facts of the message, typed, sorted by name
  std::vector<Label> labels;  ///< the first primary one decides where the finding is shown
  std::vector<Note> notes;
  std::vector<Fix> fixes;
  /// Code, key path and salient values; no line number. Filled by fingerprint().
  std::string fingerprint;
  /// Keys that take part, most blamed first ("model.cuda_graph_impl"); the base of the fingerprint.
  std::vector<std::string> keys;
};

/// 16 hex digits over code, keys and arguments; independent of places and of wording.
std::string fingerprint(const Diagnostic& diagnostic);

const char* severity_name(Severity severity);
const char* finding_kind_name(FindingKind kind);
const char* applicability_name(Applicability applicability);
const char* cost_class_name(CostClass cost);

}  // namespace capstan
