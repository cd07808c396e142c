#include "compiler/driver/distinct_paths.h"

#include <filesystem>
#include <set>
#include <system_error>

namespace capstan {

std::vector<std::string> distinct_paths(std::vector<std::string> paths) {
  std::set<std::string> seen;
  std::erase_if(paths, [&](const std::string& path) {
    std::error_code error;
    const std::filesystem::path canonical = std::filesystem::canonical(path, error);
    return !seen.insert(error ? path : canonical.string()).second;
  });
  return paths;
}

}  // namespace capstan
