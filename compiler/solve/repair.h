// Smallest ways out: changes of keys after which a set of violated checks holds and no other check is newly
// violated. The solver proposes by weight (MaxSMT), the evaluator confirms each proposal over all rules; a
// rule that a proposal would break joins the question. What defines the model is never touched unless asked.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/constraints/smt.h"
#include "compiler/diagnostics/diagnostic.h"
#include "compiler/solve/domain.h"
#include "compiler/solve/subject.h"

namespace capstan {

struct Repair {
  std::vector<Assignment> changes;   ///< sorted by key name
  CostClass cost = CostClass::free;  ///< the dearest of its changes
  Applicability applicability =
      Applicability::safe;   ///< unsafe: changes numerics, what a run does, or speed or memory choices made
  bool another_run = false;  ///< a change of it makes another job; after all others of its applicability
  std::uint64_t weight = 0;
};

struct RepairRequest {
  std::vector<std::uint32_t> targets;  ///< positions of violated checks that must hold afterwards
  std::vector<Assignment> fixed;       ///< changes that are part of every repair
  std::vector<FactId> frozen;          ///< keys that stay as they are (beside `fixed`)
  /// Keys that are filled along with each repair, at no cost and without being part of it; the subject's
  /// facts have them open.
  std::vector<OpenKey> open;
  std::size_t limit = 5;  ///< at most so many repairs
  bool touch_model = false;
  bool allow_new_advice = false;  ///< advice may appear, and the warnings that `fixed` alone gives
  SmtOptions smt;
};

struct Repairs {
  std::vector<Repair> found;  ///< best first
  bool complete = true;       ///< false: a limit was met, there may be more
};

Repairs find_repairs(const Subject& subject, const RepairRequest& request);

/// Weight of changing one key; the base of all rankings. Free < memory < speed < numerics; user-set keys cost
/// more.
std::uint32_t change_weight(const Subject& subject, FactId fact, bool touch_model);
CostClass cost_class_of(KeyEffect effect);
/// Whether what a run does (how long it trains, what it reads, keeps and writes) depends on the key. It costs
/// nothing to change, but only a rule's author can tell that a job stays what it was.
bool changes_the_run(const Subject& subject, FactId fact);
/// Whether a change may be made unasked: it costs no numerics, leaves the run what it is, no stated choice
/// about speed or memory goes, and the job stays spread as it is.
bool is_safe_change(const Subject& subject, FactId fact);
/// Whether with the change it is another job: one that no longer reads, writes or does something that was
/// asked for, or does something that was not. How often or how many it does of something is no such change.
bool makes_another_run(const Subject& subject, const Assignment& change);
/// "set `model.x` to `true`, unset `ddp.y`"
std::string describe(const Subject& subject, const std::vector<Assignment>& changes);

}  // namespace capstan
