#include "compiler/plan/passes.h"

namespace capstan::plan {

const std::vector<Pass>& passes() {
  static const std::vector<Pass> list = {
      {"recompute", pass_recompute, {}},
      {"fuse", pass_fuse, {}},
      {"partition_segments", pass_partition_segments, {.segmented = true, .placed = false}},
      {"library_workspaces", pass_library_workspaces, {.segmented = true, .placed = false}},
      {"place_buffers", pass_place_buffers, {.segmented = true, .placed = true}},
  };
  return list;
}

PassResult run_passes(Plan& plan, const ModelSpec& spec, std::string_view last) {
  PassResult result;
  const auto find_fault = [&](const char* step, VerifyScope scope) {
    const std::string problem = verify(plan, scope);
    if (!problem.empty()) result.fault = std::string("after ") + step + ": " + problem;
    return !problem.empty();
  };
  if (find_fault("lowering", {}) || last == "lowering") return result;
  for (const Pass& pass : passes()) {
    pass.run(plan, spec, result.refusals);
    if (!result.refusals.empty() || find_fault(pass.name, pass.decided)) return result;
    if (pass.name == last) break;
  }
  return result;
}

}  // namespace capstan::plan
