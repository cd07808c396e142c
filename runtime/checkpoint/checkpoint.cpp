#include "runtime/checkpoint/checkpoint.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <set>
#include <system_error>

#include <fmt/format.h>

#include "grammar/source/sha256.h"
#include "runtime/checkpoint/safetensors.h"

namespace capstan::runtime {
namespace {

namespace fs = std::filesystem;
using plan::OpKind;
using plan::Role;

constexpr const char* kFormat = "capstan-checkpoint-1";
constexpr const char* kTrajectory = "trajectory.";
constexpr const char* kDataPath = "data.path";  // for people: data are told apart by their contents
constexpr const char* kDataTokens = "data.tokens";
constexpr const char* kDataDigest = "data.digest";
constexpr const char* kOpOrder = "ops order";

bool is_state(const plan::Buffer& buffer) {
  switch (buffer.role) {
    case Role::parameter:
    case Role::master:
    case Role::moment1:
    case Role::moment2:
    case Role::scalar:
      return true;
    default:
      return false;
  }
}

std::string text_of(const plan::AttributeValue& value) {
  if (const bool* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return fmt::format("{}", *integer);
  if (const double* number = std::get_if<double>(&value)) return fmt::format("{}", *number);
  return std::get<std::string>(value);
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text;
  for (const std::int64_t extent : shape) text += fmt::format("{}{}", text.empty() ? "" : ", ", extent);
  return "[" + text + "]";
}

/// Values of an attribute over all ops that have it; of many, the first and a digest.
std::string summary_of(const std::set<std::string>& values) {
  constexpr std::size_t kListed = 4;
  std::string text;
  Sha256 all;
  std::size_t listed = 0;
  for (const std::string& value : values) {
    all.update(value + ";");
    if (listed++ < kListed) text += (text.empty() ? "" : ", ") + value;
  }
  if (values.size() <= kListed) return text;
  return fmt::format("{} and {} more ({})", text, values.size() - kListed, all.finish().substr(0, 8));
}

bool same_shape(const TensorInfo& tensor, const plan::Buffer& buffer) {
  return tensor.dtype == buffer.dtype && tensor.shape == buffer.shape;
}

/// Value of a metadata entry as a number of steps.
bool parse_step(const std::map<std::string, std::string>& metadata, std::uint64_t& step) {
  const auto entry = metadata.find("step");
  if (entry == metadata.end()) return false;
  const char* end = entry->second.data() + entry->second.size();
  const auto [stop, error] = std::from_chars(entry->second.data(), end, step);
  return error == std::errc() && stop == end;
}

std::optional<Diagnostic> find_difference(const SafetensorsFile& file, const std::string& path,
                                          const LoadedPlan& loaded, const DataIdentity& data) {
  const auto differs = [&](const std::string& what) {
    return run_problem("RN042", fmt::format("the checkpoint `{}` belongs to another plan: {}", path, what),
                       {{"path", path}, {"plan_digest", loaded.digest}},
                       "resume with the plan that wrote it, or start a new run without `--resume`");
  };
  const auto& metadata = file.metadata();
  if (const auto format = metadata.find("format"); format == metadata.end() || format->second != kFormat) {
    return run_problem("RN041", fmt::format("`{}` is no checkpoint of capstan-run", path), {{"path", path}});
  }
  const std::map<std::string, std::string> course = trajectory(loaded.plan, data);
  const auto held = [&](const std::string& name) {
    const auto entry = metadata.find(kTrajectory + name);
    return entry == metadata.end() ? std::string("nothing") : entry->second;
  };
  // Extents first: attributes follow from them. The order of ops and the data last: another plan has others
  // by right.
  std::string other, other_data, other_order;
  for (const auto& [name, value] : course) {
    if (held(name) == value || name == kDataPath) continue;
    if (name == kDataTokens || name == kDataDigest) {
      if (other_data.empty())
        other_data = fmt::format("`{}` is {} in the checkpoint and {} now", name, held(name), value);
    } else if (name == kOpOrder) {
      other_order = "its ops come in another order, or belong to other layers";
    } else if (other.empty() || name.rfind("dims.", 0) == 0) {
      other = fmt::format("`{}` is {} in the checkpoint and {} in the plan", name, held(name), value);
      if (name.rfind("dims.", 0) == 0) break;
    }
  }
  for (const auto& [name, value] : metadata) {
    if (!other.empty() || name.rfind(kTrajectory, 0) != 0) continue;
    const std::string own = name.substr(std::string_view(kTrajectory).size());
    if (!course.contains(own))
      other = fmt::format("`{}` is {} in the checkpoint and nothing in the plan", own, value);
  }
  if (!other.empty()) return differs(other);
  if (!other_order.empty()) return differs(other_order);
  if (!other_data.empty()) {
    return run_problem(
        "RN042",
        fmt::format("the data are not those that the checkpoint `{}` was trained on: {}", path, other_data),
        {{"path", path}, {"data", loaded.plan.data.path}},
        "put the data back, or start a new run without `--resume`");
  }
  std::size_t found = 0;
  for (const plan::Buffer& buffer : loaded.plan.buffers) {
    if (!is_state(buffer)) continue;
    const auto tensor = std::find_if(file.tensors().begin(), file.tensors().end(),
                                     [&](const TensorInfo& t) { return t.name == buffer.name; });
    if (tensor == file.tensors().end()) return differs(fmt::format("it has no tensor `{}`", buffer.name));
    if (!same_shape(*tensor, buffer)) {
      return differs(fmt::format("`{}` is {} {} in the checkpoint and {} {} in the plan", buffer.name,
                                 plan::dtype_name(tensor->dtype), shape_text(tensor->shape),
                                 plan::dtype_name(buffer.dtype), shape_text(buffer.shape)));
    }
    ++found;
  }
  if (found != file.tensors().size()) return differs("it has tensors that the plan does not have");
  return std::nullopt;
}

Outcome<SafetensorsFile> open_checked(const std::string& path, const LoadedPlan& plan,
                                      const DataIdentity& data, Resumed& resumed) {
  Outcome<SafetensorsFile> file = SafetensorsFile::open(path);
  if (!file.ok()) return file;
  if (auto difference = find_difference(file.value(), path, plan, data)) return *difference;
  resumed.path = path;
  if (!parse_step(file.value().metadata(), resumed.step)) {
    return run_problem("RN041", fmt::format("the checkpoint `{}` does not say its step", path),
                       {{"path", path}});
  }
  // What the counters hold between steps follows from the step.
  const std::uint64_t micro_batches = static_cast<std::uint64_t>(plan.plan.dims.micro_batches);
  const std::pair<const char*, std::uint64_t> counters[] = {
      {plan::names::kStep, resumed.step},
      {plan::names::kMicroBatchIndex, 0},
      {plan::names::kRngCounter, resumed.step * micro_batches}};
  for (std::size_t i = 0; i < file.value().tensors().size(); ++i) {
    for (const auto& [name, wanted] : counters) {
      if (file.value().tensors()[i].name != name || file.value().bytes(i).size() < sizeof(std::uint64_t))
        continue;
      std::uint64_t held = 0;  // the tensor's type and shape were compared with the plan's
      std::memcpy(&held, file.value().bytes(i).data(), sizeof held);
      if (held == wanted) continue;
      return run_problem(
          "RN041",
          fmt::format("the checkpoint `{}` says step {} in its metadata, but its tensor `{}` is {} "
                      "instead of {}",
                      path, resumed.step, name, held, wanted),
          {{"path", path}});
    }
  }
  return file;
}

}  // namespace

std::map<std::string, std::string> trajectory(const plan::Plan& plan, const DataIdentity& data) {
  std::map<std::string, std::string> course;
  const plan::Dims& dims = plan.dims;
  const std::pair<const char*, std::int64_t> sizes[] = {{"layers", dims.layers},
                                                        {"hidden", dims.hidden},
                                                        {"heads", dims.heads},
                                                        {"kv_heads", dims.kv_heads},
                                                        {"head_dim", dims.head_dim},
                                                        {"ffn_hidden", dims.ffn_hidden},
                                                        {"vocab", dims.vocab},
                                                        {"padded_vocab", dims.padded_vocab},
                                                        {"seq_length", dims.seq_length},
                                                        {"micro_batch", dims.micro_batch},
                                                        {"micro_batches", dims.micro_batches}};
  for (const auto& [name, value] : sizes) course[fmt::format("dims.{}", name)] = fmt::format("{}", value);
  course["seed"] = fmt::format("{}", plan.seed);
  course["data.kind"] = plan.data.kind;
  course[kDataPath] = plan.data.path;
  course["data.seed"] = fmt::format("{}", plan.data.seed);
  if (!data.digest.empty()) {
    course[kDataTokens] = fmt::format("{}", data.tokens);
    course[kDataDigest] = data.digest;
  }
  // Every op but recomputed ones, whose numbers the originals give: how many of each kind and with which
  // attributes, by name, because that is what can be told to people; and a digest of their order.
  Sha256 order;
  std::map<std::string, std::size_t> counts;
  std::map<std::string, std::set<std::string>> attributes;
  for (const plan::Op& op : plan.ops) {
    if (op.phase == plan::Phase::recompute) continue;
    const std::string kind = plan::op_kind_name(op.kind);
    order.update(fmt::format("{} {} {};", kind, op.module, op.layer));
    ++counts[kind];
    for (const auto& [name, value] : op.attributes) {
      order.update(fmt::format("{}={};", name, text_of(value)));
      attributes[fmt::format("{}.{}", kind, name)].insert(text_of(value));
    }
  }
  for (const auto& [kind, count] : counts) course["ops." + kind] = fmt::format("{}", count);
  for (const auto& [name, values] : attributes) course[name] = summary_of(values);
  course[kOpOrder] = order.finish().substr(0, 16);
  return course;
}

std::string checkpoint_path(const std::string& directory, std::uint64_t step) {
  return fmt::format("{}/step-{:08}.safetensors", directory, step);
}

Status save_checkpoint(const std::string& path, const LoadedPlan& loaded, const DataIdentity& data,
                       Backend& backend, std::uint64_t step) {
  std::vector<TensorInfo> tensors;
  std::vector<plan::BufferId> ids;
  for (const plan::Buffer& buffer : loaded.plan.buffers) {
    if (!is_state(buffer)) continue;
    tensors.push_back({buffer.name, buffer.dtype, buffer.shape, buffer.bytes()});
    ids.push_back(buffer.id);
  }
  std::map<std::string, std::string> metadata = {
      {"format", kFormat},
      {"plan_digest", loaded.digest},
      {"config_digest", loaded.plan.config_digest},
      {"step", fmt::format("{}", step)},
      {"rng_counter", fmt::format("{}", step * static_cast<std::uint64_t>(loaded.plan.dims.micro_batches))}};
  for (const auto& [name, value] : trajectory(loaded.plan, data)) metadata[kTrajectory + name] = value;
  return write_safetensors(path, tensors, metadata, [&](std::size_t tensor, std::span<std::byte> to) {
    return backend.download(ids[tensor], to);
  });
}

Outcome<std::string> find_checkpoint(const std::string& given) {
  std::error_code error;
  if (!fs::is_directory(given, error)) return given;
  std::string best;
  for (const std::string& folder : {given + "/checkpoints", given}) {
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
      const std::string name = entry->path().filename().string();
      if (name.rfind("step-", 0) != 0 || entry->path().extension() != ".safetensors") continue;
      // Longer numbers are higher: eight digits are a minimum.
      const std::string previous = fs::path(best).filename().string();
      if (best.empty() || name.size() > previous.size() ||
          (name.size() == previous.size() && name > previous)) {
        best = entry->path().string();
      }
    }
    if (!best.empty()) return best;
  }
  return run_problem("RN041", fmt::format("`{}` holds no checkpoint", given), {{"path", given}});
}

Outcome<Resumed> check_checkpoint(const std::string& path, const LoadedPlan& plan, const DataIdentity& data) {
  Resumed resumed;
  Outcome<SafetensorsFile> file = open_checked(path, plan, data, resumed);
  if (!file.ok()) return file.error();
  if (Status sound = file.value().check_digest(); !sound.ok()) return sound.error();
  return resumed;
}

Outcome<Resumed> load_checkpoint(const std::string& path, const LoadedPlan& loaded, const DataIdentity& data,
                                 Backend& backend) {
  Resumed resumed;
  Outcome<SafetensorsFile> file = open_checked(path, loaded, data, resumed);
  if (!file.ok()) return file.error();
  for (std::size_t i = 0; i < file.value().tensors().size(); ++i) {
    const plan::BufferId id = loaded.plan.buffer(file.value().tensors()[i].name).id;
    if (Status uploaded = backend.upload(id, file.value().bytes(i)); !uploaded.ok()) return uploaded.error();
  }
  return resumed;
}

}  // namespace capstan::runtime
