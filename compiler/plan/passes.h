// The passes that turn a lowered plan into a finished one, in order. Each is one file and changes the plan
// only; the verifier runs before the first and after each.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/plan/model_spec.h"
#include "compiler/plan/plan.h"
#include "compiler/plan/verify.h"

namespace capstan::plan {

/// A part of the config that a pass could not honour: the user must change it, so the plan is not made.
struct Refusal {
  std::string key;      ///< the config key to blame; labels stand at its place
  std::string message;  ///< the situation, with the op that is in the way
  std::string help;     ///< the way out
};

/// Forward ops that recompute repeats in the backward pass: clones them before their first backward reader.
void pass_recompute(Plan& plan, const ModelSpec& spec, std::vector<Refusal>& refusals);
/// Plans for CUDA: joins a product and the point-wise op after it (residual add, GELU and its backward pass)
/// into one op, which saves a pass over memory.
void pass_fuse(Plan& plan, const ModelSpec& spec, std::vector<Refusal>& refusals);
/// Cuts the op list into eager and captured segments.
void pass_partition_segments(Plan& plan, const ModelSpec& spec, std::vector<Refusal>& refusals);
/// Plans for CUDA: gives matrix products and attention the workspaces that the device's libraries use, so
/// that the plan's memory is the run's memory.
void pass_library_workspaces(Plan& plan, const ModelSpec& spec, std::vector<Refusal>& refusals);
/// Gives every buffer its offset; fills Plan::memory.
void pass_place_buffers(Plan& plan, const ModelSpec& spec, std::vector<Refusal>& refusals);

struct Pass {
  const char* name;  ///< the function's name without "pass_"
  void (*run)(Plan&, const ModelSpec&, std::vector<Refusal>&);
  VerifyScope decided;  ///< what the verifier may check from here on
};
const std::vector<Pass>& passes();

struct PassResult {
  std::vector<Refusal> refusals;
  std::string fault;  ///< a verifier finding, with the pass that made it; a fault of the compiler
  bool ok() const { return refusals.empty() && fault.empty(); }
};

/// Runs the passes on a lowered plan, up to and including `last` (all when empty). Stops at the first refusal
/// or fault.
PassResult run_passes(Plan& plan, const ModelSpec& spec, std::string_view last = {});

}  // namespace capstan::plan
