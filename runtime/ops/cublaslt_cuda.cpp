#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "runtime/device/cuda_error.h"
#include "runtime/ops/cuda_cublaslt.h"

namespace capstan::runtime::cuda {
namespace {

/// The headers' major version names the library that fits them.
std::string library_name() {
  return "libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR);
}

Diagnostic missing_library(const std::string& reason) {
  return run_problem("RN025", "matrix products need `" + library_name() + "`: " + reason,
                     {{"library", Value(library_name())}, {"reason", Value(reason)}},
                     "install CUDA's libraries, let LD_LIBRARY_PATH lead to them, or name the file in "
                     "CAPSTAN_CUBLASLT; `--backend host` runs without");
}

}  // namespace

Status CublasLt::load(const std::vector<std::string>& files) {
  void* file = nullptr;
  std::string why;
  for (const std::string& name : files) {
    if (file != nullptr) break;
    file = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    const char* said = file == nullptr ? dlerror() : nullptr;
    if (said != nullptr && why.empty()) why = said;
  }
  if (file == nullptr) return missing_library(why);
  why.clear();
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(file, name));
    if (function == nullptr && why.empty()) why = std::string("the library has no `") + name + "`";
  };
  find(create, "cublasLtCreate");
  find(destroy, "cublasLtDestroy");
  find(get_version, "cublasLtGetVersion");
  find(status_name, "cublasLtGetStatusName");
  find(matmul, "cublasLtMatmul");
  find(desc_create, "cublasLtMatmulDescCreate");
  find(desc_destroy, "cublasLtMatmulDescDestroy");
  find(desc_set, "cublasLtMatmulDescSetAttribute");
  find(layout_create, "cublasLtMatrixLayoutCreate");
  find(layout_destroy, "cublasLtMatrixLayoutDestroy");
  find(preference_create, "cublasLtMatmulPreferenceCreate");
  find(preference_destroy, "cublasLtMatmulPreferenceDestroy");
  find(preference_set, "cublasLtMatmulPreferenceSetAttribute");
  find(heuristic, "cublasLtMatmulAlgoGetHeuristic");
  find(algo_check, "cublasLtMatmulAlgoCheck");
  return why.empty() ? Status() : Status(missing_library(why));
}

Outcome<const CublasLt*> CublasLt::open() {
  static CublasLt table;
  static const Status loaded = [] {
    if (const char* wanted = std::getenv("CAPSTAN_CUBLASLT"); wanted != nullptr && *wanted != '\0')
      return table.load({wanted});
    return table.load({library_name(), "/usr/local/cuda/lib64/" + library_name()});
  }();
  if (!loaded.ok()) return loaded.error();
  return &table;
}

}  // namespace capstan::runtime::cuda
