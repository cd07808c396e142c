#include "grammar/source/replace_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace capstan {
namespace {

std::string real_path(const std::string& path) {
  const std::unique_ptr<char, void (*)(void*)> resolved(::realpath(path.c_str(), nullptr), std::free);
  return resolved ? std::string(resolved.get()) : path;
}

bool write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(file, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

}  // namespace

std::optional<std::string> replace_file(const std::string& path, std::string_view bytes) {
  if (path.find('\0') != std::string_view::npos) return "a file name cannot hold a NUL character";
  const std::string target = real_path(path);
  struct stat status {};
  const bool exists = ::stat(target.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode)) return "is a directory";
  if (exists && !S_ISREG(status.st_mode)) {  // /dev/stdout, a pipe: nothing to rename over
    const int file = ::open(target.c_str(), O_WRONLY | O_CLOEXEC);
    if (file < 0) return std::strerror(errno);
    const bool written = write_all(file, bytes);
    const int error = errno;
    ::close(file);
    if (!written) return std::strerror(error);
    return std::nullopt;
  }
  std::string temporary = target + ".XXXXXX";
  const int file = ::mkostemp(temporary.data(), O_CLOEXEC);
  if (file < 0) return std::strerror(errno);
  const mode_t mask = ::umask(0);
  ::umask(mask);
  const mode_t mode = exists ? status.st_mode & 07777 : 0666 & ~mask;
  bool done = ::fchmod(file, mode) == 0 && write_all(file, bytes) && ::fsync(file) == 0;
  int error = done ? 0 : errno;
  if (::close(file) != 0 && done) {
    done = false;
    error = errno;
  }
  if (done && ::rename(temporary.c_str(), target.c_str()) != 0) {
    done = false;
    error = errno;
  }
  if (!done) {
    ::unlink(temporary.c_str());
    return std::strerror(error);
  }
  const auto slash = target.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : slash == 0 ? "/" : target.substr(0, slash);
  if (const int directory = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); directory >= 0) {
    ::fsync(directory);  // the rename is complete already; a folder that cannot be synced is no failure of
                         // the write
    ::close(directory);
  }
  return std::nullopt;
}

}  // namespace capstan
