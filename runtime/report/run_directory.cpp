#include "runtime/report/run_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "compiler/diagnostics/render/display_text.h"

namespace capstan::runtime {
namespace {

namespace fs = std::filesystem;

bool holds_run(const std::string& directory) {
  std::error_code error;
  return fs::exists(directory + "/metrics.jsonl", error) || fs::exists(directory + "/report.json", error) ||
         !fs::is_empty(directory + "/checkpoints", error);
}

std::string lock_path(const std::string& directory) {
  return directory + "/run.lock";
}

Diagnostic unusable(const std::string& directory, const std::string& why) {
  return run_problem("RN050", fmt::format("the output directory `{}` cannot be used: {}", directory, why),
                     {{"path", directory}});
}

/// The file's stem, as a name that terminals and other tools show as it is.
std::string directory_name(const std::string& config_name) {
  std::string name = safe_text(fs::path(config_name).stem().string());
  std::replace(name.begin(), name.end(), '\\', '_');  // of `\x1b`, for what a terminal would obey
  return name.empty() || name == "." || name == ".." ? "run" : name;
}

/// runs/<stem>, or the first of -2, -3, ... that this process makes itself: two runs started at once get two.
Outcome<std::string> make_numbered(const RunDirectoryWish& wish) {
  const std::string first = "runs/" + directory_name(wish.config_name);
  std::error_code error;
  fs::create_directories("runs", error);
  std::string directory = first;
  for (int number = 2; !error; ++number) {
    if (resumes_from(directory, wish.resume) || fs::create_directory(directory, error)) return directory;
    if (error && fs::exists(directory)) error.clear();  // a file of that name
    if (!error) directory = fmt::format("{}-{}", first, number);
  }
  return unusable(directory, error.message());
}

}  // namespace

bool resumes_from(const std::string& directory, const std::string& resume) {
  if (resume.empty()) return false;
  std::error_code error;
  const fs::path own = fs::weakly_canonical(directory, error), given = fs::weakly_canonical(resume, error);
  return given == own || given.parent_path() == own || given.parent_path().parent_path() == own;
}

RunDirectory::RunDirectory(RunDirectory&& other) noexcept
    : path_(std::move(other.path_)), lock_(std::exchange(other.lock_, -1)) {}

RunDirectory& RunDirectory::operator=(RunDirectory&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(lock_, other.lock_);
  return *this;
}

RunDirectory::~RunDirectory() {
  if (lock_ < 0) return;
  ::unlink(lock_path(path_).c_str());
  ::close(lock_);
}

Status RunDirectory::clear() const {
  std::error_code error;
  for (const char* name : {"/metrics.jsonl", "/report.json", "/plan.json"}) {
    fs::remove(path_ + name, error);
    if (error) return unusable(path_, error.message());
  }
  std::vector<fs::path> old;
  for (fs::directory_iterator entry(path_ + "/checkpoints", error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().filename().string().rfind("step-", 0) == 0) old.push_back(entry->path());
  }
  for (const fs::path& file : old) {
    if (!error) fs::remove(file, error);
  }
  if (!error) fs::remove_all(path_ + "/graphs", error);
  if (error) return unusable(path_, error.message());
  return {};
}

void RunDirectory::drop_if_empty() {
  if (path_.empty()) return;
  std::error_code ignored;
  if (lock_ >= 0) ::unlink(lock_path(path_).c_str());
  fs::remove(path_ + "/checkpoints", ignored);
  fs::remove(path_, ignored);
}

Outcome<RunDirectory> make_run_directory(const RunDirectoryWish& wish) {
  RunDirectory made;
  made.path_ = wish.output;
  if (made.path_.empty()) {
    const Outcome<std::string> numbered = make_numbered(wish);
    if (!numbered.ok()) return numbered.error();
    made.path_ = numbered.value();
  }
  const std::string& directory = made.path_;
  std::error_code error;
  fs::create_directories(directory + "/checkpoints", error);
  if (error) return unusable(directory, error.message());
  if (access(directory.c_str(), W_OK) != 0)
    return unusable(directory, std::generic_category().message(errno));
  for (;;) {
    made.lock_ = ::open(lock_path(directory).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (made.lock_ < 0) return unusable(directory, std::generic_category().message(errno));
    if (::flock(made.lock_, LOCK_EX | LOCK_NB) != 0) {
      const bool taken = errno == EWOULDBLOCK;
      const std::string why = std::generic_category().message(errno);
      ::close(std::exchange(made.lock_, -1));
      if (!taken) return unusable(directory, "no lock can be taken in it: " + why);
      return run_problem("RN050", fmt::format("another run writes to the output directory `{}`", directory),
                         {{"path", directory}}, "give another `--output`, or wait for that run to end");
    }
    // The run that had the lock before may have removed the file between the two calls: then lock the new
    // one.
    struct stat mine {
    }, there{};
    if (fstat(made.lock_, &mine) == 0 && stat(lock_path(directory).c_str(), &there) == 0 &&
        mine.st_ino == there.st_ino) {
      break;
    }
    ::close(std::exchange(made.lock_, -1));
  }
  if (!wish.overwrite && !resumes_from(directory, wish.resume) && holds_run(directory)) {
    return run_problem("RN050", fmt::format("the output directory `{}` holds a run already", directory),
                       {{"path", directory}}, "give another `--output`, `--resume` it, or `--overwrite` it");
  }
  return made;
}

}  // namespace capstan::runtime
