// capstan-run as a program: real plans trained on the host, stopped, resumed, compared.
#include <nlohmann/json.hpp>

#include <cmath>

#include <gtest/gtest.h>

#include "runtime/report/run_directory.h"
#include "tests/support/json_schema_check.h"
#include "tests/unit/runtime/capstan_run_fixture.h"

namespace capstan::runtime::testing {
namespace {

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

TEST_F(CapstanRun, MeasuresThePlannedPeak) {
  plan::ModelSpec spec = llama(5);
  spec.dims = {2, 64, 4, 2, 16, 128, 200, 256, 64, 4, 2};
  spec.rotary_dim = 16;
  train(plan_file(plan::with_full_iteration(spec, true)), "run");
  const json memory = report("run")["memory"];
  EXPECT_GT(memory["planned_arena"].get<double>(), 1e6);
  EXPECT_NEAR(memory["measured_over_planned"].get<double>(), 1.0, 0.05);
}

}  // namespace
}  // namespace capstan::runtime::testing
