// Files and folders that a command names, each once, however often and under whatever names they are given.
// Links are followed; what does not exist stays as it is named, to be reported where it is read.
#pragma once

#include <string>
#include <vector>

namespace capstan {

/// In the order given, the first name of each.
std::vector<std::string> distinct_paths(std::vector<std::string> paths);

}  // namespace capstan
