// A regular file mapped read-only into memory; unmapped by the destructor.
#pragma once

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

 private:
  MappedFile() = default;
  std::string path_;
  std::span<const std::byte> bytes_;
};

}  // namespace capstan::runtime
