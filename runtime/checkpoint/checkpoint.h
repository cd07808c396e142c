// The state of a training run as a safetensors file: parameters, masters, moments and the device scalars
// (step, random counter), with what the run's further course depends on in the metadata. A run resumed from
// it computes the bits that the uninterrupted run would have.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "runtime/data/data_identity.h"
#include "runtime/device/backend.h"
#include "runtime/load/plan_reader.h"

namespace capstan::runtime {

/// What decides the bits of a run, by name: seed, dims, data, dtypes and shapes of the state, optimizer and
/// schedule attributes, dropout. Capture, recompute and saving are not part of it: they change no bit.
std::map<std::string, std::string> trajectory(const plan::Plan& plan, const DataIdentity& data);

/// "DIR/step-00000012.safetensors"
std::string checkpoint_path(const std::string& directory, std::uint64_t step);

/// Downloads and writes the state after `step` steps. RN040.
Status save_checkpoint(const std::string& path, const LoadedPlan& plan, const DataIdentity& data,
                       Backend& backend, std::uint64_t step);

/// The checkpoint that `--resume` means: the file itself, or in a directory (or its `checkpoints` folder) the
/// one of the highest step. RN041.
Outcome<std::string> find_checkpoint(const std::string& file_or_directory);

struct Resumed {
  std::uint64_t step = 0;
  std::string path;
};
/// Checks the file against the plan without touching a device: RN041 unreadable, RN042 names what differs.
Outcome<Resumed> check_checkpoint(const std::string& path, const LoadedPlan& plan, const DataIdentity& data);
/// Uploads the state. The file is checked again.
Outcome<Resumed> load_checkpoint(const std::string& path, const LoadedPlan& plan, const DataIdentity& data,
                                 Backend& backend);

}  // namespace capstan::runtime
