// Where a command's result goes: standard output, or a file that none of its inputs is.
#pragma once

#include <string>

#include "grammar/source/source_file.h"

namespace capstan {

/// Writes to the file (as a whole or not at all), or to standard output for "" and "-". Throws UsageError
/// when the file cannot be written, or is one of `inputs`: the user's config would be gone.
void write_output(const std::string& path, const std::string& text, const SourceMap& inputs);

}  // namespace capstan
