#include "runtime/report/write_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

namespace capstan::runtime {
namespace {

std::string reason() {
  return std::generic_category().message(errno);
}

}  // namespace

PendingFile::~PendingFile() {
  if (file_ >= 0) ::close(file_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

std::string PendingFile::open() {
  temporary_ = fmt::format("{}.{}.tmp", path_, getpid());
  file_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file_ >= 0) return {};
  temporary_.clear();
  return reason();
}

std::string PendingFile::write(std::string_view bytes) {
  constexpr std::size_t kLargest = std::size_t{1} << 30;  // one write(2) takes less than 2 GiB
  while (!bytes.empty()) {
    const ssize_t done = ::write(file_, bytes.data(), std::min(bytes.size(), kLargest));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return reason();
    bytes.remove_prefix(static_cast<std::size_t>(done));
  }
  return {};
}

std::string PendingFile::rewrite(std::uint64_t offset, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t done = ::pwrite(file_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return reason();
    bytes.remove_prefix(static_cast<std::size_t>(done));
    offset += static_cast<std::uint64_t>(done);
  }
  return {};
}

std::string PendingFile::commit() {
  if (::fsync(file_) != 0) return reason();
  const int closing = file_;
  file_ = -1;
  if (::close(closing) != 0) return reason();  // some file systems tell of a full disk only here
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return reason();
  temporary_.clear();
  const std::filesystem::path parent = std::filesystem::path(path_).parent_path();
  const int folder = ::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return reason();
  const bool synced =
      ::fsync(folder) == 0 || errno == EINVAL || errno == EROFS;  // file systems without folder sync
  std::string why = synced ? std::string() : reason();
  ::close(folder);
  return why;
}

Status write_file(const std::string& path, std::string_view bytes, const char* code) {
  PendingFile file(path);
  std::string why = file.open();
  if (why.empty()) why = file.write(bytes);
  if (why.empty()) why = file.commit();
  if (why.empty()) return {};
  return run_problem(code, fmt::format("`{}` cannot be written: {}", path, why), {{"path", path}});
}

}  // namespace capstan::runtime
