// The training loop: data in, steps issued, scalars read, checks made, metrics and checkpoints written. Stops
// at the last step, at a signal, or at the first failure. Fills the report as it goes, so that a failed run
// is reported, too. Where the device works on its own (DeviceInfo::asynchronous), the next step is issued
// before the scalars of the present one are read, except where something needs the state between the two: a
// checkpoint, the capture step, a verification, the end.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/data/sampler.h"
#include "runtime/device/backend.h"
#include "runtime/execute/executor.h"
#include "runtime/execute/run_options.h"
#include "runtime/execute/state.h"
#include "runtime/load/plan_reader.h"
#include "runtime/report/run_report.h"

namespace capstan::runtime {

/// Everything that a run holds while it works. References outlive it.
struct Run {
  const LoadedPlan& loaded;
  const RunOptions& options;
  Backend& backend;
  Executor& executor;
  const Sampler& sampler;
  const DataIdentity& data;
  std::string directory;
  RunReport& report;

  const plan::Plan& plan() const { return loaded.plan; }
};

/// Puts the batch of a step into the device's input buffer.
Status stage_batch(Run& run, std::int64_t step, std::vector<std::int32_t>& batch);

/// Trains from report.first_step to report.target_steps. After a signal it has saved and returns ok with
/// report.status "interrupted".
Status train(Run& run);

}  // namespace capstan::runtime
