// capstan-run as a program: real plans from the compiler's lowering, trained on the host, stopped, resumed,
// damaged.
#include <nlohmann/json.hpp>

#include <cmath>

#include <gtest/gtest.h>

#include "compiler/plan/json.h"
#include "compiler/plan/lower/lower.h"
#include "compiler/plan/passes.h"
#include "runtime/report/run_directory.h"
#include "tests/support/json_schema_check.h"
#include "tests/support/model_specs.h"
#include "tests/support/tiny_plan.h"
#include "tests/unit/runtime/process.h"

namespace capstan::runtime::testing {
namespace {

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

TEST_F(CapstanRun, ReplayComputesTheBitsOfEagerExecutionWithDropout) {
  plan::ModelSpec spec = llama(60);
  ASSERT_GT(spec.hidden_dropout, 0);
  ASSERT_GT(spec.attention_dropout, 0);
  train(plan_file(spec), "eager");
  train(plan_file(plan::with_scopes(spec, {"attn"})), "attn");
  train(plan_file(plan::with_scopes(spec, {"attn", "mlp"})), "layer");
  train(plan_file(plan::with_full_iteration(spec, false)), "iteration");
  train(plan_file(plan::with_full_iteration(spec, true)), "with_optimizer");
  const auto reference = curve("eager");
  ASSERT_EQ(reference.size(), 60u);
  EXPECT_NE(reference[10], reference[11]);
  for (const char* directory : {"attn", "layer", "iteration", "with_optimizer"}) {
    EXPECT_EQ(curve(directory), reference) << directory;
    const auto how = modes(directory);
    EXPECT_EQ(std::count(how.begin(), how.end(), "replay"), 56) << directory;  // 3 warm-up, 1 capture
    // The end state, tensor for tensor; the metadata names another plan.
    const std::string one = read_whole(checkpoint("eager", 60)),
                      other = read_whole(checkpoint(directory, 60));
    const std::size_t tensors = 8 + header_bytes(one);
    ASSERT_EQ(tensors, 8 + header_bytes(other));
    ASSERT_EQ(one.size(), other.size());
    EXPECT_TRUE(std::equal(one.begin() + static_cast<std::ptrdiff_t>(tensors), one.end(),
                           other.begin() + static_cast<std::ptrdiff_t>(tensors)))
        << directory;
  }
}

TEST_F(CapstanRun, RecomputeChangesNoBit) {
  plan::ModelSpec spec = llama(12);
  train(plan_file(spec), "plain");
  spec.recompute.granularity = plan::RecomputeSpec::Granularity::selective;
  spec.recompute.modules = {"core_attn", "mlp"};
  train(plan_file(spec), "selective");
  spec.recompute.granularity = plan::RecomputeSpec::Granularity::full;
  spec.recompute.modules.clear();
  spec.recompute.num_layers = 1;
  train(plan_file(spec), "full");
  EXPECT_EQ(curve("selective"), curve("plain"));
  EXPECT_EQ(curve("full"), curve("plain"));
}

TEST_F(CapstanRun, LearnsText) {
  plan::ModelSpec spec = llama(120);
  std::string text;
  for (int i = 0; i < 600; ++i) text += "the cat sat on the mat. ";
  write_whole(folder.file("text.txt"), text);
  spec.data = {"text", folder.file("text.txt"), 3};
  spec.dims.vocab = 256;
  spec.dims.padded_vocab = 256;
  spec.dims.micro_batch = 4;
  train(plan_file(spec), "run");
  const json found = report("run");
  EXPECT_NEAR(found["loss"]["first"].get<double>(), std::log(256.0), 0.2);  // uniform before the first step
  EXPECT_LT(found["loss"]["last"].get<double>(), 1.5);
  EXPECT_EQ(found["status"], "finished");
}

TEST_F(CapstanRun, ResumesToTheBitsOfTheUninterruptedRun) {
  for (const bool captured : {false, true}) {
    plan::ModelSpec spec = plan::small_gpt();  // bf16 with masters
    spec.hidden_dropout = 0.1;
    spec.attention_dropout = 0.1;
    spec.schedule.train_steps = 30;
    spec.schedule.save_every = 11;
    spec.optimizer.max_lr = 1e-2;
    spec.optimizer.decay_steps = 30;
    if (captured) spec = plan::with_full_iteration(spec, true);
    const std::string plan = plan_file(spec), prefix = captured ? "c_" : "e_";
    train(plan, prefix + "whole");
    train(plan, prefix + "part", {"--steps", "14"});
    train(plan, prefix + "rest", {"--resume", folder.file(prefix + "part")});
    auto together = curve(prefix + "part");
    const auto rest = curve(prefix + "rest");
    ASSERT_EQ(rest.size(), 16u);
    together.insert(together.end(), rest.begin(), rest.end());
    EXPECT_EQ(together, curve(prefix + "whole"));
    EXPECT_EQ(read_whole(checkpoint(prefix + "rest", 30)), read_whole(checkpoint(prefix + "whole", 30)));
    EXPECT_EQ(report(prefix + "rest")["steps"]["resumed_from"], checkpoint(prefix + "part", 14));
    // From an earlier checkpoint, into the same directory: the lines after it are made again.
    train(plan, prefix + "part", {"--resume", checkpoint(prefix + "part", 11)});
    EXPECT_EQ(curve(prefix + "part"), curve(prefix + "whole"));
  }
}

TEST_F(CapstanRun, RefusesACheckpointOfAnotherPlanAndNamesTheDifference) {
  plan::ModelSpec spec = llama(4);
  train(plan_file(spec), "first");
  const auto refusal = [&](const plan::ModelSpec& other) {
    const ProcessResult result = run({plan_file(other, "other.json"), "--output", folder.file("second"),
                                      "--resume", folder.file("first")});
    EXPECT_EQ(result.exit_code, 4);
    EXPECT_FALSE(std::filesystem::exists(folder.file("second")));
    return result.err;
  };
  plan::ModelSpec other = spec;
  other.seed = 77;
  EXPECT_NE(refusal(other).find("`seed` is 1234 in the checkpoint and 77 in the plan"), std::string::npos)
      << refusal(other);
  other = spec;
  other.dims.hidden = 24;
  EXPECT_NE(refusal(other).find("`dims.hidden` is 16 in the checkpoint and 24 in the plan"),
            std::string::npos)
      << refusal(other);
  other = spec;
  other.optimizer.max_lr = 0.5;
  EXPECT_NE(refusal(other).find("`learning_rate.max_lr` is 0.01 in the checkpoint and 0.5 in the plan"),
            std::string::npos)
      << refusal(other);
  other = spec;
  other.hidden_dropout = 0.3;
  EXPECT_NE(refusal(other).find("is 0.1 in the checkpoint and 0.3 in the plan"), std::string::npos)
      << refusal(other);
  // Capture and saving change no bit, so they may differ.
  other = plan::with_full_iteration(spec, true);
  other.schedule.save_every = 2;
  other.schedule.train_steps = 6;
  train(plan_file(other, "other.json"), "third", {"--resume", folder.file("first")});
  EXPECT_EQ(curve("third").size(), 2u);
}

TEST_F(CapstanRun, RefusesDamagedCheckpoints) {
  const std::string plan = plan_file(llama(2));
  train(plan, "run");
  const std::string good = read_whole(checkpoint("run", 2));
  const auto refusal = [&](const std::string& bytes) {
    write_whole(folder.file("bad.safetensors"), bytes);
    const ProcessResult result =
        run({plan, "--output", folder.file("again"), "--resume", folder.file("bad.safetensors")});
    EXPECT_EQ(result.exit_code, 4);
    EXPECT_NE(result.err.find("error[RN04"), std::string::npos) << result.err;
    return result.err;
  };
  refusal("");
  refusal("short");
  refusal(good.substr(0, 100));
  refusal(good.substr(0, good.size() - 1));
  refusal(good + "x");
  refusal(std::string(8, '\xff') + good.substr(8));
  refusal("not a checkpoint, but long enough to have a header length in front");
  std::string flipped = good;
  flipped[good.size() - 3000] = static_cast<char>(flipped[good.size() - 3000] ^ 1);
  EXPECT_NE(refusal(flipped).find("do not have the digest"), std::string::npos);
  // A checkpoint without a digest is none of capstan-run's.
  const std::string digest = "\"data_digest\":\"";
  const std::size_t at = good.find(digest);
  ASSERT_NE(at, std::string::npos);
  std::string no_digest = good;
  no_digest.replace(at + 1, 4, "note");
  EXPECT_NE(refusal(no_digest).find("does not state the digest"), std::string::npos);
  // Counters that do not fit the step: seen before the digest is.
  for (const char* name : {"micro_batch_index", "rng_counter"}) {
    const json header = json::parse(good.substr(8, header_bytes(good)));
    const std::size_t place = 8 + header_bytes(good) + header[name]["data_offsets"][0].get<std::size_t>();
    std::string other = no_digest;
    other[place] = static_cast<char>(other[place] ^ 1);
    EXPECT_NE(refusal(other).find(name), std::string::npos);
  }
  const std::string missing =
      run({plan, "--output", folder.file("again"), "--resume", folder.file("nothing")}).err;
  EXPECT_NE(missing.find("error[RN041]"), std::string::npos) << missing;
}

TEST_F(CapstanRun, StopsAtANonfiniteLossAndKeepsTheCheckpoint) {
  plan::ModelSpec spec = llama(20);
  spec.check_loss = true;
  spec.schedule.save_every = 5;
  const ProcessResult result =
      run({plan_file(spec), "--output", folder.file("run"), "--quiet", "--inject", "nan:7"});
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_NE(result.err.find("error[RN030] the loss of step 8 is nan"), std::string::npos) << result.err;
  EXPECT_TRUE(std::filesystem::exists(checkpoint("run", 5)));
  EXPECT_FALSE(std::filesystem::exists(checkpoint("run", 8)));
  const json found = report("run");
  EXPECT_EQ(found["status"], "failed");
  EXPECT_EQ(found["steps"]["done"], 8);
  EXPECT_EQ(found["diagnostics"][0]["code"], "RN030");
  // The gradient's check alone sees it, too.
  plan::ModelSpec gradient = spec;
  gradient.check_loss = false;
  gradient.check_gradients = true;
  const ProcessResult by_gradient =
      run({plan_file(gradient), "--output", folder.file("gradient"), "--quiet", "--inject", "nan:7"});
  EXPECT_EQ(by_gradient.exit_code, 4);
  EXPECT_NE(by_gradient.err.find("error[RN031] the gradient norm of step 8 is nan"), std::string::npos)
      << by_gradient.err;
  // Without the check the run goes on; the optimizer changes nothing.
  spec.check_loss = false;
  const ProcessResult unchecked =
      run({plan_file(spec), "--output", folder.file("on"), "--quiet", "--inject", "nan:18"});
  EXPECT_EQ(unchecked.exit_code, 0) << unchecked.err;
  EXPECT_EQ(report("on")["steps"]["nonfinite"], 2);
  // But it says so, once, with the first such step.
  EXPECT_NE(unchecked.err.find("warning[RN037] the loss of step 19 is nan"), std::string::npos)
      << unchecked.err;
  EXPECT_EQ(unchecked.err.find("RN037"), unchecked.err.rfind("RN037"));
  EXPECT_EQ(report("on")["diagnostics"][0]["code"], "RN037");
}

TEST_F(CapstanRun, VerifiesReplayAndNamesTheFirstOpThatDiffers) {
  for (const bool whole : {false, true}) {
    const plan::ModelSpec spec =
        whole ? plan::with_full_iteration(llama(12), true) : plan::with_scopes(llama(12), {"attn", "mlp"});
    const std::string plan = plan_file(spec), prefix = whole ? "w" : "s";
    train(plan, prefix + "good", {"--verify-replay", "2"});
    const json good = report(prefix + "good");
    EXPECT_EQ(good["verification"]["checked"], 5);  // steps 4, 6, 8, 10, 12
    EXPECT_TRUE(good["verification"]["first_difference"].is_null());
    train(plan, prefix + "plain");
    EXPECT_EQ(curve(prefix + "good"), curve(prefix + "plain"));
    // A random counter that is off by one: what a host-side random state frozen into a graph does.
    const ProcessResult bad = run({plan, "--output", folder.file(prefix + "bad"), "--quiet",
                                   "--verify-replay", "2", "--inject", "flip:rng_counter"});
    EXPECT_EQ(bad.exit_code, 5);
    EXPECT_NE(bad.err.find("error[RN032]"), std::string::npos) << bad.err;
    EXPECT_NE(bad.err.find("`dropout` (embedding, forward)"), std::string::npos) << bad.err;
    EXPECT_EQ(report(prefix + "bad")["status"], "replay_differs");
  }
}

TEST_F(CapstanRun, ComparesWithEager) {
  const std::string plan = plan_file(plan::with_full_iteration(llama(12), true));
  const ProcessResult result =
      run({plan, "--output", folder.file("run"), "--compare", "eager", "--rounds", "4"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const json card = report("run")["comparison"];
  EXPECT_EQ(card["loss_match"], true);
  EXPECT_EQ(card["loss_max_delta"], 0.0);
  EXPECT_EQ(card["scope"], json::array({"full_iteration"}));
  EXPECT_EQ(card["graphable_layers_per_stage"], json::array({2}));
  EXPECT_EQ(card["eager_ms"]["count"], 4);
  EXPECT_GT(card["graph_iteration_ms"].get<double>(), 0);
  EXPECT_NE(result.out.find(card["verdict"].get<std::string>()), std::string::npos);
  const ProcessResult nothing =
      run({plan_file(llama(5)), "--output", folder.file("none"), "--compare", "eager"});
  EXPECT_EQ(nothing.exit_code, 4);
  EXPECT_NE(nothing.err.find("RN035"), std::string::npos);
}

TEST_F(CapstanRun, AFaultWhileCapturingEndsTheRunAndKeepsTheCheckpoint) {
  plan::ModelSpec spec = llama(20);
  spec.schedule.save_every = 2;
  spec.schedule.warmup_steps = 3;
  const std::string plan = plan_file(plan::with_full_iteration(spec, true));
  const ProcessResult result = run({plan, "--output", folder.file("run"), "--quiet", "--inject", "fault:9"});
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_NE(result.err.find("error[RN022] op 9 "), std::string::npos) << result.err;
  EXPECT_TRUE(std::filesystem::exists(checkpoint("run", 2)));
  EXPECT_EQ(report("run")["status"], "failed");
  EXPECT_EQ(curve("run").size(), 3u);
  train(plan, "rest", {"--resume", folder.file("run")});
  train(plan, "whole");
  EXPECT_EQ(read_whole(checkpoint("rest", 20)), read_whole(checkpoint("whole", 20)));
}

TEST_F(CapstanRun, RefusesDrillsOnWhatThePlanDoesNotHave) {
  const std::string scoped = plan_file(plan::with_scopes(llama(4), {"attn"}));
  const auto refusal = [&](const std::string& drill) {
    const ProcessResult result =
        run({scoped, "--output", folder.file("none"), "--quiet", "--verify-replay", "1", "--inject", drill});
    EXPECT_EQ(result.exit_code, 4);
    EXPECT_NE(result.err.find("error[RN036]"), std::string::npos) << result.err;
    EXPECT_FALSE(std::filesystem::exists(folder.file("none")));
    return result.err;
  };
  EXPECT_NE(refusal("flip:no_such_buffer").find("`no_such_buffer`"), std::string::npos);
  EXPECT_NE(refusal("fault:100000").find("op 100000"), std::string::npos);
  refusal("fault:0");  // there is such an op, but no graph holds it
}

TEST_F(CapstanRun, RefusesDrillsThatCouldShowNothing) {
  const std::string plan = plan_file(plan::with_full_iteration(llama(8), true));
  const auto refusal = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {plan, "--output", folder.file("none"), "--quiet"});
    const ProcessResult result = run(arguments);
    EXPECT_EQ(result.exit_code, 4) << result.out;
    EXPECT_FALSE(std::filesystem::exists(folder.file("none")));
    return result.err;
  };
  // The first thing that a step does with it is to write it.
  EXPECT_NE(refusal({"--verify-replay", "2", "--inject", "flip:loss"}).find("overwrites before it reads"),
            std::string::npos);
  EXPECT_NE(refusal({"--inject", "nan:8"}).find("it does 0 to 7"), std::string::npos);
  EXPECT_NE(refusal({"--inject", "nan:4", "--steps", "4"}).find("it does 0 to 3"), std::string::npos);
  EXPECT_NE(refusal({"--verify-replay", "9"}).find("would verify step 9 first, but the run ends at step 8"),
            std::string::npos);
  EXPECT_NE(refusal({"--verify-replay", "1", "--steps", "2"}).find("nothing to verify"), std::string::npos);
}

TEST_F(CapstanRun, ResumesOnTheSameDataOnly) {
  plan::ModelSpec spec = llama(4);
  spec.dims.vocab = spec.dims.padded_vocab = 256;
  spec.data = {"text", folder.file("t"), 1};
  write_whole(folder.file("t"), std::string(5000, 'a'));
  const std::string plan = plan_file(spec);
  train(plan, "run", {"--steps", "2"});
  const auto resume = [&] {
    return run(
        {plan, "--output", folder.file("rest"), "--overwrite", "--quiet", "--resume", folder.file("run")});
  };
  EXPECT_EQ(resume().exit_code, 0);
  // The same data under another name are the same data.
  spec.data.path = folder.file("./t");
  const ProcessResult elsewhere = run({plan_file(spec, "elsewhere.json"), "--output", folder.file("rest"),
                                       "--overwrite", "--quiet", "--resume", folder.file("run")});
  EXPECT_EQ(elsewhere.exit_code, 0) << elsewhere.err;
  write_whole(folder.file("t"), std::string(5000, 'b'));
  const ProcessResult other = resume();
  EXPECT_EQ(other.exit_code, 4);
  EXPECT_NE(other.err.find("error[RN042] the data are not those"), std::string::npos) << other.err;
  write_whole(folder.file("t"), std::string(5001, 'a'));
  const ProcessResult longer = resume();
  EXPECT_EQ(longer.exit_code, 4);
  EXPECT_NE(longer.err.find("`data."), std::string::npos) << longer.err;
}

TEST_F(CapstanRun, SaysWhenAnOptionHasNoEffectOnTheBackend) {
  const std::string plan = plan_file(llama(2));
  const ProcessResult refused = run({plan, "--backend", "host", "--device", "7"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("`--device` has no effect with `--backend host`"), std::string::npos);
  EXPECT_EQ(run({plan, "--backend", "cuda", "--threads", "2"}).exit_code, 2);
  const ProcessResult told = run({plan, "--output", folder.file("run"), "--quiet", "--steps-ahead", "2"});
  EXPECT_EQ(told.exit_code, 0) << told.err;
  if (report("run")["device"]["backend"] == "host") {
    EXPECT_NE(told.err.find("`--steps-ahead` has no effect on the host backend"), std::string::npos)
        << told.err;
  }
}

TEST_F(CapstanRun, ExportsWhatWasCaptured) {
  train(plan_file(plan::with_scopes(llama(5), {"mlp"})), "run", {"--export-graphs"});
  const json segments = report("run")["graphs"]["segments"];
  ASSERT_EQ(segments.size(), 4u);  // forward and backward of two layers
  for (const json& segment : segments) {
    const std::string stem = folder.file("run") + "/graphs/segment-" + segment["segment"].dump();
    const json graph = json::parse(read_whole(stem + ".json"));
    EXPECT_EQ(graph["scope"], "mlp");
    EXPECT_EQ(graph["nodes"].size(), segment["nodes"]);
    EXPECT_EQ(graph["edges"].size(), segment["edges"]);
    for (const json& node : graph["nodes"]) {
      EXPECT_EQ(node["module"], "mlp");
      EXPECT_EQ(node["name"], node["op_kind"]);
    }
    const std::string dot = read_whole(stem + ".dot");
    EXPECT_NE(dot.find("digraph segment_" + segment["segment"].dump()), std::string::npos);
    EXPECT_NE(dot.find("n0 -> n1;"), std::string::npos);
  }
  const ProcessResult nothing =
      run({plan_file(llama(5)), "--output", folder.file("none"), "--export-graphs"});
  EXPECT_NE(nothing.err.find("error[RN035]"), std::string::npos) << nothing.err;
}

TEST_F(CapstanRun, SavesAndStopsOnASignal) {
  plan::ModelSpec spec = llama(1000000);
  spec.optimizer.decay_steps = 100;
  const std::string plan = plan_file(plan::with_full_iteration(spec, true));
  ProcessWish wish;
  wish.arguments = {CAPSTAN_BIN_DIR "/capstan-run", plan, "--output", folder.file("run"), "--quiet"};
  wish.signal = SIGTERM;
  wish.when_file = folder.file("run") + "/metrics.jsonl";
  wish.when_lines = 10;
  const ProcessResult result = run_process(wish);
  EXPECT_EQ(result.exit_code, 128 + SIGTERM) << result.err;
  EXPECT_LT(result.seconds_after_signal, 10);
  const json found = report("run");
  EXPECT_EQ(found["status"], "interrupted");
  EXPECT_EQ(found["diagnostics"][0]["code"], "RN033");
  const int done = found["steps"]["done"];
  EXPECT_GE(done, 10);
  EXPECT_TRUE(std::filesystem::exists(checkpoint("run", done)));
  train(plan, "rest", {"--resume", folder.file("run"), "--steps", std::to_string(done + 2)});
  train(plan, "whole", {"--steps", std::to_string(done + 2)});
  EXPECT_EQ(read_whole(checkpoint("rest", done + 2)), read_whole(checkpoint("whole", done + 2)));
}

TEST_F(CapstanRun, GivesUpAStepOfMinutesOnASignal) {
  plan::ModelSpec spec = llama(4);
  spec.dims.micro_batches = 1000000;
  const std::string plan = plan_file(spec);
  ProcessWish wish;
  wish.arguments = {
      CAPSTAN_BIN_DIR "/capstan-run", plan, "--backend", "host", "--output", folder.file("run"), "--quiet"};
  wish.signal = SIGTERM;
  wish.when_file = folder.file("run") + "/plan.json";
  wish.when_lines = 2;
  wish.pause = std::chrono::seconds(3);  // until the first step is under way
  const ProcessResult result = run_process(wish);
  EXPECT_EQ(result.exit_code, 128 + SIGTERM) << result.err;
  EXPECT_GT(result.seconds_after_signal, 4);
  EXPECT_LT(result.seconds_after_signal, 10);
  EXPECT_NE(result.err.find("in the middle of step 1"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("there is no checkpoint"), std::string::npos) << result.err;
  const json found = report("run");
  EXPECT_EQ(found["status"], "interrupted");
  EXPECT_EQ(found["steps"]["done"], 0);
  ASSERT_EQ(found["diagnostics"].size(), 1u);
  EXPECT_EQ(found["diagnostics"][0]["code"], "RN033");
  EXPECT_TRUE(found["checkpoints"].empty());
}

TEST_F(CapstanRun, AFullDiskLeavesThePreviousCheckpoint) {
  plan::ModelSpec spec = llama(6);
  spec.dims.hidden = 128;  // so that a checkpoint is larger than the plan
  const std::string plan = plan_file(spec);
  train(plan, "run", {"--steps", "3"});
  const std::string before = read_whole(checkpoint("run", 3));
  // Files may grow to half a checkpoint: plan, metrics and report fit, the checkpoint does not.
  const ProcessResult result = run(
      {plan, "--output", folder.file("run"), "--resume", folder.file("run"), "--quiet"}, before.size() / 2);
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_NE(result.err.find("error[RN040]"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("File too large"), std::string::npos) << result.err;
  EXPECT_EQ(read_whole(checkpoint("run", 3)), before);
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.file("run") + "/checkpoints"))
    files += entry.is_regular_file();
  EXPECT_EQ(files, 1u);  // no temporary is left
  train(plan, "run", {"--resume", folder.file("run")});
  EXPECT_EQ(curve("run").size(), 6u);
}

TEST_F(CapstanRun, RefusesBadPlansAndDataBeforeAnythingIsMade) {
  const auto refusal = [&](const std::vector<std::string>& arguments, const char* code) {
    std::vector<std::string> all = arguments;
    all.insert(all.end(), {"--output", folder.file("none")});
    const ProcessResult result = run(all);
    EXPECT_EQ(result.exit_code, 4) << result.err;
    EXPECT_NE(result.err.find(std::string("error[") + code + "]"), std::string::npos) << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '['), 1) << "one diagnostic: " << result.err;
    EXPECT_FALSE(std::filesystem::exists(folder.file("none")));
  };
  const std::string good = plan_file(llama(2)), text = read_whole(good);
  write_whole(folder.file("cut.json"), text.substr(0, text.size() / 2));
  write_whole(folder.file("edited.json"), std::string(text).replace(text.find("0.1"), 3, "0.2"));
  write_whole(folder.file("version.json"),
              std::string(text).replace(text.find("\"format_version\": 1"), 19, "\"format_version\": 9"));
  write_whole(folder.file("binary.json"), std::string("\x7f"
                                                      "ELF\0\0\xff",
                                                      7));
  refusal({folder.file("cut.json")}, "RN002");
  refusal({folder.file("edited.json")}, "RN004");
  refusal({folder.file("version.json")}, "RN003");
  refusal({folder.file("binary.json")}, "RN002");
  refusal({folder.file("missing.json")}, "RN001");
  // More memory than any machine has: the arena alone says so.
  plan::Plan large = plan::make_tiny_plan();
  large.memory.arena = std::uint64_t{1} << 49;
  write_whole(folder.file("large.json"), plan::write_json(large));
  refusal({folder.file("large.json")}, "RN020");
  plan::ModelSpec spec = llama(2);
  const auto with_data = [&](const std::string& kind, const std::string& path) {
    spec.data = {kind, path, 1};
    return plan_file(spec, "data.json");
  };
  refusal({with_data("text", folder.file("missing.txt"))}, "RN010");
  refusal({with_data("text", folder.path())}, "RN010");
  write_whole(folder.file("empty.txt"), "");
  refusal({with_data("text", folder.file("empty.txt"))}, "RN011");
  write_whole(folder.file("short.txt"), "\x01\x02\x03");
  refusal({with_data("text", folder.file("short.txt"))}, "RN011");
  write_whole(folder.file("letters.txt"), std::string(100, 'z'));  // the vocabulary has 31 tokens
  refusal({with_data("text", folder.file("letters.txt"))}, "RN012");
  refusal({with_data("none", "")}, "RN010");
  refusal({with_data("megatron_indexed", folder.file("short.txt"))}, "RN010");
  refusal({with_data("token_shards", folder.file("short.txt"))}, "RN010");
}

TEST_F(CapstanRun, KeepsEarlierRuns) {
  const std::string plan = plan_file(llama(2));
  train(plan, "run");
  EXPECT_EQ(read_whole(folder.file("run") + "/plan.json"), read_whole(plan));
  const ProcessResult again = run({plan, "--output", folder.file("run")});
  EXPECT_EQ(again.exit_code, 4);
  EXPECT_NE(again.err.find("error[RN050]"), std::string::npos) << again.err;
  EXPECT_EQ(run({plan, "--output", folder.file("run"), "--overwrite", "--quiet"}).exit_code, 0);
  EXPECT_EQ(curve("run").size(), 2u);
  EXPECT_EQ(run({plan, "--output", "/proc/none"}).exit_code, 4);
}

TEST_F(CapstanRun, OverwritingLeavesNoCheckpointOfTheEarlierRun) {
  plan::ModelSpec spec = llama(6);
  spec.schedule.save_every = 2;
  const std::string plan = plan_file(spec);
  train(plan, "run");
  ASSERT_TRUE(std::filesystem::exists(checkpoint("run", 6)));
  train(plan, "run", {"--overwrite", "--steps", "3"});
  EXPECT_TRUE(std::filesystem::exists(checkpoint("run", 3)));
  EXPECT_FALSE(std::filesystem::exists(checkpoint("run", 6)));
  EXPECT_FALSE(std::filesystem::exists(folder.file("run") + "/run.lock"));
  // A run that is refused takes nothing away.
  EXPECT_EQ(run({plan, "--output", folder.file("run"), "--overwrite", "--resume", folder.file("nothing")})
                .exit_code,
            4);
  EXPECT_TRUE(std::filesystem::exists(checkpoint("run", 3)));
}

TEST(RunDirectories, ASecondRunInTheSameDirectoryIsRefused) {
  const Folder folder;
  const RunDirectoryWish wish{folder.file("run"), "a.toml", "", true};
  {
    const Outcome<RunDirectory> first = make_run_directory(wish);
    ASSERT_TRUE(first.ok());
    const Outcome<RunDirectory> second = make_run_directory(wish);
    ASSERT_FALSE(second.ok());
    EXPECT_EQ(second.error().code, "RN050");
    EXPECT_NE(second.error().message.find("another run writes"), std::string::npos) << second.error().message;
  }
  EXPECT_TRUE(make_run_directory(wish).ok());
}

TEST(RunDirectories, NamesHoldNothingThatATerminalObeys) {
  const Folder folder;
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  const auto made = [](const char* config) {
    const Outcome<RunDirectory> directory = make_run_directory({"", config, "", false});
    return directory.ok() ? directory.value().path() : directory.error().message;
  };
  EXPECT_EQ(made("a b.toml"), "runs/a b");
  EXPECT_EQ(made("x\x1b[31m\n.toml"), "runs/x_x1b[31m ");
  EXPECT_EQ(made(".."), "runs/run");
  std::filesystem::current_path(before);
}

TEST_F(CapstanRun, ResumingAFinishedRunSaysThatNothingIsLeft) {
  const std::string plan = plan_file(llama(3));
  train(plan, "run");
  const std::string before = read_whole(checkpoint("run", 3));
  const ProcessResult again =
      run({plan, "--output", folder.file("run"), "--resume", folder.file("run"), "--quiet"});
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_NE(again.err.find("hint[RN038]"), std::string::npos) << again.err;
  EXPECT_EQ(read_whole(checkpoint("run", 3)), before);
}

TEST_F(CapstanRun, SaysWhenThereIsNoGpu) {
  const ProcessResult result =
      run({plan_file(llama(2)), "--output", folder.file("run"), "--backend", "cuda", "--quiet"});
  if (result.exit_code == 0) GTEST_SKIP() << "this machine has a GPU";
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_NE(result.err.find("error[RN021]"), std::string::npos) << result.err;
}

TEST_F(CapstanRun, MeasuresThePlannedPeak) {
  plan::ModelSpec spec = llama(5);
  spec.dims = {2, 64, 4, 2, 16, 128, 200, 256, 64, 4, 2};
  spec.rotary_dim = 16;
  train(plan_file(plan::with_full_iteration(spec, true)), "run");
  const json memory = report("run")["memory"];
  EXPECT_GT(memory["planned_arena"].get<double>(), 1e6);
  EXPECT_NEAR(memory["measured_over_planned"].get<double>(), 1.0, 0.05);
}

TEST_F(CapstanRun, RefusesWrongUse) {
  const char* const wrong[][3] = {
      {"--steps", "x", ""},     {"--steps", "-1", ""},        {"--nonsense", "", ""},
      {"--backend", "tpu", ""}, {"--compare", "graphs", ""},  {"--rounds", "5", ""},
      {"--eager=yes", "", ""},  {"--inject", "fire", ""},     {"--inject", "fault:x", ""},
      {"--output", "", ""},     {"--verify-replay", "0", ""}, {"--steps-ahead", "9", ""}};
  for (const auto& arguments : wrong) {
    std::vector<std::string> all = {"plan.json", arguments[0]};
    if (arguments[1][0] != '\0') all.push_back(arguments[1]);
    const ProcessResult result = run(all);
    EXPECT_EQ(result.exit_code, 2) << arguments[0];
    EXPECT_NE(result.err.find("capstan-run: "), std::string::npos) << result.err;
  }
  EXPECT_EQ(run({}).exit_code, 2);
  EXPECT_EQ(run({"a.json", "b.json"}).exit_code, 2);
  EXPECT_EQ(run({"a.json", "--eager", "--compare", "eager"}).exit_code, 2);
  const ProcessResult steps = run({"a.json", "--compare", "eager", "--steps", "4"});
  EXPECT_EQ(steps.exit_code, 2);
  EXPECT_NE(steps.err.find("`--steps` belongs to a training run"), std::string::npos) << steps.err;
  const ProcessResult drills = run({"a.json", "--inject", "nan:1", "--inject", "nan:2"});
  EXPECT_EQ(drills.exit_code, 2);
  EXPECT_NE(drills.err.find("`--inject` is given twice"), std::string::npos) << drills.err;
  EXPECT_EQ(run({"--help"}).exit_code, 0);
  EXPECT_NE(run({"--help"}).out.find("--verify-replay"), std::string::npos);
}

}  // namespace
}  // namespace capstan::runtime::testing
