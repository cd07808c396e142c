// Text with Megatron-LM arguments -> ArgumentList: a plain argument list, or a shell or batch script, from
// which the command with the most arguments is taken. Variables and arrays with literal values are followed
// to where they are written; what is set conditionally, or by a command, stays unknown. Nothing is run.
#pragma once

#include <optional>
#include <vector>

#include "grammar/arguments/argument_list.h"
#include "grammar/source/source_file.h"
#include "grammar/source/syntax_problem.h"

namespace capstan {

/// Nothing (with a problem) when no command with arguments is found; other problems leave the list usable.
std::optional<ArgumentList> parse_megatron_arguments(SourceId source, const SourceMap& sources,
                                                     std::vector<SyntaxProblem>& problems);

}  // namespace capstan
