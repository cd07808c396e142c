#include "compiler/driver/command_sweep.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>

#include "compiler/config/compose.h"
#include "compiler/config/sweep_table.h"
#include "compiler/driver/project_options.h"
#include "compiler/driver/solve_json.h"
#include "compiler/driver/solve_report.h"
#include "compiler/driver/solve_session.h"
#include "compiler/driver/usage_error.h"
#include "compiler/driver/write_output.h"
#include "compiler/fixes/apply.h"
#include "compiler/fixes/edit.h"
#include "compiler/fixes/point_config.h"
#include "compiler/solve/sweep.h"

namespace capstan {
namespace {

constexpr std::size_t kMostExamples = 5;
constexpr std::uint64_t kMostFiles = 100'000;
constexpr std::uint64_t kMostLines = 5'000'000;

struct SweepOptions {
  std::string file;
  std::vector<std::string> over, free;
  std::string points, files;
  ConfigOptions config;
  SolverOptions solver;
};

std::string cube_text(const SolveSession& session, const Sweep& result, const Cube& cube) {
  std::string out;
  for (std::size_t axis = 0; axis < cube.size(); ++axis) {
    if (cube[axis] < 0) continue;
    out +=
        fmt::format("{}`{} = {}`", out.empty() ? "" : " and ", session.subject().name(result.axes[axis].key),
                    to_text(result.axes[axis].values[static_cast<std::size_t>(cube[axis])]));
  }
  return out.empty() ? "every point" : out;
}

std::string point_json(const SolveSession& session, const Sweep& result,
                       const std::vector<std::uint32_t>& point) {
  std::string out = "{";
  for (std::size_t axis = 0; axis < point.size(); ++axis) {
    out += fmt::format("{}{}:{}", axis == 0 ? "" : ",",
                       json_of_text(session.subject().name(result.axes[axis].key)),
                       json_of(result.axes[axis].values[point[axis]]));
  }
  return out + "}\n";
}

/// Entries of the `[sweep]` table. The config itself was read without it, and its problems were reported
/// then.
std::vector<Setting> sweep_entries(SolveSession& session) {
  const PreparedConfig& prepared = session.prepared();
  if (prepared.format != ConfigFormat::toml || prepared.config.files.empty()) return {};
  Sink unheard;
  const auto layers =
      load_layers(prepared.config.files.back(), session.workspace().sources(), disk_reader(), unheard);
  if (!layers) return {};
  Config composed = compose(*layers, unheard);
  return take_sweep_table(composed, *prepared.schema, unheard);
}

/// Points of two sweeps in one folder could not be told apart.
void refuse_earlier_points(const std::string& folder) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("point-") && name.ends_with(".toml"))
      throw UsageError(
          fmt::format("`{}` holds points of an earlier sweep; give another folder or remove them", folder));
  }
}

/// One config per legal point; the folder must exist or be makeable.
std::size_t write_files(SolveSession& session, const Sweep& result, const std::string& folder) {
  const Config& config = session.prepared().config;
  const SourceMap& sources = session.workspace().sources();
  if (config.files.empty() || session.prepared().format != ConfigFormat::toml)
    throw UsageError("`--files` writes TOML files, so the config must be one; `--points` lists the points");
  const SourceId file = config.files.back();
  // A config of one point has nothing to sweep, and lies in another folder.
  std::vector<Edit> common = removal_of_table("sweep", file, sources);
  const std::vector<Edit> moved = moved_file_names(file, folder, sources);
  common.insert(common.end(), moved.begin(), moved.end());
  const auto text_of = [&](const std::vector<std::uint32_t>& point) {
    std::vector<KeyChange> changes;
    for (std::size_t axis = 0; axis < point.size(); ++axis) {
      changes.push_back({KeyChange::Kind::set,
                         session.subject().name(result.axes[axis].key),
                         result.axes[axis].values[point[axis]],
                         {}});
    }
    EditPlan plan = plan_edits(changes, config, sources);
    const bool here = std::all_of(plan.edits.begin(), plan.edits.end(),
                                  [file](const Edit& edit) { return edit.span.source == file; });
    plan.edits.insert(plan.edits.end(), common.begin(), common.end());
    std::optional<std::string> text = apply_edits(sources[file].bytes(), plan.edits);
    if (!plan.complete() || !here || !text)
      throw UsageError("a swept key is set outside the file; set it in the file or drop it from the sweep");
    return *text;
  };
  refuse_earlier_points(folder);
  // Whether the files can be made is known from the first; nothing is left behind when they cannot.
  for_each_legal(result, [&](const std::vector<std::uint32_t>& point) {
    text_of(point);
    return false;
  });
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw UsageError(fmt::format("cannot make the folder `{}`: {}", folder, error.message()));
  std::size_t count = 0;
  for_each_legal(result, [&](const std::vector<std::uint32_t>& point) {
    const std::string path = fmt::format("{}/point-{:06}.toml", folder, count++);
    write_output(path, text_of(point), sources);
    return true;
  });
  return count;
}

/// What the command line names, then what the `[sweep]` table has beside it.
std::vector<std::pair<std::string, std::vector<Value>>> wanted_axes(SolveSession& session,
                                                                    const std::vector<Setting>& entries,
                                                                    const SweepOptions& options) {
  std::vector<std::pair<std::string, std::vector<Value>>> axes;
  for (const std::string& argument : options.over) {
    axes.push_back(session.read_axis(argument));
    for (std::size_t i = 0; i + 1 < axes.size(); ++i) {
      if (axes[i].first == axes.back().first)
        throw UsageError(fmt::format("`{}` is swept over twice", axes[i].first));
    }
  }
  const std::size_t given = axes.size();
  for (const Setting& entry : entries) {
    const bool replaced = std::any_of(axes.begin(), axes.begin() + static_cast<std::ptrdiff_t>(given),
                                      [&](const auto& axis) { return axis.first == entry.path; });
    if (replaced) continue;
    if (entry.value.kind() == Value::Kind::string) {
      axes.push_back(session.read_axis(entry.path + "=" + entry.value.string()));
      continue;
    }
    std::vector<Value> values;
    for (const Value& value : entry.value.list()) {
      if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
    }
    axes.emplace_back(entry.path, std::move(values));
  }
  return axes;
}

int sweep_file(const SweepOptions& options) {
  if (!options.solver.emit.empty() && !(options.points.empty() && options.files.empty()))
    throw UsageError(
        "`--emit` prints the questions instead of the answer; leave `--points` and `--files` out");
  SolveSession session(with_project(options.config, options.file), options.solver);
  if (!session.open(options.file)) return kExitFindings;
  const std::vector<Setting> entries = sweep_entries(session);
  std::vector<SweepAxis> axes;
  std::uint64_t points = 1;
  for (auto& [path, values] : wanted_axes(session, entries, options)) {
    const std::optional<FactId> key = session.find_key(path);
    if (__builtin_mul_overflow(points, std::uint64_t{values.size()}, &points) || points > kMostSweepPoints) {
      throw UsageError("the grid has more than 2^53 points");
    }
    if (!key)
      throw UsageError(fmt::format("no rule of {} reads `{}`: sweeping over it decides nothing",
                                   session.prepared().stack.stack.name, path));
    axes.push_back({*key, std::move(values)});
  }
  if (axes.empty())
    throw UsageError("nothing to sweep over: give `--over KEY=a,b,c`, or write a `[sweep]` table");
  const std::vector<FactId> open = session.open_paths(options.free).read;
  const Sweep result = sweep(session.subject(), std::move(axes), open, session.smt());
  const bool json = options.solver.format == "json";
  if (!options.points.empty()) {
    if (result.legal > kMostLines)
      throw UsageError(
          fmt::format("{} legal points are too many to list; at most {} are", result.legal, kMostLines));
    std::string lines;
    for_each_legal(result, [&](const std::vector<std::uint32_t>& point) {
      lines += point_json(session, result, point);
      return true;
    });
    write_output(options.points, lines, session.workspace().sources(),
                 session.workspace().further_inputs(session.prepared().config));
  }
  std::size_t written = 0;
  if (!options.files.empty()) {
    if (result.legal > kMostFiles)
      throw UsageError(fmt::format("{} legal points are too many files; use `--points`", result.legal));
    written = write_files(session, result, options.files);
  }
  if (options.points == "-") {
    // Standard output holds the points alone.
  } else if (json) {
    std::vector<std::string> reasons;
    for (const SweepReason& reason : result.reasons) {
      const RuleItem& item = session.subject().index().item(reason.position);
      std::vector<std::string> cubes;
      for (const Cube& cube : reason.cubes) {
        std::vector<Assignment> settings;
        for (std::size_t axis = 0; axis < cube.size(); ++axis) {
          if (cube[axis] >= 0)
            settings.push_back({result.axes[axis].key, true,
                                result.axes[axis].values[static_cast<std::size_t>(cube[axis])]});
        }
        cubes.push_back(json_of(session, settings));
      }
      reasons.push_back(fmt::format(
          R"({{"code":{},"name":{},"together":{},"excluded":{},"first":{},"combinations":{},"combinations_complete":{}}})",
          json_of_text(item.code), json_of_text(item.name), json_of(session, reason.together),
          reason.excluded, reason.first, json_list(cubes), reason.all_cubes));
    }
    session.print(json_document(fmt::format(
        R"({{"version":1,"points":{},"legal":{},"answer":"{}","reasons":{}}})", result.points, result.legal,
        result.answer == Answer::undecided ? "undecided" : "decided", json_list(reasons))));
  } else {
    std::string out = fmt::format(
        "{}{} of {} are legal ({})\n", result.answer == Answer::undecided ? "at most " : "", result.legal,
        count_of(result.points, "point", "points"), session.prepared().stack.stack.name);
    for (const SweepReason& reason : result.reasons) {
      const RuleItem& item = session.subject().index().item(reason.position);
      std::string names = fmt::format("{} {}", item.code, item.name);
      for (std::size_t i = 1; i < reason.together.size(); ++i) {
        const RuleItem& further = session.subject().index().item(reason.together[i]);
        names += fmt::format(", {} {}", further.code, further.name);
      }
      if (!reason.together.empty()) names += ", open keys left without a value";
      out += fmt::format("  {}: excludes {}, {} of them first\n", names,
                         count_of(reason.excluded, "point", "points"), reason.first);
      for (std::size_t i = 0; i < reason.cubes.size() && i < kMostExamples; ++i)
        out += fmt::format("    {}\n", cube_text(session, result, reason.cubes[i]));
      if (!reason.all_cubes)
        out += "    and many more combinations\n";
      else if (reason.cubes.size() > kMostExamples)
        out += fmt::format("    and {}\n", count_of(reason.cubes.size() - kMostExamples, "more combination",
                                                    "more combinations"));
    }
    if (!options.files.empty())
      out += fmt::format("wrote {} into {}\n", count_of(written, "config", "configs"), options.files);
    if (result.answer == Answer::undecided)
      out +=
          "undecided: a limit was met, and further points may be excluded; fewer values or a larger "
          "`--timeout` may decide it\n";
    session.print(out);
  }
  if (result.answer == Answer::undecided) return kExitUndecided;
  return result.legal == 0 ? kExitFindings : kExitClean;
}

}  // namespace

void add_sweep_command(CLI::App& program, int& exit_code) {
  auto options = std::make_shared<SweepOptions>();
  CLI::App* command =
      program.add_subcommand("sweep", "say which points of a grid are legal, and group the others by reason");
  command->add_option("file", options->file, "config file, or - for standard input")
      ->required()
      ->type_name("FILE");
  command
      ->add_option("--over", options->over,
                   "a key and its values: KEY=a,b,c, KEY=choice(a,b) or KEY=range(1,9,2) (repeatable)")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->type_name("KEY=VALUES");
  command
      ->add_option("--points", options->points, "write the legal points as JSON lines, - for standard output")
      ->type_name("FILE");
  command->add_option("--files", options->files, "write a config for each legal point into this folder")
      ->type_name("DIR");
  add_free_option(*command, options->free);
  add_config_options(*command, options->config);
  add_solver_options(*command, options->solver);
  command->callback([options, &exit_code] { exit_code = sweep_file(*options); });
}

}  // namespace capstan
