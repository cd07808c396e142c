// Why a check is violated: the minimal set of keys whose values together force it, by core minimisation, down
// to the elements of module lists; and how rules interact when the way out of one is closed by others.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "compiler/constraints/encode.h"
#include "compiler/constraints/smt.h"
#include "compiler/solve/subject.h"

namespace capstan {

struct Participant {
  FactId fact = 0;
  /// Indices of the list elements that matter; empty: the value as a whole.
  std::vector<std::size_t> elements;
};

struct Conflict {
  std::uint32_t position = 0;             ///< the violated check
  std::vector<Participant> participants;  ///< most blamed first, set keys before defaults, target facts last
  Answer minimal = Answer::unsat;  ///< unsat: proven minimal; undecided: a limit was met; sat: not confirmed
};

/// Explains violated checks of one config; the encoding is shared between the questions.
class Explainer {
 public:
  Explainer(const Subject& subject, const std::vector<std::uint32_t>& positions, const SmtOptions& options);
  ~Explainer();
  Conflict explain(std::uint32_t position);
  std::string smt2(std::uint32_t position);

 private:
  const Subject& subject_;
  Smt smt_;
  Encoding encoding_;
};

/// The elements of a list of words without which the violated check would hold: each alone, or else all that
/// the release does not know together. Empty: no such elements, or every one of them; then the list matters
/// as a whole.
std::vector<std::size_t> elements_at_fault(const Subject& subject, std::uint32_t position, FactId fact);

/// One step of a derivation: because of the values of `because`, the rule leaves only `allowed` for `about`.
struct ChainLink {
  std::uint32_t position = 0;
  std::vector<FactId> because;
  FactId about = 0;
  std::vector<Choice> allowed;  ///< empty: none, or too many to list (`listed` false)
  bool listed = false;
};

/// Rules that cannot all hold while the keys of `keys` keep their values, whatever `free` becomes.
struct Interaction {
  std::vector<FactId> free;
  std::vector<FactId> keys;
  std::vector<ChainLink> links;  ///< in framework order, at least two
  bool whole = false;            ///< every value of the free keys was considered
};

/// Whether the violated check could be satisfied by changing the keys nobody set (or, if all are set, the
/// most blamed one) alone; if not because of further rules, the minimal set of rules and keys that stand
/// against it.
std::optional<Interaction> find_interaction(const Subject& subject, const Conflict& conflict,
                                            const SmtOptions& options);

}  // namespace capstan
