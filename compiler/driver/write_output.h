// Where a command's result goes: standard output, or a file that none of its inputs is.
#pragma once

#include <string>
#include <vector>

#include "grammar/source/source_file.h"

namespace capstan {

/// Writes to the file (as a whole or not at all), or to standard output for "" and "-". Throws UsageError
/// when the file cannot be written, or is one of `inputs`, the document of a rule among them, or one of the
/// `further` files that the command stands on: what the user wrote would be gone.
void write_output(const std::string& path, const std::string& text, const SourceMap& inputs,
                  const std::vector<std::string>& further = {});

}  // namespace capstan
