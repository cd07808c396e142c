#include "grammar/environment/env_file.h"

#include <fmt/format.h>

#include "grammar/environment/shell_script.h"

namespace capstan {

std::vector<EnvironmentVariable> parse_env_file(SourceId source, const SourceMap& sources,
                                                std::vector<SyntaxProblem>& problems) {
  std::vector<EnvironmentVariable> variables;
  for (ShellCommand& command : parse_shell(source, sources, problems).commands) {
    if (!command.words.empty()) {
      const ShellWord& word = command.words.front();
      problems.push_back({fmt::format("`{}` is no `NAME=VALUE`", word.text()), word.span, {"NAME=VALUE"}});
      continue;
    }
    for (ShellAssignment& assignment : command.assignments) {
      if (assignment.is_array || assignment.append || assignment.open || !assignment.value.is_literal()) {
        problems.push_back(
            {fmt::format("the value of `{}` is no literal; write the value itself", assignment.name),
             assignment.value.span,
             {}});
        continue;
      }
      variables.push_back(
          {assignment.name, assignment.name_span, assignment.value.text(), assignment.value.span});
    }
  }
  return variables;
}

}  // namespace capstan
