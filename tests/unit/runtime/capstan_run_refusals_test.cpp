// capstan-run as a program: damaged, missing and unfitting input, drills, faults and a full disk.
#include <nlohmann/json.hpp>

#include <cmath>

#include <gtest/gtest.h>

#include "runtime/report/run_directory.h"
#include "tests/support/json_schema_check.h"
#include "tests/unit/runtime/capstan_run_fixture.h"

namespace capstan::runtime::testing {
namespace {

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
      run({plan_file(spec), "--output", folder.file("run"), "--quiet", "--inject", "nan:8"});
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
      run({plan_file(gradient), "--output", folder.file("gradient"), "--quiet", "--inject", "nan:8"});
  EXPECT_EQ(by_gradient.exit_code, 4);
  EXPECT_NE(by_gradient.err.find("error[RN031] the gradient norm of step 8 is nan"), std::string::npos)
      << by_gradient.err;
  // That check stops the run: the loss, which is none of its business, is no step that goes on.
  EXPECT_EQ(by_gradient.err.find("RN037"), std::string::npos) << by_gradient.err;
  EXPECT_EQ(report("gradient")["diagnostics"].size(), 1u);
  // Without the check the run goes on; the optimizer changes nothing.
  spec.check_loss = false;
  const ProcessResult unchecked = run({plan_file(spec), "--output", folder.file("on"), "--inject", "nan:19"});
  EXPECT_EQ(unchecked.exit_code, 0) << unchecked.err;
  EXPECT_EQ(report("on")["steps"]["nonfinite"], 2);
  // But it says so, once, with the first such step.
  EXPECT_NE(unchecked.err.find("warning[RN037] the loss of step 19 is nan"), std::string::npos)
      << unchecked.err;
  EXPECT_EQ(unchecked.err.find("RN037"), unchecked.err.rfind("RN037"));
  EXPECT_EQ(report("on")["diagnostics"][0]["code"], "RN037");
  // A NaN has no sign worth showing; in JSON it is null, and the smallest loss is one of those that are.
  EXPECT_NE(unchecked.err.find("step 20/20  loss nan "), std::string::npos) << unchecked.err;
  EXPECT_NE(unchecked.out.find("-> nan\n"), std::string::npos) << unchecked.out;
  EXPECT_EQ((unchecked.err + unchecked.out).find("-nan"), std::string::npos) << unchecked.err;
  EXPECT_EQ(curve("on").size(), 20u);
  EXPECT_TRUE(report("on")["loss"]["last"].is_null());
  EXPECT_TRUE(report("on")["loss"]["minimum"].is_number());
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
  EXPECT_NE(refusal({"--inject", "nan:9"}).find("it does 1 to 8"), std::string::npos);
  EXPECT_NE(refusal({"--inject", "nan:5", "--steps", "4"}).find("it does 1 to 4"), std::string::npos);
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

TEST_F(CapstanRun, RefusesWrongUse) {
  const char* const wrong[][3] = {
      {"--steps", "x", ""},      {"--steps", "-1", ""},       {"--nonsense", "", ""},
      {"--backend", "tpu", ""},  {"--compare", "graphs", ""}, {"--rounds", "5", ""},
      {"--eager=yes", "", ""},   {"--inject", "fire", ""},    {"--inject", "fault:x", ""},
      {"--inject", "nan:0", ""}, {"--output", "", ""},        {"--verify-replay", "0", ""},
      {"--steps-ahead", "9", ""}};
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
