// Command-line arguments with places: what every reader of Megatron-LM arguments gives (plain text, shell and
// batch scripts, functional-test YAML).
#pragma once

#include <string>
#include <vector>

#include "grammar/environment/env_file.h"
#include "grammar/source/comment.h"
#include "grammar/source/span.h"

namespace capstan {

struct ArgumentValue {
  std::string text;
  Span span;            ///< where the value itself stands (in an array or assignment, if it comes from one)
  bool literal = true;  ///< false: a part needs a shell to be known; `text` is as written
  std::string
      default_of{};  ///< the variable whose stated default this is: the environment may hold another value
  bool several = false;  ///< a shell may make any number of words of it, also none (`"$@"`, `$EXTRA`)
};

struct Argument {
  std::string flag;  ///< with its dashes
  Span flag_span;
  std::vector<ArgumentValue> values;
  bool conditional = false;  ///< added under a condition: it may be there or not
};

struct ArgumentList {
  std::vector<Argument> arguments;
  std::vector<ArgumentValue> launcher;  ///< the words before the script: srun, torchrun and the like
  std::vector<ArgumentValue> loose;     ///< words behind the script and before the first argument
  std::vector<ArgumentValue> absent;    ///< `${X:-}`: nothing, unless the environment holds X
  std::vector<EnvironmentVariable>
      variables;  ///< exports with known values, `X=1 command`, and what its launcher passes on
  std::vector<EnvironmentVariable> open_variables;  ///< those whose value only a shell can know
  std::vector<Span>
      further_commands;  ///< training commands of a script beside the one whose arguments these are
  std::vector<Comment> comments;
};

}  // namespace capstan
