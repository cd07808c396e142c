// The safetensors file format: a header in JSON, then the tensors' bytes (github.com/huggingface/safetensors,
// "Format"). Writing goes to a temporary file beside the target, which is synced, renamed over it, and the
// folder synced: a reader sees the whole new file or the old one, also after a full disk or a crash. Reading
// trusts nothing: sizes, offsets, overlaps and depth are checked before a byte of a tensor is touched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "compiler/plan/plan.h"
#include "runtime/data/mapped_file.h"

namespace capstan::runtime {

struct TensorInfo {
  std::string name;
  plan::DType dtype = plan::DType::f32;
  std::vector<std::int64_t> shape;
  std::uint64_t bytes = 0;
};

/// Writes the file. `contents(i, to)` fills the bytes of tensor i, which is at most one tensor in memory at a
/// time. RN040 with the reason; the temporary file is gone then and a file that was there before is
/// untouched.
Status write_safetensors(const std::string& path, const std::vector<TensorInfo>& tensors,
                         const std::map<std::string, std::string>& metadata,
                         const std::function<Status(std::size_t tensor, std::span<std::byte> to)>& contents);

class SafetensorsFile {
 public:
  /// RN041 when the file is missing or not sound.
  static Outcome<SafetensorsFile> open(const std::string& path);

  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  const std::vector<TensorInfo>& tensors() const { return tensors_; }  ///< by name
  std::span<const std::byte> bytes(std::size_t tensor) const { return contents_[tensor]; }
  /// RN041 when the tensors do not have the digest that the metadata states, or it states none.
  Status check_digest() const;

 private:
  explicit SafetensorsFile(MappedFile file) : file_(std::move(file)) {}
  MappedFile file_;
  std::map<std::string, std::string> metadata_;
  std::vector<TensorInfo> tensors_;
  std::vector<std::span<const std::byte>> contents_;
};

}  // namespace capstan::runtime
