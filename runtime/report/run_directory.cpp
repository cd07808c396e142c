#include "runtime/report/run_directory.h"

#include <unistd.h>

#include <filesystem>
#include <system_error>

#include <fmt/format.h>

namespace capstan::runtime {
namespace {

namespace fs = std::filesystem;

bool holds_run(const std::string& directory) {
  std::error_code error;
  return fs::exists(directory + "/metrics.jsonl", error) || fs::exists(directory + "/report.json", error) ||
         !fs::is_empty(directory + "/checkpoints", error);
}

/// Whether the resumed checkpoint stands in this run directory.
bool resumes_from(const std::string& directory, const std::string& resume) {
  if (resume.empty()) return false;
  std::error_code error;
  const fs::path own = fs::weakly_canonical(directory, error), given = fs::weakly_canonical(resume, error);
  return given == own || given.parent_path() == own || given.parent_path().parent_path() == own;
}

}  // namespace

Outcome<std::string> make_run_directory(const RunDirectoryWish& wish) {
  std::string directory = wish.output;
  std::error_code error;
  if (directory.empty()) {
    const std::string stem = fs::path(wish.config_name).stem().string();
    const std::string first = "runs/" + (stem.empty() ? std::string("run") : stem);
    directory = first;
    for (int number = 2; fs::exists(directory, error) && !resumes_from(directory, wish.resume); ++number) {
      directory = fmt::format("{}-{}", first, number);
    }
  }
  if (fs::exists(directory, error) && !wish.overwrite && !resumes_from(directory, wish.resume) &&
      fs::is_directory(directory, error) && holds_run(directory)) {
    return run_problem("RN050", fmt::format("the output directory `{}` holds a run already", directory),
                       {{"path", directory}}, "give another `--output`, `--resume` it, or `--overwrite` it");
  }
  fs::create_directories(directory + "/checkpoints", error);
  if (error || access(directory.c_str(), W_OK) != 0) {
    const std::string why = error ? error.message() : std::generic_category().message(errno);
    return run_problem("RN050", fmt::format("the output directory `{}` cannot be used: {}", directory, why),
                       {{"path", directory}});
  }
  return directory;
}

}  // namespace capstan::runtime
