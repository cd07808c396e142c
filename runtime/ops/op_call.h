// One op of a plan with its operands resolved to memory: what a host op gets. Shapes were checked by
// load/check_op.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "compiler/plan/plan.h"

namespace capstan::runtime {

class Workers;

struct Operand {
  std::byte* data = nullptr;
  plan::DType dtype = plan::DType::f32;
  std::int64_t elements = 0;
  std::int64_t columns = 1;  ///< last extent

  std::int64_t rows() const { return elements / columns; }
  template <typename T>
  T* as() const {
    return reinterpret_cast<T*>(data);
  }
};

struct OpCall {
  const plan::Op* op = nullptr;
  const plan::Dims* dims = nullptr;
  std::vector<Operand> inputs, outputs;  ///< as in the plan
  std::uint64_t seed = 0;                ///< key of every random number
  Workers* workers = nullptr;
};

/// Whether sums run in f64: some operand holds f64. Otherwise they run in f32.
inline bool computes_in_f64(const OpCall& call) {
  for (const auto* list : {&call.inputs, &call.outputs}) {
    for (const Operand& operand : *list) {
      if (operand.dtype == plan::DType::f64) return true;
    }
  }
  return false;
}

/// Calls `body` with a value of the type in which the op computes (float or double).
template <typename Body>
void in_compute_type(const OpCall& call, Body&& body) {
  if (computes_in_f64(call)) {
    body(double{});
  } else {
    body(float{});
  }
}

}  // namespace capstan::runtime
