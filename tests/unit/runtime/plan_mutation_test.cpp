// Every field of a plan set to what nobody would write, under a digest that fits: the reader refuses it with
// one diagnostic, or what it accepts runs on the host without a fault. Under the sanitizers this is the test
// that nothing behind the reader trusts a number.
#include <cstring>
#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "compiler/plan/json.h"
#include "compiler/plan/lower/lower.h"
#include "compiler/plan/passes.h"
#include "grammar/source/sha256.h"
#include "runtime/device/host_backend.h"
#include "runtime/execute/executor.h"
#include "runtime/load/plan_reader.h"
#include "tests/support/model_specs.h"
#include "tests/support/tiny_plan.h"

namespace capstan::runtime {
namespace {

using nlohmann::json;

/// What stands for text that a JSON library would not write: `NaN`, `1e999`.
constexpr const char* kRawMark = "@raw@";

std::string signed_text(json document) {
  document["digest"] = std::string(64, '0');
  std::string text = document.dump();
  for (std::size_t at; (at = text.find('"' + std::string(kRawMark))) != std::string::npos;) {
    const std::size_t end = text.find('"', at + 1);
    text.replace(at, end - at + 1,
                 text.substr(at + 1 + std::strlen(kRawMark), end - at - 1 - std::strlen(kRawMark)));
  }
  const std::size_t digits = text.find("\"digest\":\"") + 10;
  text.replace(digits, 64, sha256(text));
  return text;
}

/// Two steps, eagerly and captured, on a batch of valid tokens.
void run_on_host(const plan::Plan& plan) {
  const std::unique_ptr<Backend> backend = make_host_backend(1);
  ASSERT_TRUE(backend->prepare(plan).ok());
  ASSERT_TRUE(backend->initialize().ok());
  const plan::Buffer& batch = plan.buffer(plan::names::kBatchTokens);
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(batch.elements()));
  for (std::size_t i = 0; i < tokens.size(); ++i)
    tokens[i] = static_cast<std::int32_t>(i % static_cast<std::size_t>(plan.dims.vocab));
  Executor executor(plan, *backend);
  for (int step = 0; step < 2; ++step) {
    ASSERT_TRUE(backend->upload(batch.id, std::as_bytes(std::span(tokens))).ok());
    // A plan may ask for what has no finite outcome (a gradient clipped to 1e308); it may not fault.
    const Status ran = step == 0 ? executor.run_eager() : executor.run_captured();
    ASSERT_TRUE(ran.ok()) << ran.error().message;
    ASSERT_TRUE(backend->synchronize().ok());
  }
}

struct Tally {
  std::size_t refused = 0, accepted = 0;
};

void judge(const json& document, const std::string& what, Tally& tally) {
  SCOPED_TRACE(what);
  const Outcome<LoadedPlan> outcome = read_plan(signed_text(document));
  if (!outcome.ok()) {
    ++tally.refused;
    const Diagnostic& error = outcome.error();
    EXPECT_EQ(error.code.substr(0, 3), "RN0");
    EXPECT_NE(error.code, "RN004") << "the digest was made to fit";
    EXPECT_FALSE(error.message.empty());
    EXPECT_LT(error.message.size(), 1000u) << error.message;
    return;
  }
  ++tally.accepted;
  // Larger arenas are the device's business: it says when there is not enough memory.
  if (outcome.value().plan.memory.arena <= (std::uint64_t{16} << 20)) run_on_host(outcome.value().plan);
}

const std::vector<json>& odd_values() {
  static const std::vector<json> values = {0,
                                           1,
                                           -1,
                                           2147483648,
                                           INT64_MAX,
                                           INT64_MIN,
                                           UINT64_MAX,
                                           1e308,
                                           0.5,
                                           std::string(kRawMark) + "NaN",
                                           std::string(kRawMark) + "1e999",
                                           "",
                                           std::string(3000, 'a'),
                                           std::string(1, '\0'),
                                           nullptr,
                                           true,
                                           json::array(),
                                           json::object(),
                                           json::array({4294967295, -1})};
  return values;
}

/// Visits every value of the document; of arrays of many like elements, one of each kind.
void visit(json& document, json& node, const std::string& path, Tally& tally) {
  const auto replace = [&](json& place, const std::string& where) {
    const json kept = place;
    for (const json& odd : odd_values()) {
      if (odd == kept) continue;
      place = odd;
      judge(document, where + " = " + odd.dump(-1, ' ', false, json::error_handler_t::replace).substr(0, 60),
            tally);
    }
    place = kept;
  };
  if (path != "") replace(node, path);
  if (node.is_object()) {
    std::vector<std::string> names;
    for (const auto& [name, value] : node.items()) names.push_back(name);
    for (const std::string& name : names) {
      if (name == "digest" || name == "format_version") continue;
      const json kept = node[name];
      node.erase(name);
      judge(document, path + " without " + name, tally);
      node[name] = kept;
      visit(document, node[name], path + "." + name, tally);
    }
  } else if (node.is_array()) {
    std::set<std::string> seen;
    for (std::size_t i = 0; i < node.size(); ++i) {
      const json& element = node[i];
      std::string kind = element.is_object() && element.contains("kind") ? element["kind"].dump()
                         : element.is_object() && element.contains("role")
                             ? element["role"].dump() + element["dtype"].dump()
                             : "";
      if (!seen.insert(kind).second) continue;
      visit(document, node[i], path + "[" + std::to_string(i) + "]", tally);
      const json kept = node;
      node.erase(i);
      judge(document, path + " without " + std::to_string(i), tally);
      node = kept;
      node.push_back(kept[i]);
      judge(document, path + " twice " + std::to_string(i), tally);
      node = kept;
    }
  }
}

TEST(PlanMutation, EveryFieldOfATinyPlan) {
  json document = json::parse(plan::write_json(plan::make_tiny_plan()));
  Tally tally;
  visit(document, document, "", tally);
  // Names, reasons, seeds and steps may be anything; most of the rest may not.
  EXPECT_GT(tally.refused, 10 * tally.accepted);
  EXPECT_GT(tally.accepted, 100u);
}

TEST(PlanMutation, EveryKindOfOpOfAModel) {
  plan::ModelSpec spec = plan::small_llama();
  spec.dims.layers = 1;
  plan::Plan made = plan::lower(spec);
  ASSERT_TRUE(plan::run_passes(made, spec).ok());
  json document = json::parse(plan::write_json(made));
  Tally tally;
  std::set<std::string> seen;
  for (json& op : document["ops"]) {
    if (!seen.insert(op["kind"].get<std::string>()).second) continue;
    for (const char* part : {"inputs", "outputs", "attributes"})
      visit(document, op[part], op["kind"].get<std::string>() + " " + part, tally);
  }
  EXPECT_GT(tally.refused, 1000u);
}

TEST(PlanMutation, StepsOfMillionsOfIssuesAreRefused) {
  plan::ModelSpec spec = plan::small_llama();
  spec.dims.micro_batches = plan::kMostBatch;
  plan::Plan made = plan::lower(spec);
  ASSERT_TRUE(plan::run_passes(made, spec).ok());
  ASSERT_TRUE(read_plan(plan::write_json(made)).ok());  // eager: one segment for all of a micro-batch
  // A segment for each op: what the runtime lists for a step is some hundred millions.
  plan::Plan split = made;
  split.segments.clear();
  for (const plan::Op& op : split.ops) {
    plan::Segment segment;
    segment.id = op.id;
    segment.first_op = op.id;
    segment.end_op = op.id + 1;
    split.segments.push_back(segment);
  }
  Outcome<LoadedPlan> outcome = read_plan(plan::write_json(split));
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().code, "RN008");
  EXPECT_NE(outcome.error().message.find("for each of 1048576 micro-batches, more than a step can issue"),
            std::string::npos)
      << outcome.error().message;
  // One graph of everything.
  plan::Plan unrolled = made;
  unrolled.segments.resize(1);
  unrolled.segments[0].end_op = static_cast<plan::OpId>(unrolled.ops.size());
  unrolled.segments[0].mode = plan::SegmentMode::graph;
  unrolled.segments[0].whole_iteration = true;
  outcome = read_plan(plan::write_json(unrolled));
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().code, "RN008");
  EXPECT_NE(outcome.error().message.find("segment 0 of the plan unrolls"), std::string::npos)
      << outcome.error().message;
}

}  // namespace
}  // namespace capstan::runtime
