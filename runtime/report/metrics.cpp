#include "runtime/report/metrics.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <fstream>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/report/write_file.h"

namespace capstan::runtime {
namespace {

std::string number(double value) {
  return std::isfinite(value) ? fmt::format("{}", value) : "null";
}

}  // namespace

MetricsFile::~MetricsFile() {
  if (file_ >= 0) ::close(file_);
}

Status MetricsFile::open(const std::string& path, std::int64_t keep_until) {
  path_ = path;
  std::string kept;
  bool dropped = false;
  std::ifstream old(path);
  for (std::string line; std::getline(old, line);) {
    const nlohmann::json entry = nlohmann::json::parse(line, nullptr, false);
    const bool whole = entry.is_object() && entry.contains("step") && entry["step"].is_number_integer();
    if (whole && entry["step"].get<std::int64_t>() <= keep_until) {
      kept += line + "\n";
    } else {
      dropped = true;
    }
  }
  if (dropped) {
    if (Status written = write_file(path, kept, "RN050"); !written.ok()) return written;
  }
  file_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file_ >= 0) return {};
  return run_problem("RN050",
                     fmt::format("`{}` cannot be written: {}", path, std::generic_category().message(errno)));
}

Status MetricsFile::append(const StepMetrics& metrics) {
  const std::string line = fmt::format(
      "{{\"step\": {}, \"loss\": {}, \"lr\": {}, \"grad_norm\": {}, \"tokens_per_s\": {:.1f}, \"step_ms\": "
      "{:.3f}, "
      "\"mode\": \"{}\"}}\n",
      metrics.step, number(metrics.loss), number(metrics.learning_rate), number(metrics.grad_norm),
      metrics.tokens_per_s, metrics.step_ms, metrics.mode);
  // Past the buffer of stdio, so that what was not written whole can be taken back.
  const off_t whole = ::lseek(file_, 0, SEEK_END);
  const ssize_t written = ::write(file_, line.data(), line.size());
  if (written == static_cast<ssize_t>(line.size())) return {};
  const int reason = written < 0 ? errno : ENOSPC;
  if (whole >= 0 && ::ftruncate(file_, whole) != 0) {
    // Half a line stays; resuming drops it.
  }
  return run_problem(
      "RN050", fmt::format("`{}` cannot be written: {}", path_, std::generic_category().message(reason)));
}

}  // namespace capstan::runtime
