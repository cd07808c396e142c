// Writing files that are never seen half-written: through a temporary beside the target, synced and renamed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/device/outcome.h"

namespace capstan::runtime {

/// A file under a temporary name. Becomes `path` by commit(); otherwise the destructor removes it.
class PendingFile {
 public:
  explicit PendingFile(std::string path) : path_(std::move(path)) {}
  ~PendingFile();
  PendingFile(const PendingFile&) = delete;
  PendingFile& operator=(const PendingFile&) = delete;

  // Each gives an empty text, or why it failed ("no space left on device").
  std::string open();
  std::string write(std::string_view bytes);
  /// Puts bytes over earlier ones, at `offset` from the file's start.
  std::string rewrite(std::uint64_t offset, std::string_view bytes);
  /// Syncs the file, renames it, syncs the folder.
  std::string commit();

 private:
  std::string path_, temporary_;
  int file_ = -1;
};

/// A small file at once. `code` makes the diagnostic.
Status write_file(const std::string& path, std::string_view bytes, const char* code);

}  // namespace capstan::runtime
