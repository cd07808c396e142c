#include "grammar/source/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "grammar/source/standard_descriptors.h"

namespace capstan {
namespace {

/// Names of descriptors that the process was started with; who started it stands at the other end.
bool is_inherited(const std::string& path) {
  return path == "/dev/stdin" || path.starts_with("/dev/fd/") || path.starts_with("/proc/self/fd/");
}

}  // namespace

int open_input_file(const std::string& path, std::string& reason) {
  if (path.find('\0') != std::string::npos) {  // the system would open what stands before it
    reason = "a file name cannot hold a NUL character";
    return -1;
  }
  if (path == "/dev/stdin" && !has_standard_input()) {
    reason = "standard input is closed";
    return -1;
  }
  // Opening a named pipe would wait for a writer.
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat facts {};
  if (file < 0 || ::fstat(file, &facts) != 0) {
    reason = std::strerror(errno);
    if (file >= 0) ::close(file);
    return -1;
  }
  if (S_ISDIR(facts.st_mode)) {
    reason = "is a directory";
  } else if (S_ISBLK(facts.st_mode) || (S_ISFIFO(facts.st_mode) && !is_inherited(path))) {
    reason = "is no regular file; standard input is named `-`";
  } else {
    // Reading may wait: for a person at a terminal, for the program at the other end of a pipe.
    if (!S_ISREG(facts.st_mode)) ::fcntl(file, F_SETFL, ::fcntl(file, F_GETFL) & ~O_NONBLOCK);
    return file;
  }
  ::close(file);
  return -1;
}

}  // namespace capstan
