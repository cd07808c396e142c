// Opens what a user names as input: a regular file, a device such as /dev/null, or a pipe that the process
// was given (/dev/stdin, /dev/fd/N). A named pipe is refused: opening one waits until somebody writes, maybe
// for ever.
#pragma once

#include <string>

namespace capstan {

/// A file descriptor that the caller closes; -1 on failure, and `reason` says why in words.
int open_input_file(const std::string& path, std::string& reason);

}  // namespace capstan
