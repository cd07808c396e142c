#include "runtime/load/plan_reader.h"

#include <gtest/gtest.h>

#include "compiler/plan/json.h"
#include "compiler/plan/lower/lower.h"
#include "compiler/plan/passes.h"
#include "grammar/source/sha256.h"
#include "tests/support/model_specs.h"
#include "tests/support/tiny_plan.h"

namespace capstan::runtime {
namespace {

std::string text_of(const plan::Plan& plan) {
  return plan::write_json(plan);
}

/// The text with one replacement and a digest that fits again, so that what is behind the digest is reached.
std::string edited(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  const std::size_t digits = text.find("\"digest\": \"") + 11;
  text.replace(digits, 64, std::string(64, '0'));
  text.replace(digits, 64, sha256(text));
  return text;
}

/// Code and message of the refusal.
std::pair<std::string, std::string> refusal(std::string_view text) {
  const Outcome<LoadedPlan> outcome = read_plan(text);
  if (outcome.ok()) return {"accepted", ""};
  return {outcome.error().code, outcome.error().message};
}

TEST(PlanReader, ReadsWhatTheCompilerWrites) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::mt19937_64 generator(seed);
    plan::ModelSpec spec = plan::random_spec(generator);
    plan::Plan plan = plan::lower(spec);
    const plan::PassResult passed = plan::run_passes(plan, spec);
    ASSERT_TRUE(passed.ok()) << passed.fault;
    const std::string text = text_of(plan);
    const Outcome<LoadedPlan> read = read_plan(text);
    ASSERT_TRUE(read.ok()) << "spec " << seed << ": " << read.error().message;
    EXPECT_EQ(text_of(read.value().plan), text) << seed;
    EXPECT_NE(text.find(read.value().digest), std::string::npos);
  }
}

TEST(PlanReader, RefusesAnyEditedByte) {
  const std::string text = text_of(plan::make_tiny_plan());
  ASSERT_TRUE(read_plan(text).ok()) << refusal(text).second;
  for (std::size_t i = 0; i < text.size(); i += 37) {
    std::string damaged = text;
    damaged[i] = damaged[i] == '1' ? '2' : '1';
    EXPECT_NE(refusal(damaged).first, "accepted") << "byte " << i;
  }
}

TEST(PlanReader, RefusesEveryTruncation) {
  const std::string text = text_of(plan::make_tiny_plan());
  for (std::size_t size = 0; size + 2 < text.size(); size += 101) {
    EXPECT_EQ(refusal(std::string_view(text).substr(0, size)).first, "RN002") << size;
  }
  EXPECT_EQ(refusal(std::string_view(text).substr(0, text.size() - 1)).first,
            "RN004");  // only the last line break
}

TEST(PlanReader, NamesTheVersionBeforeAnythingElse) {
  const std::string text = text_of(plan::make_tiny_plan());
  const auto [code, message] =
      refusal(edited(text, "\"format_version\": 1", "\"format_version\": 2, \"new\": 1"));
  EXPECT_EQ(code, "RN003");
  EXPECT_EQ(message, "the plan has format version 2, this runtime reads version 1");
}

TEST(PlanReader, RefusesWhatIsNoPlan) {
  EXPECT_EQ(refusal("").first, "RN002");
  EXPECT_EQ(refusal("[1, 2]").first, "RN002");
  EXPECT_EQ(refusal(std::string_view("\0\x01\xff\xfe", 4)).first, "RN002");
  EXPECT_EQ(refusal(std::string(100000, '[')).first, "RN002");
  EXPECT_EQ(refusal("{}").first, "RN005");
  EXPECT_EQ(load_plan("/nonexistent/plan.json").error().code, "RN001");
  EXPECT_EQ(load_plan("/").error().code, "RN001");
}

struct Edit {
  const char* from;
  const char* to;
  const char* code;
  const char* part_of_message;
};

TEST(PlanReader, ChecksFieldsBuffersOpsAndOrder) {
  const std::string text = text_of(plan::make_tiny_plan());
  const Edit edits[] = {
      {"\"seq_length\": 4", "\"seq_length\": 0", "RN005", "`dims.seq_length` of the plan is 0"},
      {"\"seq_length\": 4", "\"seq_length\": 4.5", "RN005", "must be an integer"},
      {"\"micro_batch\": 2", "\"micro_batch\": -9223372036854775808", "RN005", "dims.micro_batch"},
      {"\"seed\": 1234", "\"seed\": -1", "RN005", "must not be negative"},
      {"\"backend\": \"host\"", "\"backend\": \"tpu\"", "RN005", "must be one of `auto`, `host`, `cuda`"},
      {"\"dtype\": \"i64\"", "\"dtype\": \"i65\"", "RN005", "buffers[1].dtype"},
      {"\"shape\": [2, 2, 5]", "\"shape\": []", "RN005", "is empty"},
      {"\"shape\": [2, 2, 5]", "\"shape\": [1099511627776, 1099511627776, 1099511627776]", "RN005", "larger"},
      {"\"shape\": [2, 2, 5]", "\"shape\": [2, 2, 6]", "RN007", "load_micro_batch"},
      {"\"offset\": 0}", "\"offset\": 1}", "RN005", "multiple of 256"},
      {"\"offset\": 0}", "\"offset\": 1125899906842368}", "RN005", "beyond the arena"},
      {"\"offset\": 256}", "\"offset\": 0}", "RN006", "share bytes"},
      {"\"name\": \"step\"", "\"name\": \"loss\"", "RN006", "two buffers have the name `loss`"},
      {"\"name\": \"loss\"", "\"name\": \"lost\"", "RN008", "no buffer `loss`"},
      {"\"kind\": \"dropout\"", "\"kind\": \"drop\"", "RN005", "must be one of"},
      {"\"inputs\": [], \"outputs\": [", "\"inputs\": [], \"outputs\": [9999, ", "RN005", "buffers"},
      {"\"p\": 0.25", "\"p\": 1.0", "RN007", "attribute `p` is 1"},
      {"\"p\": 0.25", "\"p\": 0", "RN007", "floating-point"},
      {"\"p\": 0.25, ", "", "RN007", "lacks the attribute `p`"},
      {"\"transpose_b\": true", "\"transpose_b\": 1", "RN007", "must be a boolean"},
      {"\"k\": 8", "\"k\": 9", "RN007", "elements, needs"},
      {"\"k\": 8", "\"k\": 1099511627776", "RN007", "elements, needs"},
      {"\"stage\": \"step_begin\"", "\"stage\": \"step_end\"", "RN008", "stage"},
      {"\"first_op\": 0", "\"first_op\": 1", "RN008", "segment 0"},
      {"\"teardown\": [\"graphs\"", "\"teardown\": [\"arena\"", "RN008", "twice"},
      {"\"teardown\": [\"graphs\"", "\"teardown\": [\"rm -rf\"", "RN005", "teardown[0]"},
      {"\"fatal\": true", "\"fatal\": true, \"extra\": 1", "RN005", "which the format does not know"},
      {"\"layers\": 1,", "\"layers\": 0,", "RN005",
       "`dims.layers` of the plan is 0, must be between 1 and 10000"},
      {"\"layers\": 1,", "\"layers\": 10000000,", "RN005", "`dims.layers` of the plan is 10000000"},
      {"\"hidden\": 8", "\"hidden\": 0", "RN005", "`dims.hidden` of the plan is 0"},
      {"\"hidden\": 8", "\"hidden\": 1048577", "RN005", "`dims.hidden` of the plan is 1048577"},
      {"\"heads\": 1", "\"heads\": 0", "RN005", "`dims.heads` of the plan is 0"},
      {"\"heads\": 1, \"kv_heads\": 1", "\"heads\": 3, \"kv_heads\": 2", "RN005", "does not divide 3 heads"},
      {"\"kv_heads\": 1", "\"kv_heads\": 2", "RN005", "`dims.kv_heads` of the plan is 2"},
      {"\"head_dim\": 8", "\"head_dim\": 0", "RN005", "`dims.head_dim` of the plan is 0"},
      {"\"head_dim\": 8", "\"head_dim\": 1048577", "RN005", "`dims.head_dim` of the plan is 1048577"},
      {"\"ffn_hidden\": 8", "\"ffn_hidden\": 0", "RN005", "`dims.ffn_hidden` of the plan is 0"},
      {"\"padded_vocab\": 16", "\"padded_vocab\": 15", "RN005", "must be between 16 and"},
      {"\"seq_length\": 4", "\"seq_length\": 4194305", "RN005", "`dims.seq_length` of the plan is 4194305"},
      {"\"layer\": 0", "\"layer\": 1", "RN005", "must be between -1 and 0"},
      {"\"graph_impl\": \"transformer_engine\"", "\"graph_impl\": \"cuda\"", "RN005",
       "`schedule.graph_impl` of the plan is `cuda`, must be one of `none`, `local`"},
      {"\"parameters\": 0", "\"parameters\": 35184372088832", "RN005",
       "`memory.parameters` of the plan is 35184372088832"},
      {"\"workspaces_peak\": 0", "\"workspaces_peak\": 35184372088832", "RN005",
       "`memory.workspaces_peak` of the plan is"},
      {"\"model_flops_per_step\": 18432", "\"model_flops_per_step\": -18432", "RN005",
       "`model_flops_per_step` of the plan is -18432"},
      {"\"model_flops_per_step\": 18432.0", "\"model_flops_per_step\": 1e300", "RN005",
       "`model_flops_per_step` of the plan is 1e+300"},
      {"\"config_name\": \"tiny.toml\",", "", "RN005", "lacks the field `config_name`"},
  };
  for (const Edit& edit : edits) {
    const auto [code, message] = refusal(edited(text, edit.from, edit.to));
    EXPECT_EQ(code, edit.code) << edit.from << " -> " << edit.to << ": " << message;
    EXPECT_NE(message.find(edit.part_of_message), std::string::npos) << edit.to << ": " << message;
  }
}

TEST(PlanReader, WhatStandsSideBySideInTheArenaFitsIt) {
  plan::Plan plan = plan::make_tiny_plan();
  plan.memory.parameters = plan.memory.arena / 2;
  plan.memory.inputs_and_scalars = plan.memory.arena - plan.memory.parameters;
  EXPECT_EQ(refusal(text_of(plan)).first, "accepted") << refusal(text_of(plan)).second;
  plan.memory.masters = 1;
  const auto [code, message] = refusal(text_of(plan));
  EXPECT_EQ(code, "RN005");
  EXPECT_NE(message.find("`memory.inputs_and_scalars`"), std::string::npos) << message;
}

TEST(PlanReader, AllowsOneByteRangeForTheBuffersOfAnInPlaceOpOnly) {
  plan::Plan plan = plan::make_tiny_plan();
  const auto id = [&](const char* name) { return plan.find_buffer(name)->id; };
  plan.buffers[id("dropped")].offset = plan.buffers[id("mixed")].offset;  // dropout: x -> y
  EXPECT_EQ(refusal(text_of(plan)).first, "accepted") << refusal(text_of(plan)).second;
  plan.buffers[id("mixed.grad")].offset = plan.buffers[id("embedded")].offset;  // a matrix product reads both
  EXPECT_EQ(refusal(text_of(plan)).first, "RN007");
}

}  // namespace
}  // namespace capstan::runtime
