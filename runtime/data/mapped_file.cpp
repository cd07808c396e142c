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
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return refused(std::generic_category().message(errno));
  struct stat facts {};
  const bool known = fstat(file, &facts) == 0;
  if (!known || !S_ISREG(facts.st_mode)) {
    ::close(file);
    return refused(known && S_ISDIR(facts.st_mode) ? "is a directory" : "is no regular file");
  }
  MappedFile mapped;
  mapped.path_ = path;
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

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)), bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace capstan::runtime
