#include "runtime/checkpoint/checkpoint.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
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
                                          const LoadedPlan& loaded) {
  const auto differs = [&](const std::string& what) {
    return run_problem("RN042", fmt::format("the checkpoint `{}` belongs to another plan: {}", path, what),
                       {{"path", path}, {"plan_digest", loaded.digest}},
                       "resume with the plan that wrote it, or start a new run without `--resume`");
  };
  const auto& metadata = file.metadata();
  if (const auto format = metadata.find("format"); format == metadata.end() || format->second != kFormat) {
    return run_problem("RN041", fmt::format("`{}` is no checkpoint of capstan-run", path), {{"path", path}});
  }
  for (const auto& [name, value] : trajectory(loaded.plan)) {
    const auto entry = metadata.find(kTrajectory + name);
    if (entry == metadata.end())
      return differs(fmt::format("`{}` is {} in the plan and absent in the checkpoint", name, value));
    if (entry->second != value) {
      return differs(
          fmt::format("`{}` is {} in the checkpoint and {} in the plan", name, entry->second, value));
    }
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

Outcome<SafetensorsFile> open_checked(const std::string& path, const LoadedPlan& plan, Resumed& resumed) {
  Outcome<SafetensorsFile> file = SafetensorsFile::open(path);
  if (!file.ok()) return file;
  if (auto difference = find_difference(file.value(), path, plan)) return *difference;
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

std::map<std::string, std::string> trajectory(const plan::Plan& plan) {
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
  course["data.path"] = plan.data.path;
  course["data.seed"] = fmt::format("{}", plan.data.seed);
  // Every op but recomputed ones, whose numbers the originals give; attributes of the optimizer by name,
  // because that is what people change between runs.
  Sha256 ops;
  for (const plan::Op& op : plan.ops) {
    if (op.phase == plan::Phase::recompute) continue;
    ops.update(fmt::format("{} {} {};", plan::op_kind_name(op.kind), op.module, op.layer));
    for (const auto& [name, value] : op.attributes) {
      if (op.kind == OpKind::adamw || op.kind == OpKind::learning_rate) {
        // There may be two optimizer ops, with and without decay: the greater text stands for both.
        std::string& entry = course[fmt::format("{}.{}", plan::op_kind_name(op.kind), name)];
        entry = std::max(entry, text_of(value));
      } else {
        ops.update(fmt::format("{}={};", name, text_of(value)));
      }
    }
  }
  course["ops"] = ops.finish().substr(0, 16);
  return course;
}

std::string checkpoint_path(const std::string& directory, std::uint64_t step) {
  return fmt::format("{}/step-{:08}.safetensors", directory, step);
}

Status save_checkpoint(const std::string& path, const LoadedPlan& loaded, Backend& backend,
                       std::uint64_t step) {
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
  for (const auto& [name, value] : trajectory(loaded.plan)) metadata[kTrajectory + name] = value;
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

Outcome<Resumed> check_checkpoint(const std::string& path, const LoadedPlan& plan) {
  Resumed resumed;
  Outcome<SafetensorsFile> file = open_checked(path, plan, resumed);
  if (!file.ok()) return file.error();
  if (Status sound = file.value().check_digest(); !sound.ok()) return sound.error();
  return resumed;
}

Outcome<Resumed> load_checkpoint(const std::string& path, const LoadedPlan& loaded, Backend& backend) {
  Resumed resumed;
  Outcome<SafetensorsFile> file = open_checked(path, loaded, resumed);
  if (!file.ok()) return file.error();
  for (std::size_t i = 0; i < file.value().tensors().size(); ++i) {
    const plan::BufferId id = loaded.plan.buffer(file.value().tensors()[i].name).id;
    if (Status uploaded = backend.upload(id, file.value().bytes(i)); !uploaded.ok()) return uploaded.error();
  }
  return resumed;
}

}  // namespace capstan::runtime
