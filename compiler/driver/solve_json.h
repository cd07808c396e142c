// The solver's answers as JSON values, shared by its commands. Included by command files only: nlohmann/json
// is heavy.
#pragma once

#include <string>
#include <vector>

#include "compiler/driver/solve_session.h"
#include "compiler/solve/conflict.h"
#include "compiler/solve/core.h"
#include "compiler/solve/repair.h"

namespace capstan {

/// Text of one JSON value each; commands join them into their document.
std::string json_of(const Value& value);
std::string json_of_text(const std::string& text);
std::string json_of(const SolveSession& session, const Conflict& conflict, const std::string& message,
                    const std::vector<Assignment>& changes);
std::string json_of(const SolveSession& session, const MinimalConflict& conflict,
                    const std::vector<Assignment>& changes);
/// The rules as [{code, name}].
std::string json_of(const SolveSession& session, const std::vector<std::uint32_t>& rules);
std::string json_of(const SolveSession& session, const std::vector<Assignment>& changes);
std::string json_of(const SolveSession& session, const Repair& repair);
std::string json_list(const std::vector<std::string>& items);
/// Re-indents a whole document with two blanks; ends with a line break.
std::string json_document(const std::string& text);

}  // namespace capstan
