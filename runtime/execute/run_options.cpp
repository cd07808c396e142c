#include "runtime/execute/run_options.h"

#include <charconv>
#include <functional>

#include <fmt/format.h>

#include "runtime/device/backend.h"

namespace capstan::runtime {
namespace {

constexpr const char* kHelp = R"(usage: capstan-run PLAN [options]

Trains what a plan (plan.json, from `capstan compile`) says. PLAN may be - for standard input.

  --backend auto|host|cuda  where to run; default: as the plan says
  --output DIR              run directory; default: runs/<config name>, numbered when it exists
  --overwrite               use the run directory although it holds a run; what that left is removed
  --resume FILE|DIR         go on from a checkpoint, or from the newest one of a run directory
  --steps N                 train up to step N instead of the plan's number of steps
  --eager                   capture nothing
  --compare eager           time captured against eager steps on the same inputs, and say what capture brings
  --rounds N                pairs of steps that --compare times (default 10)
  --verify-replay N         every N steps compare replay with eager execution, op by op, bit by bit
  --export-graphs           write what was captured as graphs/segment-N.dot and .json of the run directory
  --steps-ahead N           issue up to N steps before the loss of the first of them is read (CUDA; default: as
                            many as take a second, between 2 and 8)
  --threads N               threads of the host backend (default: all)
  --device N                CUDA device (default 0)
  --teardown-seconds N      how long releasing the device may take before the process ends itself (default 10)
  --inject nan:STEP         drill: make a parameter NaN before a step (the first is 1)
  --inject flip:BUFFER      drill: change one bit of a buffer on the replayed side of --verify-replay
  --inject fault:OP         drill: the device refuses op number OP while its segment is captured
  --quiet                   no progress line
  --version, --help

Exit codes: 0 done, 2 wrong use, 4 the run failed, 5 replay and eager execution differ, 128+N stopped by signal N
(SIGINT and SIGTERM save a checkpoint first, unless a step on the host takes more than 5 s; a second one ends at once).
)";

struct Option {
  const char* name;
  bool takes_value;
  /// Empty when the value was good, else what it must be.
  std::function<std::string(RunOptions&, const std::string&)> set;
};

std::string read_count(const std::string& text, std::int64_t low, std::int64_t high, std::int64_t& value) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc() && stop == end && value >= low && value <= high) return {};
  return fmt::format("a whole number between {} and {}", low, high);
}

std::string read_drill(const std::string& text, Drill& drill) {
  if (text.rfind("nan:", 0) == 0) {
    std::int64_t step = 0;
    const std::string wrong = read_count(text.substr(4), 1, std::int64_t{1} << 40, step);
    drill = {Drill::Kind::nan, static_cast<std::uint64_t>(step), 0, {}};
    return wrong.empty() ? wrong : "`nan:` and " + wrong;
  }
  if (text.rfind("flip:", 0) == 0 && text.size() > 5) {
    drill = {Drill::Kind::flip, 0, 0, text.substr(5)};
    return {};
  }
  if (text.rfind("fault:", 0) == 0) {
    std::int64_t op = 0;
    const std::string wrong = read_count(text.substr(6), 0, UINT32_MAX, op);
    drill = {Drill::Kind::fault, 0, static_cast<std::uint64_t>(op), {}};
    return wrong.empty() ? wrong : "`fault:` and " + wrong;
  }
  return "`nan:STEP`, `flip:BUFFER` or `fault:OP`";
}

const std::vector<Option>& options() {
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  const auto count = [](std::int64_t RunOptions::*field, std::int64_t low, std::int64_t high) {
    return [=](RunOptions& o, const std::string& value) { return read_count(value, low, high, o.*field); };
  };
  const auto flag = [](bool RunOptions::*field) {
    return [=](RunOptions& o, const std::string&) { return o.*field = true, std::string(); };
  };
  const auto path = [](std::string RunOptions::*field) {
    return [=](RunOptions& o, const std::string& value) {
      o.*field = value;
      return value.empty() ? std::string("a path") : std::string();
    };
  };
  static const std::vector<Option> list = {
      {"--backend", true,
       [](RunOptions& o, const std::string& value) {
         o.backend = value;
         const bool known = value == "auto" || value == "host" || value == "cuda";
         return known ? std::string() : std::string("`auto`, `host` or `cuda`");
       }},
      {"--output", true, path(&RunOptions::output)},
      {"--export-graphs", false, flag(&RunOptions::export_graphs)},
      {"--overwrite", false, flag(&RunOptions::overwrite)},
      {"--resume", true, path(&RunOptions::resume)},
      {"--steps", true,
       [](RunOptions& o, const std::string& value) {
         return read_count(value, 0, kMost, o.steps.emplace());
       }},
      {"--eager", false, flag(&RunOptions::eager)},
      {"--compare", true,
       [](RunOptions& o, const std::string& value) {
         o.compare_eager = true;
         return value == "eager" ? std::string() : std::string("`eager`");
       }},
      {"--rounds", true, count(&RunOptions::rounds, 1, 100000)},
      {"--verify-replay", true, count(&RunOptions::verify_every, 1, kMost)},
      {"--steps-ahead", true,
       count(&RunOptions::steps_ahead, 1, static_cast<std::int64_t>(Backend::kReadSlots))},
      {"--threads", true, count(&RunOptions::threads, 0, 1024)},
      {"--device", true, count(&RunOptions::device, 0, 1024)},
      {"--teardown-seconds", true, count(&RunOptions::teardown_seconds, 1, 3600)},
      {"--inject", true, [](RunOptions& o, const std::string& value) { return read_drill(value, o.drill); }},
      {"--quiet", false, flag(&RunOptions::quiet)},
  };
  return list;
}

ParsedArguments refuse(std::string message) {
  ParsedArguments parsed;
  parsed.exit_code = 2;
  parsed.text = fmt::format("capstan-run: {}\n", message) + "try `capstan-run --help`\n";
  return parsed;
}

}  // namespace

ParsedArguments parse_arguments(const std::vector<std::string>& arguments, std::string_view version) {
  ParsedArguments parsed;
  RunOptions& result = parsed.options;
  bool rounds_given = false, drill_given = false;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--help" || argument == "-h") {
      parsed.exit_code = 0;
      parsed.text = kHelp;
      return parsed;
    }
    if (argument == "--version") {
      parsed.exit_code = 0;
      parsed.text = fmt::format("capstan-run {}\n", version);
      return parsed;
    }
    if (argument.empty() || argument[0] != '-' || argument == "-") {
      if (!result.plan_path.empty())
        return refuse(fmt::format("one plan at a time: `{}` and `{}`", result.plan_path, argument));
      if (argument.empty()) return refuse("the plan's path is empty");
      result.plan_path = argument;
      continue;
    }
    const std::size_t equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    const Option* option = nullptr;
    for (const Option& candidate : options()) {
      if (name == candidate.name) option = &candidate;
    }
    if (option == nullptr) return refuse(fmt::format("there is no option `{}`", name));
    std::string value;
    if (option->takes_value) {
      if (equals != std::string::npos) {
        value = argument.substr(equals + 1);
      } else if (i + 1 < arguments.size()) {
        value = arguments[++i];
      } else {
        return refuse(fmt::format("`{}` needs a value", name));
      }
    } else if (equals != std::string::npos) {
      return refuse(fmt::format("`{}` takes no value", name));
    }
    const std::string wanted = option->set(result, value);
    if (!wanted.empty()) return refuse(fmt::format("`{}` is `{}`, must be {}", name, value, wanted));
    rounds_given = rounds_given || name == "--rounds";
    if (name == "--inject") {
      if (drill_given) return refuse("one drill at a time: `--inject` is given twice");
      drill_given = true;
    }
    if (name == "--device" || name == "--steps-ahead") result.for_cuda.push_back(name);
    if (name == "--threads") result.for_host.push_back(name);
  }
  if (result.plan_path.empty()) return refuse("no plan given");
  const std::vector<std::string>& foreign = result.backend == "host" ? result.for_cuda : result.for_host;
  if ((result.backend == "host" || result.backend == "cuda") && !foreign.empty())
    return refuse(fmt::format("`{}` has no effect with `--backend {}`", foreign.front(), result.backend));
  if (result.eager && (result.compare_eager || result.verify_every > 0)) {
    return refuse("`--eager` captures nothing, so it cannot go with `--compare` or `--verify-replay`");
  }
  if (result.compare_eager && result.verify_every > 0)
    return refuse("`--compare` and `--verify-replay` are two runs");
  if (rounds_given && !result.compare_eager) return refuse("`--rounds` belongs to `--compare eager`");
  if (result.steps && result.compare_eager)
    return refuse("`--steps` belongs to a training run; `--rounds` says how long `--compare eager` is");
  if (result.drill.kind == Drill::Kind::flip && result.verify_every == 0) {
    return refuse("`--inject flip:` belongs to `--verify-replay`");
  }
  if (result.eager && (result.export_graphs || result.drill.kind == Drill::Kind::fault)) {
    return refuse("`--eager` captures nothing, so it cannot go with `--export-graphs` or `--inject fault:`");
  }
  if (result.drill.kind == Drill::Kind::nan && result.compare_eager)
    return refuse("`--inject nan:` belongs to a training run");
  return parsed;
}

}  // namespace capstan::runtime
