#include "compiler/plan/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "grammar/source/sha256.h"
#include "tests/support/tiny_plan.h"

namespace capstan::plan {
namespace {

TEST(PlanJson, IsJsonWithTheKeysOfTheStructsInOrder) {
  const std::string text = write_json(make_tiny_plan());
  const auto parsed = nlohmann::ordered_json::parse(text);
  std::vector<std::string> keys;
  for (const auto& entry : parsed.items()) keys.push_back(entry.key());
  EXPECT_EQ(keys, (std::vector<std::string>{"format_version", "digest", "producer", "config_name",
                                            "config_digest", "backend", "deterministic", "dims", "schedule",
                                            "data", "seed", "buffers", "ops", "segments", "checks",
                                            "teardown", "memory", "model_flops_per_step"}));
  EXPECT_EQ(text.back(), '\n');
}

TEST(PlanJson, KeepsEveryValue) {
  const Plan plan = make_tiny_plan();
  const auto parsed = nlohmann::json::parse(write_json(plan));
  ASSERT_EQ(parsed["buffers"].size(), plan.buffers.size());
  ASSERT_EQ(parsed["ops"].size(), plan.ops.size());
  for (const Buffer& buffer : plan.buffers) {
    const auto& written = parsed["buffers"][buffer.id];
    EXPECT_EQ(written["name"], buffer.name);
    EXPECT_EQ(written["shape"].get<std::vector<std::int64_t>>(), buffer.shape);
    EXPECT_EQ(written["offset"].get<std::uint64_t>(), buffer.offset);
  }
  for (const Op& op : plan.ops) {
    const auto& written = parsed["ops"][op.id];
    EXPECT_EQ(written["kind"], op_kind_name(op.kind));
    EXPECT_EQ(written["inputs"].get<std::vector<BufferId>>(), op.inputs);
    EXPECT_EQ(written["outputs"].get<std::vector<BufferId>>(), op.outputs);
    EXPECT_EQ(written["attributes"].size(), op.attributes.size());
  }
}

TEST(PlanJson, TellsIntegersFromFloatingPoint) {
  const auto parsed = nlohmann::json::parse(write_json(make_tiny_plan()));
  for (const auto& op : parsed["ops"]) {
    if (op["kind"] == "learning_rate") {
      EXPECT_TRUE(op["attributes"]["warmup_steps"].is_number_float());  // 0.0
    }
    if (op["kind"] == "gemm") {
      EXPECT_TRUE(op["attributes"]["m"].is_number_integer());
    }
  }
}

TEST(PlanJson, DoublesReadBackExactly) {
  Plan plan = make_tiny_plan();
  for (const double value :
       {0.1, 1.0 / 3.0, 1e-300, 5e-324, 1.7976931348623157e308, -0.0, 123456789012345680.0}) {
    plan.model_flops_per_step = value;
    const double back = nlohmann::json::parse(write_json(plan))["model_flops_per_step"].get<double>();
    EXPECT_EQ(back, value);
    EXPECT_EQ(std::signbit(back), std::signbit(value));
  }
}

TEST(PlanJson, RefusesNumbersThatJsonCannotHold) {
  Plan plan = make_tiny_plan();
  plan.model_flops_per_step = std::numeric_limits<double>::infinity();
  EXPECT_THROW(write_json(plan), std::invalid_argument);
}

TEST(PlanJson, EscapesNames) {
  Plan plan = make_tiny_plan();
  plan.config_name = "a\"b\\c\n\x01\xc3\xa4.toml";
  EXPECT_EQ(nlohmann::json::parse(write_json(plan))["config_name"], plan.config_name);
}

TEST(PlanJson, DigestIsOfTheTextWithTheDigestZeroed) {
  std::string text = write_json(make_tiny_plan());
  const std::string digest = nlohmann::json::parse(text)["digest"];
  ASSERT_EQ(digest.size(), 64u);
  text.replace(text.find(digest), 64, 64, '0');
  EXPECT_EQ(digest, sha256(text));
}

TEST(PlanJson, SamePlanSameBytes) {
  EXPECT_EQ(write_json(make_tiny_plan()), write_json(make_tiny_plan()));
}

}  // namespace
}  // namespace capstan::plan
