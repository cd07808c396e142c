// capstan-run as a program in a folder of its own, with real plans from the compiler's lowering.
#pragma once

#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

#include "compiler/plan/json.h"
#include "compiler/plan/lower/lower.h"
#include "compiler/plan/passes.h"
#include "tests/support/model_specs.h"
#include "tests/support/tiny_plan.h"
#include "tests/unit/runtime/process.h"

namespace capstan::runtime::testing {

using nlohmann::json;

class CapstanRun : public ::testing::Test {
 protected:
  Folder folder;

  std::string plan_file(const plan::ModelSpec& spec, const std::string& name = "plan.json") {
    plan::Plan plan = plan::lower(spec);
    const plan::PassResult passed = plan::run_passes(plan, spec);
    EXPECT_TRUE(passed.ok()) << passed.fault;
    write_whole(folder.file(name), plan::write_json(plan));
    return folder.file(name);
  }
  ProcessResult run(std::vector<std::string> arguments, std::uint64_t largest_file = 0) {
    arguments.insert(arguments.begin(), CAPSTAN_BIN_DIR "/capstan-run");
    ProcessWish wish;
    wish.arguments = std::move(arguments);
    wish.largest_file = largest_file;
    return run_process(wish);
  }
  /// Trains to `directory` and demands success.
  void train(const std::string& plan, const std::string& directory, std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {plan,      "--output",  folder.file(directory),
                                          "--quiet", "--threads", "2"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProcessResult result = run(arguments);
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }
  /// Loss and gradient norm of each step, as text: equal text is equal bits.
  std::vector<std::string> curve(const std::string& directory) {
    std::vector<std::string> values;
    std::ifstream file(folder.file(directory) + "/metrics.jsonl");
    for (std::string line; std::getline(file, line);) {
      const json entry = json::parse(line);
      values.push_back(entry["step"].dump() + " " + entry["loss"].dump() + " " + entry["grad_norm"].dump() +
                       " " + entry["lr"].dump());
    }
    return values;
  }
  std::vector<std::string> modes(const std::string& directory) {
    std::vector<std::string> values;
    std::ifstream file(folder.file(directory) + "/metrics.jsonl");
    for (std::string line; std::getline(file, line);) values.push_back(json::parse(line)["mode"]);
    return values;
  }
  /// The run's report, which must conform to its published schema.
  json report(const std::string& directory) {
    const json found = json::parse(read_whole(folder.file(directory) + "/report.json"));
    const json schema = json::parse(read_whole(CAPSTAN_SOURCE_DIR "/docs/run-report.schema.json"));
    const std::vector<std::string> violations = testing_support::JsonSchemaCheck(schema).check(found);
    EXPECT_TRUE(violations.empty()) << directory << ": " << (violations.empty() ? "" : violations.front());
    return found;
  }
  std::string checkpoint(const std::string& directory, int step) {
    char name[64];
    std::snprintf(name, sizeof name, "/checkpoints/step-%08d.safetensors", step);
    return folder.file(directory) + name;
  }

  static std::size_t header_bytes(const std::string& file) {
    std::size_t length = 0;
    for (std::size_t i = 8; i-- > 0;) length = length << 8 | static_cast<unsigned char>(file.at(i));
    return length;
  }
  static plan::ModelSpec llama(std::int64_t steps) {
    plan::ModelSpec spec = plan::small_llama();
    spec.schedule.train_steps = steps;
    spec.optimizer.decay_steps = static_cast<double>(steps);
    spec.optimizer.max_lr = 1e-2;
    return spec;
  }
};

}  // namespace capstan::runtime::testing
