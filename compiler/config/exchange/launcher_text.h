// What the launcher of Megatron-LM's functional tests makes of a value: it passes through `xargs` and through
// a shell's `eval`, which take quotes and backslashes away. Takes the value's text, gives the argument's.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace capstan {

/// `quotes_operators`: the launcher of Megatron-LM 0.17 and later, which puts values with `|` or parentheses
/// in double quotes. Nothing when only a shell can know the text (`$X`, quotes that do not close). Source:
/// tests/functional_tests/shell_test_utils/_run_training.sh, releases 0.14 to 0.19.
std::optional<std::string> launched_text(std::string_view value, bool quotes_operators);

}  // namespace capstan
