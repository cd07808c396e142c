// Writes a whole file so that a reader sees the old bytes or the new ones, never a part: temporary file
// beside it, fsync, rename, fsync of the folder. Keeps the permissions of a file that is replaced; a symbolic
// link stays and its target is replaced.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace capstan {

/// Nothing on success; else the reason as one clause ("No space left on device"), with the old file intact.
std::optional<std::string> replace_file(const std::string& path, std::string_view bytes);

}  // namespace capstan
