#include "runtime/data/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include <fmt/format.h>

namespace capstan::runtime {

Outcome<MappedFile> MappedFile::open(const std::string& path, const char* code, const char* what) {
  const auto refused = [&](const std::string& why) {
    return run_problem(code, fmt::format("{} `{}` cannot be read: {}", what, path, why), {{"path", path}});
  };
  if (path.find('\0') != std::string::npos) return refused("a file name cannot hold a NUL character");
  // Without O_NONBLOCK, opening a pipe would wait for a writer.
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return refused(std::generic_category().message(errno));
  struct stat facts {};
  const bool known = fstat(file, &facts) == 0;
  if (!known || !S_ISREG(facts.st_mode)) {
    ::close(file);
    return refused(known && S_ISDIR(facts.st_mode) ? "is a directory" : "is no regular file");
  }
  MappedFile mapped;
  mapped.path_ = path;
  mapped.device_ = facts.st_dev;
  mapped.inode_ = facts.st_ino;
  if (facts.st_size > 0) {
    const auto size = static_cast<std::size_t>(facts.st_size);
    void* memory = mmap(nullptr, size, PROT_READ, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED) {
      const int reason = errno;
      ::close(file);
      return refused(std::generic_category().message(reason));
    }
    mapped.bytes_ = {static_cast<const std::byte*>(memory), size};
  }
  ::close(file);
  return mapped;
}

Status MappedFile::check_length(const char* code, const char* what) const {
  struct stat facts {};
  // Another file under the old name leaves the mapped one as it was.
  if (stat(path_.c_str(), &facts) != 0 || facts.st_dev != device_ || facts.st_ino != inode_) return {};
  if (static_cast<std::size_t>(facts.st_size) >= bytes_.size()) return {};
  return run_problem(code,
                     fmt::format("{} `{}` became shorter while it was in use: {} bytes of {} are left", what,
                                 path_, facts.st_size, bytes_.size()),
                     {{"path", path_}}, "put the file back, and leave it alone until the run has ended");
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      bytes_(std::exchange(other.bytes_, {})),
      device_(other.device_),
      inode_(other.inode_) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(bytes_, other.bytes_);
  std::swap(device_, other.device_);
  std::swap(inode_, other.inode_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace capstan::runtime
