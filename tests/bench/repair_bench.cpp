// What `capstan fix --unsafe` makes of every config that the real framework rejects (tests/conformance): how
// many it repairs, whether the result lints clean, how long one takes, and whether a second time changes it.
//   cmake --build --preset release --target repair_bench && build/release/tests/repair_bench [--every N]
//   [TABLE...]
// prints one line per table, what stayed broken, and the whole.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "compiler/driver/conformance_table.h"
#include "compiler/driver/fix_file.h"
#include "compiler/driver/selection_options.h"
#include "compiler/driver/workspace.h"
#include "tests/support/case_text.h"
#include "tests/support/conformance_tables.h"

namespace capstan {
namespace {

struct Outcome {
  std::size_t rejected = 0;   ///< by the real code
  std::size_t unseen = 0;     ///< of these, where Capstan sees no error
  std::size_t repaired = 0;   ///< no error is left
  std::size_t clean = 0;      ///< no error and no warning is left
  std::size_t only_safe = 0;  ///< repaired by safe fixes alone
  std::size_t model = 0;      ///< repaired, and a step changed what defines the model
  std::size_t again = 0;      ///< a second time would change the result once more
  std::vector<double> milliseconds;
  std::map<std::string, std::size_t> left;  ///< code of an error that stays: configs
  std::string example;

  void add(const Outcome& other) {
    rejected += other.rejected;
    unseen += other.unseen;
    repaired += other.repaired;
    clean += other.clean;
    only_safe += other.only_safe;
    model += other.model;
    again += other.again;
    milliseconds.insert(milliseconds.end(), other.milliseconds.begin(), other.milliseconds.end());
    for (const auto& [code, count] : other.left) left[code] += count;
    if (example.empty()) example = other.example;
  }
};

/// Of the processor, so that other work on the machine does not count.
double processor_milliseconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

double quantile(std::vector<double> values, double part) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[std::min(values.size() - 1,
                         static_cast<std::size_t>(part * static_cast<double>(values.size())))];
}

std::string line_of(const std::string& name, const Outcome& one) {
  const double share = one.rejected == one.unseen ? 100.0
                                                  : 100.0 * static_cast<double>(one.repaired) /
                                                        static_cast<double>(one.rejected - one.unseen);
  return fmt::format("{:14} {:8} {:7} {:9} {:8.2f} % {:7} {:9} {:7} {:7} {:9.1f} {:9.1f} {:9.1f}\n", name,
                     one.rejected, one.unseen, one.repaired, share, one.clean, one.only_safe, one.model,
                     one.again, quantile(one.milliseconds, 0.5), quantile(one.milliseconds, 0.99),
                     quantile(one.milliseconds, 1));
}

bool has_error(const std::vector<Diagnostic>& diagnostics) {
  return std::any_of(diagnostics.begin(), diagnostics.end(),
                     [](const Diagnostic& one) { return one.severity == Severity::error; });
}

Outcome run_table(const ConformanceTables& tables, const ConformanceCases& cases, const std::string& table,
                  std::size_t every) {
  const std::string path = tables.path_of("verdicts-" + table + ".jsonl");
  const auto stack = stack_of_table(path, builtin_schema());
  if (!stack) throw std::runtime_error("no stack fits " + table);
  const SchemaView schema(builtin_schema(), *stack);
  Outcome outcome;
  std::unique_ptr<Workspace> workspace;
  FixFileOptions options;
  options.unsafe = true;
  options.model = true;
  std::size_t number = 0;
  for (const RealVerdict& verdict : read_verdicts(path)) {
    if (!verdict.rejected || number++ % every != 0) continue;
    // Each attempt leaves its texts in the workspace: a fresh one now and then keeps it small.
    if (!workspace || outcome.rejected % 200 == 0) {
      Sink sink;
      workspace = std::make_unique<Workspace>(ConfigOptions(), sink);
      options.known = known_codes(workspace->rules());
      options.selection = make_selection({}, options.known);
    }
    ++outcome.rejected;
    const std::string text = case_text(cases.at(verdict.id), *stack, schema);
    const double start = processor_milliseconds();
    const FixedFile result = fix_text(*workspace, "case.toml", text, options);
    const double elapsed = processor_milliseconds() - start;
    if (result.steps.empty() && !has_error(result.left)) {
      ++outcome.unseen;
      continue;
    }
    outcome.milliseconds.push_back(elapsed);
    const bool safe = std::all_of(result.steps.begin(), result.steps.end(), [](const FixStep& step) {
      return step.applicability == Applicability::safe;
    });
    if (!result.readable || has_error(result.left)) {
      for (const Diagnostic& diagnostic : result.left) {
        if (diagnostic.severity == Severity::error) ++outcome.left[diagnostic.code + " " + diagnostic.name];
      }
      if (outcome.example.empty()) outcome.example = verdict.id + "\n" + text;
      continue;
    }
    outcome.again += fix_text(*workspace, "case.toml", result.text, options).text != result.text;
    ++outcome.repaired;
    outcome.only_safe += safe;
    outcome.model += std::any_of(result.steps.begin(), result.steps.end(), [](const FixStep& step) {
      return step.applicability == Applicability::display_only;
    });
    bool clean = true;
    for (const Diagnostic& diagnostic : result.left) {
      if (diagnostic.severity == Severity::hint) continue;
      clean = false;
      ++outcome.left["warning " + diagnostic.code + " " + diagnostic.name];
      if (outcome.example.empty()) outcome.example = verdict.id + "\n" + text + "became\n" + result.text;
    }
    outcome.clean += clean;
  }
  return outcome;
}

int run(const std::vector<std::string>& arguments) {
  std::size_t every = 1;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--every" && i + 1 < arguments.size())
      every = std::max<std::size_t>(1, std::strtoul(arguments[++i].c_str(), nullptr, 10));
    else
      names.push_back(arguments[i]);
  }
  if (names.empty()) names.assign(std::begin(kConformanceTables), std::end(kConformanceTables));
  const ConformanceTables tables;
  ConformanceCases cases;
  for (const char* dialect : {"legacy", "scope", "modules"})
    read_cases(tables.path_of(std::string("cases-") + dialect + ".jsonl"), cases);
  fmt::print("{:14} {:>8} {:>7} {:>9} {:>10} {:>7} {:>9} {:>7} {:>7} {:>9} {:>9} {:>9}\n", "table",
             "rejected", "unseen", "repaired", "share", "clean", "safe only", "model", "again", "median ms",
             "p99 ms", "max ms");
  Outcome all;
  for (const std::string& table : names) {
    const Outcome one = run_table(tables, cases, table, every);
    fmt::print("{}", line_of(table, one));
    std::fflush(stdout);
    all.add(one);
  }
  fmt::print("{}", line_of("all", all));
  std::vector<std::pair<std::size_t, std::string>> left;
  for (const auto& [code, count] : all.left) left.emplace_back(count, code);
  std::sort(left.rbegin(), left.rend());
  for (const auto& [count, code] : left) fmt::print("left {:6}  {}\n", count, code);
  if (!all.example.empty()) fmt::print("for example {}\n", all.example);
  return 0;
}

}  // namespace
}  // namespace capstan

int main(int argc, char** argv) {
  try {
    return capstan::run(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "repair_bench: %s\n", error.what());
    return 2;
  }
}
