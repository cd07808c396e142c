#include "runtime/checkpoint/safetensors.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/device/digest.h"
#include "runtime/report/write_file.h"

namespace capstan::runtime {
namespace {

using nlohmann::json;
using plan::DType;

/// Metadata: digest_bytes() over the tensors in the order of the file, as 16 hexadecimal digits.
constexpr const char* kDigest = "data_digest";
constexpr const char* kNoDigest = "0000000000000000";

constexpr std::uint64_t kMaxHeader = 100'000'000;  // the format's own limit

struct DTypeName {
  DType dtype;
  const char* name;
};
constexpr std::array<DTypeName, 10> kDTypeNames = {{{DType::f32, "F32"},
                                                    {DType::f64, "F64"},
                                                    {DType::bf16, "BF16"},
                                                    {DType::f16, "F16"},
                                                    {DType::i32, "I32"},
                                                    {DType::i64, "I64"},
                                                    {DType::u8, "U8"},
                                                    {DType::u64, "U64"},
                                                    {DType::f8e4m3, "F8_E4M3"},
                                                    {DType::f8e5m2, "F8_E5M2"}}};

const char* file_dtype_name(DType dtype) {
  for (const DTypeName& entry : kDTypeNames) {
    if (entry.dtype == dtype) return entry.name;
  }
  return "?";
}

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// The header with its length in front, padded so that the tensors begin at a multiple of 64 bytes.
std::string header_of(const std::vector<TensorInfo>& tensors,
                      const std::map<std::string, std::string>& metadata) {
  json header = json::object();
  header["__metadata__"] = metadata;
  std::uint64_t offset = 0;
  for (const TensorInfo& tensor : tensors) {
    header[tensor.name] = {{"dtype", file_dtype_name(tensor.dtype)},
                           {"shape", tensor.shape},
                           {"data_offsets", {offset, offset + tensor.bytes}}};
    offset += tensor.bytes;
  }
  std::string text = header.dump();
  text.append((64 - (text.size() + 8) % 64) % 64, ' ');
  std::string length(8, '\0');
  for (int i = 0; i < 8; ++i) length[static_cast<std::size_t>(i)] = static_cast<char>(text.size() >> (8 * i));
  return length + text;
}

bool nests_deeper_than(std::string_view text, int limit) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if ((c == '{' || c == '[') && ++depth > limit) {
      return true;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return false;
}

struct Place {
  std::uint64_t begin = 0, end = 0;
};

/// Reads one entry of the header; gives what is wrong with it, or nothing.
std::string read_tensor(const json& entry, std::uint64_t data_bytes, TensorInfo& tensor, Place& place) {
  if (!entry.is_object() || !entry.contains("dtype") || !entry.contains("shape") ||
      !entry.contains("data_offsets")) {
    return "lacks dtype, shape or data_offsets";
  }
  const auto known = std::find_if(kDTypeNames.begin(), kDTypeNames.end(), [&](const DTypeName& candidate) {
    return entry["dtype"] == candidate.name;
  });
  if (known == kDTypeNames.end()) return "has an unknown dtype";
  tensor.dtype = known->dtype;
  const json &shape = entry["shape"], &offsets = entry["data_offsets"];
  if (!shape.is_array() || shape.size() > 8) return "has a shape that is no list of at most 8 extents";
  std::uint64_t bytes = plan::size_of(tensor.dtype);
  for (const json& extent : shape) {
    if (!extent.is_number_unsigned()) return "has an extent that is no count";
    const auto value = extent.get<std::uint64_t>();
    if (value > (std::uint64_t{1} << 48) || __builtin_mul_overflow(bytes, value, &bytes))
      return "is larger than any file";
    tensor.shape.push_back(static_cast<std::int64_t>(value));
  }
  if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
      !offsets[1].is_number_unsigned()) {
    return "has data_offsets that are no pair of counts";
  }
  place = {offsets[0].get<std::uint64_t>(), offsets[1].get<std::uint64_t>()};
  if (place.begin > place.end || place.end > data_bytes) return "lies outside the file";
  if (place.end - place.begin != bytes) return "has not as many bytes as its shape needs";
  tensor.bytes = bytes;
  return {};
}

}  // namespace

Status write_safetensors(const std::string& path, const std::vector<TensorInfo>& tensors,
                         const std::map<std::string, std::string>& metadata,
                         const std::function<Status(std::size_t tensor, std::span<std::byte> to)>& contents) {
  const auto failed = [&](const std::string& why) {
    return run_problem("RN040", fmt::format("the checkpoint `{}` cannot be written: {}", path, why),
                       {{"path", path}}, "the checkpoints written before are untouched");
  };
  PendingFile file(path);
  if (const std::string why = file.open(); !why.empty()) return failed(why);
  std::map<std::string, std::string> all_metadata = metadata;
  all_metadata[kDigest] = kNoDigest;  // known when the tensors were written; the place is kept for it
  const std::string header = header_of(tensors, all_metadata);
  if (const std::string why = file.write(header); !why.empty()) return failed(why);
  std::vector<std::byte> bytes;
  std::uint64_t digest = 0, words = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    bytes.resize(tensors[i].bytes);
    if (Status filled = contents(i, bytes); !filled.ok()) return filled;
    if (const std::string why = file.write(as_text(bytes)); !why.empty()) return failed(why);
    digest += digest_bytes(bytes, words);
    words += words_of(bytes.size());
  }
  const std::string entry = fmt::format("\"{}\":\"", kDigest);
  const std::uint64_t place = header.find(entry + kNoDigest) + entry.size();
  if (const std::string why = file.rewrite(place, fmt::format("{:016x}", digest)); !why.empty())
    return failed(why);
  if (const std::string why = file.commit(); !why.empty()) return failed(why);
  return {};
}

Outcome<SafetensorsFile> SafetensorsFile::open(const std::string& path) {
  Outcome<MappedFile> mapped = MappedFile::open(path, "RN041", "the checkpoint");
  if (!mapped.ok()) return mapped.error();
  SafetensorsFile file(std::move(mapped.value()));
  const auto broken = [&](const std::string& why) {
    return run_problem("RN041", fmt::format("the checkpoint `{}` {}", path, why), {{"path", path}});
  };
  const auto all = file.file_.bytes();
  if (all.size() < 8) return broken(fmt::format("has {} bytes: it is empty or cut off", all.size()));
  std::uint64_t length = 0;
  for (std::size_t i = 8; i-- > 0;) length = length << 8 | std::to_integer<std::uint64_t>(all[i]);
  if (length > kMaxHeader || length > all.size() - 8) {
    return broken(fmt::format("states a header of {} bytes, but has {}: it is cut off or no safetensors file",
                              length, all.size() - 8));
  }
  const std::string_view text = as_text(all.subspan(8, length));
  const auto data = all.subspan(8 + length);
  if (nests_deeper_than(text, 4)) return broken("has a header that nests too deep");
  const json header = json::parse(text, nullptr, false);
  if (!header.is_object()) return broken("has a header that is no JSON object");

  std::vector<Place> places;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      if (!entry.is_object()) return broken("has metadata that is no object");
      for (const auto& [key, value] : entry.items()) {
        if (!value.is_string()) return broken(fmt::format("has metadata `{}` that is no string", key));
        file.metadata_[key] = value.get<std::string>();
      }
      continue;
    }
    TensorInfo tensor;
    tensor.name = name;
    Place place;
    if (const std::string why = read_tensor(entry, data.size(), tensor, place); !why.empty()) {
      return broken(fmt::format("has a tensor `{}` that {}", name, why));
    }
    file.tensors_.push_back(std::move(tensor));
    file.contents_.push_back(data.subspan(place.begin, place.end - place.begin));
    places.push_back(place);
  }
  std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) { return a.begin < b.begin; });
  std::uint64_t end = 0;
  for (const Place& place : places) {
    if (place.begin != end) return broken("has tensors that overlap or leave gaps");
    end = place.end;
  }
  if (end != data.size()) return broken(fmt::format("has {} bytes after its last tensor", data.size() - end));
  return file;
}

Status SafetensorsFile::check_digest() const {
  const auto stated = metadata_.find(kDigest);
  if (stated == metadata_.end()) {
    return run_problem("RN041",
                       fmt::format("the checkpoint `{}` does not state the digest of its tensors (`{}`)",
                                   file_.path(), kDigest),
                       {{"path", file_.path()}},
                       "every checkpoint of capstan-run has it; resume from one that nobody edited");
  }
  std::vector<std::span<const std::byte>> in_order = contents_;
  std::sort(in_order.begin(), in_order.end(), [](auto a, auto b) { return a.data() < b.data(); });
  std::uint64_t digest = 0, words = 0;
  for (const auto bytes : in_order) {
    digest += digest_bytes(bytes, words);
    words += words_of(bytes.size());
  }
  if (stated->second == fmt::format("{:016x}", digest)) return {};
  return run_problem(
      "RN041",
      fmt::format("the checkpoint `{}` is damaged: its tensors do not have the digest that it states",
                  file_.path()),
      {{"path", file_.path()}}, "resume from another checkpoint of the run");
}

}  // namespace capstan::runtime
