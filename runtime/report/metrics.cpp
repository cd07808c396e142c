#include "runtime/report/metrics.h"

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
  if (file_ != nullptr) std::fclose(file_);
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
  file_ = std::fopen(path.c_str(), "ae");
  if (file_ != nullptr) return {};
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
  if (std::fwrite(line.data(), 1, line.size(), file_) == line.size() && std::fflush(file_) == 0) return {};
  return run_problem(
      "RN050", fmt::format("`{}` cannot be written: {}", path_, std::generic_category().message(errno)));
}

}  // namespace capstan::runtime
