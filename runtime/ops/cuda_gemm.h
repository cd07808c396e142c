// Matrix products through cuBLASLt. A Gemm is prepared once (layouts, algorithm) and then issued without
// allocation or host work beyond the launch. Row-major d[m,n] = op(a) op(b) (+ bias) (+ c) is asked of the
// column-major library as its transpose. f32 means full f32 arithmetic, never tf32; bf16 operands accumulate
// in f32.
//
// Algorithms come from the library's heuristic, or from timing its candidates once on this device; measured
// choices are kept in a file, so that later runs on the same kind of device make the same choice and give the
// same bits.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/device/outcome.h"
#include "runtime/ops/cuda_cublaslt.h"
#include "runtime/ops/cuda_launch.h"

namespace capstan::runtime::cuda {

struct GemmProblem {
  std::int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  bool has_addend = false;  ///< d = ... + c
  enum class Epilogue : std::uint8_t { none, bias, gelu_aux_bias, dgelu } epilogue = Epilogue::none;
  Storage input = Storage::f32, output = Storage::f32, bias = Storage::f32;  ///< `input`: of both factors
  /// fp8 factors may differ; b's is `input` everywhere else. Both are then scaled by device scalars.
  Storage input_b = Storage::f32;
  bool fast_accumulation = false;  ///< fp8: sums may be kept in fewer bits
  bool is_fp8() const { return input == Storage::f8e4m3 || input == Storage::f8e5m2; }

  std::string key() const;  ///< text that names the problem, for the choice file
};

struct GemmOperands {
  const void* a = nullptr;
  const void* b = nullptr;
  const void* c = nullptr;  ///< the addend; may be d
  void* d = nullptr;
  const void* bias = nullptr;
  void* aux = nullptr;             ///< pre-activation: written by gelu_aux_bias, read by dgelu
  const float* scale_a = nullptr;  ///< fp8
  const float* scale_b = nullptr;
  void* workspace = nullptr;
  std::size_t workspace_bytes = 0;
};

/// Products that may run at the same time need workspaces of their own.
class GemmLibrary {
 public:
  ~GemmLibrary();
  GemmLibrary(const GemmLibrary&) = delete;
  GemmLibrary& operator=(const GemmLibrary&) = delete;

  /// `device_name` goes into the choice file. `tunes`: time candidates that the file does not know yet. When
  /// the plan is deterministic and the file cannot be kept, nothing is timed.
  static Outcome<std::unique_ptr<GemmLibrary>> open(const std::string& device_name, bool tunes,
                                                    bool deterministic);

  /// Layouts and algorithm for a problem; the same problem gives the same entry. `sample` are device buffers
  /// for timing (their contents are overwritten); it must stay valid during the call only.
  Outcome<int> prepare(cudaStream_t stream, const GemmProblem& problem, const GemmOperands& sample);
  /// Issues prepared product `entry`.
  Status run(cudaStream_t stream, int entry, const GemmOperands& operands) const;

  std::size_t version() const { return functions_->get_version(); }
  /// Writes new choices to the file (atomically); failure is silent, the choices then hold for this process.
  void save_choices();
  bool tunes() const { return tunes_; }

 private:
  GemmLibrary() = default;
  struct Entry;
  Status select(cudaStream_t stream, Entry& entry, const GemmOperands& sample);

  const CublasLt* functions_ = nullptr;
  cublasLtHandle_t handle_ = nullptr;
  std::string file_;    ///< empty: no file
  std::string prefix_;  ///< device and library version
  bool tunes_ = false;
  bool changed_ = false;
  std::map<std::string, std::array<std::uint64_t, 8>> choices_;
  std::vector<std::unique_ptr<Entry>> entries_;
  std::map<std::string, int> entry_of_;
};

}  // namespace capstan::runtime::cuda
