// The functions of cuBLASLt that matrix products need, found in the library at run time, so that the program
// starts on machines without it. The build needs the library's headers only. Functions are named as the
// library's without the prefix.
#pragma once

#include <cublasLt.h>

#include <string>
#include <vector>

#include "runtime/device/outcome.h"

namespace capstan::runtime::cuda {

struct CublasLt {
  decltype(&cublasLtCreate) create = nullptr;
  decltype(&cublasLtDestroy) destroy = nullptr;
  decltype(&cublasLtGetVersion) get_version = nullptr;
  decltype(&cublasLtGetStatusName) status_name = nullptr;
  decltype(&cublasLtMatmul) matmul = nullptr;
  decltype(&cublasLtMatmulDescCreate) desc_create = nullptr;
  decltype(&cublasLtMatmulDescDestroy) desc_destroy = nullptr;
  decltype(&cublasLtMatmulDescSetAttribute) desc_set = nullptr;
  decltype(&cublasLtMatrixLayoutCreate) layout_create = nullptr;
  decltype(&cublasLtMatrixLayoutDestroy) layout_destroy = nullptr;
  decltype(&cublasLtMatmulPreferenceCreate) preference_create = nullptr;
  decltype(&cublasLtMatmulPreferenceDestroy) preference_destroy = nullptr;
  decltype(&cublasLtMatmulPreferenceSetAttribute) preference_set = nullptr;
  decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic = nullptr;
  decltype(&cublasLtMatmulAlgoCheck) algo_check = nullptr;

  /// The process's one table; it stays loaded, because graphs may name its kernels to the end. RN025 when the
  /// library is missing or lacks a function. CAPSTAN_CUBLASLT names the library's file.
  static Outcome<const CublasLt*> open();
  /// Fills the functions from the first of these files that can be opened. RN025.
  Status load(const std::vector<std::string>& files);
};

}  // namespace capstan::runtime::cuda
