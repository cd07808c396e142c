// The contents of every persistent buffer, held on the host: to run one step twice from the same state, and
// to compare what two runs left behind.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "runtime/device/backend.h"

namespace capstan::runtime {

class StateSnapshot {
 public:
  static Outcome<StateSnapshot> take(const plan::Plan& plan, Backend& backend);
  Status restore(Backend& backend) const;

  /// The first buffer that is not equal, by id; nothing when all are.
  std::optional<plan::BufferId> find_difference(const StateSnapshot& other) const;

 private:
  struct Contents {
    plan::BufferId buffer;
    std::vector<std::byte> bytes;
  };
  std::vector<Contents> contents_;
};

/// The scalars that the host reads after a step.
struct StepScalars {
  double loss = 0, learning_rate = 0, grad_norm = 0;
  std::int32_t nonfinite = 0;
  std::int64_t step = 0;  ///< steps done
};

/// Reads them without holding up what is issued after the step.
class ScalarReader {
 public:
  /// Both must outlive the reader.
  ScalarReader(const plan::Plan& plan, Backend& backend);
  /// Those of the step that was issued last; `slot` is one of Backend::kReadSlots.
  Status begin(std::size_t slot);
  Outcome<StepScalars> await(std::size_t slot);

 private:
  static constexpr std::size_t kScalars = 5;
  Backend& backend_;
  std::array<plan::BufferId, kScalars> buffers_{};
  std::array<plan::DType, kScalars> dtypes_{};
  std::size_t bytes_ = 0;
};

/// Waits for the step that was issued last. No read may be under way.
Outcome<StepScalars> read_scalars(const plan::Plan& plan, Backend& backend);

}  // namespace capstan::runtime
