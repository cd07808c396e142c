// Runs a program as a user would: arguments in, exit code and both outputs out; with a limit on file sizes,
// or a signal sent once a file has a given number of lines.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/temporary_folder.h"

namespace capstan::runtime::testing {

using testing_support::Folder;
using testing_support::read_whole;
using testing_support::write_whole;

struct ProcessWish {
  std::vector<std::string> arguments;  ///< program first
  std::uint64_t largest_file = 0;      ///< bytes; 0: no limit
  int signal = 0;                      ///< sent when `when_file` has `when_lines` lines
  std::string when_file;
  std::int64_t when_lines = 0;
  std::chrono::milliseconds pause{0};  ///< between that and the signal
};

struct ProcessResult {
  int exit_code = -1;  ///< -1: killed by a signal
  std::string out, err;
  double seconds_after_signal = 0;
};

inline ProcessResult run_process(const ProcessWish& wish) {
  const Folder folder;
  const std::string out = folder.file("out"), err = folder.file("err");
  const pid_t child = fork();
  if (child == 0) {
    const int out_file = ::open(out.c_str(), O_WRONLY | O_CREAT, 0600),
              err_file = ::open(err.c_str(), O_WRONLY | O_CREAT, 0600);
    dup2(out_file, STDOUT_FILENO);
    dup2(err_file, STDERR_FILENO);
    if (wish.largest_file > 0) {
      const rlimit limit{wish.largest_file, wish.largest_file};
      setrlimit(RLIMIT_FSIZE, &limit);
    }
    std::vector<char*> arguments;
    for (const std::string& argument : wish.arguments)
      arguments.push_back(const_cast<char*>(argument.c_str()));
    arguments.push_back(nullptr);
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  ProcessResult result;
  int status = 0;
  std::chrono::steady_clock::time_point sent;
  bool signalled = false;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(200);
  while (waitpid(child, &status, WNOHANG) == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    if (std::chrono::steady_clock::now() > deadline) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      break;
    }
    if (wish.signal == 0 || signalled) continue;
    const std::string text = read_whole(wish.when_file);
    if (std::count(text.begin(), text.end(), '\n') < wish.when_lines) continue;
    std::this_thread::sleep_for(wish.pause);
    kill(child, wish.signal);
    signalled = true;
    sent = std::chrono::steady_clock::now();
  }
  if (signalled)
    result.seconds_after_signal =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - sent).count();
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  result.out = read_whole(out);
  result.err = read_whole(err);
  return result;
}

}  // namespace capstan::runtime::testing
