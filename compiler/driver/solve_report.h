// Conflicts, changes and repairs in the words of the solver's commands. Text for people; the JSON forms are
// in solve_json.h.
#pragma once

#include <string>
#include <vector>

#include "compiler/driver/solve_session.h"
#include "compiler/solve/conflict.h"
#include "compiler/solve/core.h"
#include "compiler/solve/repair.h"

namespace capstan {

/// "`model.x = true`" with the facts of a changed config.
std::string statement(const SolveSession& session, FactId fact, const std::vector<Assignment>& changes);
/// Indented lines: the rule's message, then each value that takes part with its place.
std::string describe_conflict(const SolveSession& session, const Conflict& conflict,
                              const std::string& message, const std::vector<Assignment>& changes);
/// "because of `a` and `b`, CODE (name) limits `c`" lines of one minimal conflict about open keys, then the
/// settings with their places; `changes` were asked for.
std::string describe_minimal_conflict(const SolveSession& session, const MinimalConflict& conflict,
                                      const std::vector<FactId>& open, const std::vector<Assignment>& changes,
                                      std::size_t indent);
/// "1. set `model.x` to `true` (free, safe)"
std::string describe_repair(const SolveSession& session, const Repair& repair, std::size_t number);
std::string count_of(std::uint64_t count, const std::string& one, const std::string& many);

}  // namespace capstan
