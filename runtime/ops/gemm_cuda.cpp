#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "runtime/device/cuda_error.h"
#include "runtime/ops/cuda_gemm.h"

#include <unistd.h>

namespace capstan::runtime::cuda {
namespace {

constexpr int kCandidates = 16;
constexpr int kTimedRuns = 5;
/// A candidate replaces the heuristic's first choice only when it is clearly faster; ties keep the first.
constexpr float kClearlyFaster = 0.98F;

cudaDataType_t type_of(Storage storage) {
  switch (storage) {
    case Storage::bf16:
      return CUDA_R_16BF;
    case Storage::f8e4m3:
      return CUDA_R_8F_E4M3;
    case Storage::f8e5m2:
      return CUDA_R_8F_E5M2;
    case Storage::f32:
      break;
  }
  return CUDA_R_32F;
}

Status check_library(const CublasLt& library, cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return {};
  return device_failure(call, library.status_name(status));
}

std::string choice_file() {
  std::filesystem::path folder;
  if (const char* own = std::getenv("CAPSTAN_CACHE_DIR"); own != nullptr && *own != '\0') {
    folder = own;
  } else if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache != '\0') {
    folder = std::filesystem::path(cache) / "capstan";
  } else if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0') {
    folder = std::filesystem::path(home) / ".cache" / "capstan";
  } else {
    return {};
  }
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error || ::access(folder.c_str(), W_OK) != 0) return {};
  return (folder / "gemm-choices-v1.txt").string();
}

}  // namespace

std::string GemmProblem::key() const {
  std::ostringstream text;
  text << m << 'x' << n << 'x' << k << (transpose_a ? " T" : " N") << (transpose_b ? "T" : "N")
       << (has_addend ? " add" : "") << " e" << static_cast<int>(epilogue) << " t" << static_cast<int>(input)
       << static_cast<int>(output) << static_cast<int>(bias);
  if (is_fp8()) text << " fp8 " << static_cast<int>(input_b) << (fast_accumulation ? " fast" : "");
  return text.str();
}

struct GemmLibrary::Entry {
  const CublasLt& library;
  GemmProblem problem;
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr,
                         d = nullptr;  // as the column-major library sees them: b first
  cublasLtMatmulAlgo_t algorithm = {};

  Entry(const CublasLt& functions, const GemmProblem& wanted) : library(functions), problem(wanted) {}
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;
  ~Entry() {
    if (operation != nullptr) library.desc_destroy(operation);
    for (cublasLtMatrixLayout_t layout : {a, b, d}) {
      if (layout != nullptr) library.layout_destroy(layout);
    }
  }

  Status describe() {
    const GemmProblem& p = problem;
    // Scale and arithmetic are f32 in every case.
    if (Status s = check_library(library, library.desc_create(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F),
                                 "cublasLtMatmulDescCreate");
        !s.ok()) {
      return s;
    }
    // Row-major [r, c] is column-major [c, r] with leading dimension c. d^T = op(b)^T op(a)^T.
    const cublasOperation_t op_left = p.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasOperation_t op_right = p.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    if (Status s = set(CUBLASLT_MATMUL_DESC_TRANSA, op_left); !s.ok()) return s;
    if (Status s = set(CUBLASLT_MATMUL_DESC_TRANSB, op_right); !s.ok()) return s;
    if (p.epilogue != GemmProblem::Epilogue::none) {
      using Epilogue = GemmProblem::Epilogue;
      const cublasLtEpilogue_t epilogue = p.epilogue == Epilogue::bias ? CUBLASLT_EPILOGUE_BIAS
                                          : p.epilogue == Epilogue::gelu_aux_bias
                                              ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS
                                              : CUBLASLT_EPILOGUE_DGELU;
      if (Status s = set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue); !s.ok()) return s;
      if (p.epilogue != Epilogue::dgelu) {
        if (Status s = set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, static_cast<std::int32_t>(type_of(p.bias)));
            !s.ok()) {
          return s;
        }
      }
      if (p.epilogue != Epilogue::bias) {
        if (Status s = set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, p.n); !s.ok()) return s;
      }
    }
    if (p.is_fp8()) {
      if (Status s = set(CUBLASLT_MATMUL_DESC_FAST_ACCUM, static_cast<std::int8_t>(p.fast_accumulation));
          !s.ok()) {
        return s;
      }
    }
    const auto layout = [this](cublasLtMatrixLayout_t* out, Storage storage, std::int64_t rows,
                               std::int64_t columns) {
      return check_library(library,
                           library.layout_create(out, type_of(storage), static_cast<std::uint64_t>(columns),
                                                 static_cast<std::uint64_t>(rows), columns),
                           "cublasLtMatrixLayoutCreate");
    };
    const Storage of_b = p.is_fp8() ? p.input_b : p.input;
    if (Status s = p.transpose_b ? layout(&b, of_b, p.n, p.k) : layout(&b, of_b, p.k, p.n); !s.ok()) return s;
    if (Status s = p.transpose_a ? layout(&a, p.input, p.k, p.m) : layout(&a, p.input, p.m, p.k); !s.ok())
      return s;
    return layout(&d, p.output, p.m, p.n);
  }

  template <typename T>
  Status set(cublasLtMatmulDescAttributes_t attribute, const T& value) const {
    return check_library(library, library.desc_set(operation, attribute, &value, sizeof(value)),
                         "cublasLtMatmulDescSetAttribute");
  }

  // The pointers of scales and epilogues are part of the descriptor; they are set before each call, which is
  // host work only.
  Status point(const GemmOperands& operands) const {
    if (problem.is_fp8()) {
      // The library's first factor is b.
      if (Status s = set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, operands.scale_b); !s.ok()) return s;
      if (Status s = set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, operands.scale_a); !s.ok()) return s;
    }
    if (problem.epilogue == GemmProblem::Epilogue::none) return {};
    if (problem.epilogue != GemmProblem::Epilogue::dgelu) {
      if (Status s = set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, operands.bias); !s.ok()) return s;
    }
    if (problem.epilogue != GemmProblem::Epilogue::bias) {
      if (Status s = set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, operands.aux); !s.ok()) return s;
    }
    return {};
  }

  cublasStatus_t call(cublasLtHandle_t handle, cudaStream_t stream, const GemmOperands& operands,
                      const cublasLtMatmulAlgo_t& chosen) const {
    const float one = 1.0F;
    const float addend = problem.has_addend ? 1.0F : 0.0F;
    const void* c = problem.has_addend ? operands.c : operands.d;
    return library.matmul(handle, operation, &one, operands.b, b, operands.a, a, &addend, c, d, operands.d, d,
                          &chosen, operands.workspace, operands.workspace_bytes, stream);
  }
};

GemmLibrary::~GemmLibrary() {
  entries_.clear();
  if (handle_ != nullptr) functions_->destroy(handle_);
}

Outcome<std::unique_ptr<GemmLibrary>> GemmLibrary::open(const std::string& device_name, bool tunes,
                                                        bool deterministic) {
  const Outcome<const CublasLt*> functions = CublasLt::open();
  if (!functions.ok()) return functions.error();
  std::unique_ptr<GemmLibrary> library(new GemmLibrary);
  library->functions_ = functions.value();
  if (Status s = check_library(*library->functions_, library->functions_->create(&library->handle_),
                               "cublasLtCreate");
      !s.ok())
    return s.error();
  library->file_ = choice_file();
  library->tunes_ = tunes && !(deterministic && library->file_.empty());
  library->prefix_ = device_name + "|" + std::to_string(library->functions_->get_version()) + "|";
  if (!library->file_.empty()) {
    // Lines "key<TAB>eight hex words"; a line that does not parse is skipped, which costs a new measurement.
    std::ifstream in(library->file_);
    for (std::string line; std::getline(in, line);) {
      const std::size_t tab = line.find('\t');
      if (tab == std::string::npos) continue;
      std::istringstream words(line.substr(tab + 1));
      std::array<std::uint64_t, 8> choice = {};
      bool whole = true;
      for (std::uint64_t& word : choice) whole = whole && static_cast<bool>(words >> std::hex >> word);
      if (whole) library->choices_[line.substr(0, tab)] = choice;
    }
  }
  return library;
}

void GemmLibrary::save_choices() {
  if (!changed_ || file_.empty()) return;
  const std::string staged = file_ + "." + std::to_string(::getpid());
  std::error_code error;
  bool written = false;
  {
    std::ofstream out(staged, std::ios::trunc);
    for (const auto& [key, choice] : choices_) {
      out << key << '\t' << std::hex;
      for (std::size_t i = 0; i < choice.size(); ++i) out << (i == 0 ? "" : " ") << choice[i];
      out << std::dec << '\n';
    }
    out.close();
    written = !out.fail();
  }
  if (written) std::filesystem::rename(staged, file_, error);
  changed_ = !written || error;
  if (changed_) std::filesystem::remove(staged, error);
}

Outcome<int> GemmLibrary::prepare(cudaStream_t stream, const GemmProblem& problem,
                                  const GemmOperands& sample) {
  // An algorithm fits the workspace that it was chosen for.
  const std::string key = problem.key() + " " + std::to_string(sample.workspace_bytes);
  if (const auto known = entry_of_.find(key); known != entry_of_.end()) return known->second;
  auto entry = std::make_unique<Entry>(*functions_, problem);
  if (Status s = entry->describe(); !s.ok()) return s.error();
  if (Status s = select(stream, *entry, sample); !s.ok()) return s.error();
  const int index = static_cast<int>(entries_.size());
  entries_.push_back(std::move(entry));
  entry_of_[key] = index;
  return index;
}

Status GemmLibrary::select(cudaStream_t stream, Entry& entry, const GemmOperands& sample) {
  static_assert(sizeof(cublasLtMatmulAlgo_t) == sizeof(std::array<std::uint64_t, 8>));
  if (Status s = entry.point(sample); !s.ok()) return s;
  const std::string key = prefix_ + entry.problem.key();
  if (const auto known = choices_.find(key); known != choices_.end()) {
    std::memcpy(&entry.algorithm, known->second.data(), sizeof(entry.algorithm));
    cublasLtMatmulHeuristicResult_t result = {};
    const cublasStatus_t valid = functions_->algo_check(handle_, entry.operation, entry.b, entry.a, entry.d,
                                                        entry.d, &entry.algorithm, &result);
    if (valid == CUBLAS_STATUS_SUCCESS && result.workspaceSize <= sample.workspace_bytes) return {};
  }

  cublasLtMatmulPreference_t preference = nullptr;
  if (Status s = check_library(*functions_, functions_->preference_create(&preference),
                               "cublasLtMatmulPreferenceCreate");
      !s.ok()) {
    return s;
  }
  const std::size_t workspace = sample.workspace_bytes;
  functions_->preference_set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace,
                             sizeof(workspace));
  cublasLtMatmulHeuristicResult_t candidates[kCandidates] = {};
  int found = 0;
  const cublasStatus_t status =
      functions_->heuristic(handle_, entry.operation, entry.b, entry.a, entry.d, entry.d, preference,
                            tunes_ ? kCandidates : 1, candidates, &found);
  functions_->preference_destroy(preference);
  if (status != CUBLAS_STATUS_SUCCESS || found == 0) {
    return device_failure(
        "cublasLtMatmulAlgoGetHeuristic",
        "no algorithm for the product " + entry.problem.key() + " (" + functions_->status_name(status) + ")");
  }
  entry.algorithm = candidates[0].algo;
  if (!tunes_ || found == 1) return {};

  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
  if (Status s = check(cudaEventCreate(&begin), "cudaEventCreate"); !s.ok()) return s;
  if (Status s = check(cudaEventCreate(&end), "cudaEventCreate"); !s.ok()) return s;
  float best = 0.0F;
  for (int i = 0; i < found; ++i) {
    float times[kTimedRuns] = {};
    bool works = entry.call(handle_, stream, sample, candidates[i].algo) == CUBLAS_STATUS_SUCCESS;
    for (int run = 0; run < kTimedRuns && works; ++run) {
      cudaEventRecord(begin, stream);
      works = entry.call(handle_, stream, sample, candidates[i].algo) == CUBLAS_STATUS_SUCCESS;
      cudaEventRecord(end, stream);
      if (cudaEventSynchronize(end) != cudaSuccess) works = false;
      if (works) cudaEventElapsedTime(&times[run], begin, end);
    }
    if (!works) continue;
    std::sort(times, times + kTimedRuns);
    const float median = times[kTimedRuns / 2];
    if (best == 0.0F || median < best * (i == 0 ? 1.0F : kClearlyFaster)) {
      best = median;
      entry.algorithm = candidates[i].algo;
    }
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  if (Status s = check(cudaGetLastError(), "cublasLtMatmul"); !s.ok()) return s;
  std::array<std::uint64_t, 8> choice = {};
  std::memcpy(choice.data(), &entry.algorithm, sizeof(entry.algorithm));
  choices_[key] = choice;
  changed_ = true;
  return {};
}

Status GemmLibrary::run(cudaStream_t stream, int entry_index, const GemmOperands& operands) const {
  const Entry& entry = *entries_[static_cast<std::size_t>(entry_index)];
  if (Status s = entry.point(operands); !s.ok()) return s;
  return check_library(*functions_, entry.call(handle_, stream, operands, entry.algorithm), "cublasLtMatmul");
}

}  // namespace capstan::runtime::cuda
