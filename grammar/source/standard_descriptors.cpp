#include "grammar/source/standard_descriptors.h"

#include <fcntl.h>
#include <unistd.h>
#include <initializer_list>

#include <cerrno>

namespace capstan {

void fill_standard_descriptors() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(descriptor, F_GETFD) != -1 || errno != EBADF) continue;
    // The lowest free number is this one. Opened for the other direction: output that nobody gets stays an
    // error.
    const int mode = descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY;
    if (::open("/dev/null", mode) < 0) ::open("/", O_RDONLY | O_DIRECTORY);
  }
}

bool has_standard_input() {
  const int flags = ::fcntl(STDIN_FILENO, F_GETFL);
  return flags != -1 && (flags & O_ACCMODE) != O_WRONLY;
}

}  // namespace capstan
