// What no Python accepts in an assignment: a missing target, value or operand, two values side by side,
// letters that the language does not have. Takes one statement without its comment, gives the first fault;
// valid Python of any kind has none.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "grammar/arguments/python_statement.h"

namespace capstan {

struct PythonFault {
  std::size_t begin = 0, end = 0;  ///< offsets into the statement
  std::string message;
};

std::optional<PythonFault> find_python_fault(std::string_view statement, const PythonTopLevel& top);

}  // namespace capstan
