// A regular file mapped read-only into memory; unmapped by the destructor.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <span>
#include <string>

#include "runtime/device/outcome.h"

namespace capstan::runtime {

class MappedFile {
 public:
  /// `code` and `what` ("the dataset") make the diagnostic when the file is missing, no regular file or
  /// unreadable.
  static Outcome<MappedFile> open(const std::string& path, const char* code, const char* what);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }
  const std::string& path() const { return path_; }

  /// Fails, with `code` and `what` as in open(), when the file became shorter since: reading the pages that
  /// it lost would end the process. Look before reading.
  Status check_length(const char* code, const char* what) const;

 private:
  MappedFile() = default;
  std::string path_;
  std::span<const std::byte> bytes_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace capstan::runtime
