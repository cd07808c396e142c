#include "runtime/load/plan_reader.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <numeric>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "grammar/source/input_file.h"
#include "grammar/source/sha256.h"
#include "runtime/load/check_op.h"
#include "runtime/load/check_order.h"
#include "runtime/load/json_fields.h"

namespace capstan::runtime {
namespace {

using nlohmann::json;
using plan::Plan;

constexpr std::int64_t kMaxExtent = std::int64_t{1} << 40;
constexpr std::int64_t kMaxElements = std::int64_t{1} << 46;
constexpr std::uint64_t kMaxArena = std::uint64_t{1} << 50;
constexpr std::size_t kMaxBuffers = std::size_t{1} << 20;
constexpr std::size_t kMaxOps = std::size_t{1} << 20;
constexpr std::size_t kMaxRank = 8;
constexpr int kMaxDepth = 8;

template <typename Enum, typename Name>
std::vector<const char*> names_of(int count, Name name) {
  std::vector<const char*> names;
  for (int i = 0; i < count; ++i) names.push_back(name(static_cast<Enum>(i)));
  return names;
}

const std::vector<const char*>& dtype_names() {
  static const auto names = names_of<plan::DType>(10, plan::dtype_name);
  return names;
}
const std::vector<const char*>& role_names() {
  static const auto names = names_of<plan::Role>(9, plan::role_name);
  return names;
}
const std::vector<const char*>& phase_names() {
  static const auto names = names_of<plan::Phase>(5, plan::phase_name);
  return names;
}
const std::vector<const char*>& stage_names() {
  static const auto names = names_of<plan::Stage>(3, plan::stage_name);
  return names;
}
const std::vector<const char*>& op_names() {
  static const std::vector<const char*> names = {
#define CAPSTAN_OP(name) #name,
#include "compiler/plan/op_kinds.def"
#undef CAPSTAN_OP
  };
  return names;
}

template <typename Enum>
Enum read_enum(const JsonNode& node, const std::vector<const char*>& names) {
  return static_cast<Enum>(node.one_of(names));
}

// Brackets outside strings. The JSON library would build a tree of any depth.
int deepest_nesting(std::string_view text) {
  int depth = 0, deepest = 0;
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
    } else if (c == '{' || c == '[') {
      deepest = std::max(deepest, ++depth);
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return deepest;
}

void read_dims(const JsonNode& node, plan::Dims& dims) {
  node.require_exactly({"layers", "hidden", "heads", "kv_heads", "head_dim", "ffn_hidden", "vocab",
                        "padded_vocab", "seq_length", "micro_batch", "micro_batches"});
  const auto size = [&](const char* name, std::int64_t low, std::int64_t most) {
    return node.field(name).integer(low, most);
  };
  dims.layers = size("layers", 1, plan::kMostLayers);
  dims.hidden = size("hidden", 1, plan::kMostWidth);
  dims.heads = size("heads", 1, plan::kMostHeads);
  dims.kv_heads = size("kv_heads", 1, dims.heads);
  dims.head_dim = size("head_dim", 1, plan::kMostWidth / dims.heads);
  dims.ffn_hidden = size("ffn_hidden", 1, plan::kMostWidth);
  dims.vocab = size("vocab", 1, plan::kMostVocabulary);
  dims.padded_vocab = size("padded_vocab", dims.vocab, plan::kMostVocabulary + plan::kMostVocabularyMultiple);
  dims.seq_length = size("seq_length", 1, plan::kMostPositions);
  dims.micro_batch = size("micro_batch", 1, plan::kMostBatch);
  dims.micro_batches = size("micro_batches", 1, plan::kMostBatch);
  if (!node.failed() && dims.heads % dims.kv_heads != 0) {
    node.field("kv_heads")
        .fail(fmt::format("is {}, which does not divide {} heads", dims.kv_heads, dims.heads));
  }
}

/// -1 outside the layers.
std::int32_t read_layer(const JsonNode& node, const plan::Dims& dims) {
  return static_cast<std::int32_t>(node.field("layer").integer(-1, dims.layers - 1));
}

void read_schedule(const JsonNode& node, plan::Schedule& schedule) {
  constexpr std::int64_t kMaxSteps = std::int64_t{1} << 40;
  node.require_exactly({"train_steps", "warmup_steps", "graph_impl", "save_every", "log_every"});
  schedule.train_steps = node.field("train_steps").integer(0, kMaxSteps);
  schedule.warmup_steps = node.field("warmup_steps").integer(0, kMaxSteps);
  node.field("graph_impl").one_of({"none", "local", "transformer_engine", "full_iteration"});
  schedule.graph_impl = node.field("graph_impl").text(64);
  schedule.save_every = node.field("save_every").integer(0, kMaxSteps);
  schedule.log_every = node.field("log_every").integer(0, kMaxSteps);
}

void read_buffer(const JsonNode& node, std::uint64_t arena, std::vector<plan::Buffer>& buffers) {
  const std::size_t index = buffers.size();
  plan::Buffer& buffer = buffers.emplace_back();
  node.require_exactly({"id", "name", "dtype", "shape", "role", "init", "offset"});
  buffer.id = static_cast<plan::BufferId>(node.field("id").integer(0, kMaxBuffers));
  if (!node.failed() && buffer.id != index)
    node.fail(fmt::format("has the id {}, must have {}", buffer.id, index));
  buffer.name = node.field("name").text(256);
  if (!node.failed() && buffer.name.empty()) node.fail("has an empty name");
  buffer.dtype = read_enum<plan::DType>(node.field("dtype"), dtype_names());
  std::int64_t elements = 1;
  const JsonNode shape = node.field("shape");
  shape.each(kMaxRank, [&](const JsonNode& extent) {
    const std::int64_t size = extent.integer(1, kMaxExtent);
    if (extent.failed()) return;
    if (size > kMaxElements / elements) return extent.fail("makes the buffer larger than a plan may hold");
    elements *= size;
    buffer.shape.push_back(size);
  });
  if (!node.failed() && buffer.shape.empty()) shape.fail("is empty");
  buffer.role = read_enum<plan::Role>(node.field("role"), role_names());
  const JsonNode init = node.field("init");
  init.require_exactly({"kind", "stddev", "stream"});
  buffer.init.kind = read_enum<plan::Init::Kind>(init.field("kind"), {"none", "zeros", "ones", "normal"});
  buffer.init.stddev = init.field("stddev").finite();
  buffer.init.stream = init.field("stream").unsigned_integer(INT64_MAX);
  const bool floating = buffer.dtype == plan::DType::f32 || buffer.dtype == plan::DType::f64 ||
                        buffer.dtype == plan::DType::bf16 || buffer.dtype == plan::DType::f16;
  if (!node.failed() && buffer.init.kind == plan::Init::Kind::normal && !floating) {
    init.fail("is `normal` on a buffer of integers");
  }
  buffer.offset = node.field("offset").unsigned_integer(kMaxArena);
  if (node.failed()) return;
  if (buffer.offset % plan::kBufferAlignment != 0) {
    node.field("offset").fail(
        fmt::format("is {}, must be a multiple of {}", buffer.offset, plan::kBufferAlignment));
  } else if (buffer.offset > arena || buffer.bytes() > arena - buffer.offset) {
    node.fail(fmt::format("`{}` ends at byte {}, beyond the arena of {} bytes", buffer.name,
                          buffer.offset + buffer.bytes(), arena));
  }
}

void read_attributes(const JsonNode& node, plan::Op& op) {
  for (const std::string& name : node.names()) {  // sorted, as the plan demands
    const JsonNode value = node.field(name);
    if (op.attributes.size() >= 64) return node.fail("has more than 64 attributes");
    if (value.is_boolean())
      op.attributes.emplace_back(name, value.boolean());
    else if (value.is_integer())
      op.attributes.emplace_back(name, value.integer(INT64_MIN, INT64_MAX));
    else if (value.is_number())
      op.attributes.emplace_back(name, value.finite());
    else if (value.is_text())
      op.attributes.emplace_back(name, value.text(256));
    else
      return value.fail("must be a boolean, a number or a string");
  }
}

void read_op(const JsonNode& node, const plan::Dims& dims, std::size_t buffers, std::vector<plan::Op>& ops) {
  const std::size_t index = ops.size();
  plan::Op& op = ops.emplace_back();
  node.require_exactly(
      {"id", "kind", "phase", "stage", "inputs", "outputs", "attributes", "module", "layer", "key"});
  op.id = static_cast<plan::OpId>(node.field("id").integer(0, kMaxOps));
  if (!node.failed() && op.id != index) node.fail(fmt::format("has the id {}, must have {}", op.id, index));
  op.kind = read_enum<plan::OpKind>(node.field("kind"), op_names());
  op.phase = read_enum<plan::Phase>(node.field("phase"), phase_names());
  op.stage = read_enum<plan::Stage>(node.field("stage"), stage_names());
  const auto read_ids = [&](const char* name, std::vector<plan::BufferId>& ids) {
    node.field(name).each(kMaxBuffers, [&](const JsonNode& id) {
      const std::int64_t value = id.integer(0, INT64_MAX);
      if (!id.failed() && static_cast<std::size_t>(value) >= buffers) {
        return id.fail(fmt::format("is {}, but the plan has {} buffers", value, buffers));
      }
      ids.push_back(static_cast<plan::BufferId>(value));
    });
  };
  read_ids("inputs", op.inputs);
  read_ids("outputs", op.outputs);
  read_attributes(node.field("attributes"), op);
  op.module = node.field("module").text(256);
  op.layer = read_layer(node, dims);
  op.key = node.field("key").text(256);
}

void read_segment(const JsonNode& node, const plan::Dims& dims, std::vector<plan::Segment>& segments) {
  const std::size_t index = segments.size();
  plan::Segment& segment = segments.emplace_back();
  node.require_exactly(
      {"id", "mode", "scope", "reason", "first_op", "end_op", "whole_iteration", "layer", "phase"});
  segment.id = static_cast<std::uint32_t>(node.field("id").integer(0, kMaxOps));
  if (!node.failed() && segment.id != index)
    node.fail(fmt::format("has the id {}, must have {}", segment.id, index));
  segment.mode = read_enum<plan::SegmentMode>(node.field("mode"), {"eager", "graph"});
  segment.scope = node.field("scope").text(256);
  segment.reason = node.field("reason").text();
  segment.first_op = static_cast<plan::OpId>(node.field("first_op").integer(0, kMaxOps));
  segment.end_op = static_cast<plan::OpId>(node.field("end_op").integer(0, kMaxOps));
  segment.whole_iteration = node.field("whole_iteration").boolean();
  segment.layer = read_layer(node, dims);
  segment.phase = read_enum<plan::Phase>(node.field("phase"), phase_names());
}

void read_memory(const JsonNode& node, plan::MemorySummary& memory) {
  node.require_exactly({"arena", "parameters", "masters", "gradients", "optimizer", "activations_peak",
                        "workspaces_peak", "inputs_and_scalars"});
  memory.arena = node.field("arena").unsigned_integer(kMaxArena);
  std::uint64_t left = memory.arena;
  const auto part = [&](const char* name) { return node.field(name).unsigned_integer(left); };
  // Side by side in the arena, so each leaves less to the next.
  const auto persistent = [&](const char* name) {
    const std::uint64_t bytes = part(name);
    left -= bytes;
    return bytes;
  };
  memory.parameters = persistent("parameters");
  memory.masters = persistent("masters");
  memory.gradients = persistent("gradients");
  memory.optimizer = persistent("optimizer");
  memory.inputs_and_scalars = persistent("inputs_and_scalars");
  memory.activations_peak = part("activations_peak");
  memory.workspaces_peak = part("workspaces_peak");
}

void read_document(const JsonNode& root, Plan& result) {
  root.require_exactly({"format_version", "digest", "producer", "config_name", "config_digest", "backend",
                        "deterministic", "dims", "schedule", "data", "seed", "buffers", "ops", "segments",
                        "checks", "teardown", "memory", "model_flops_per_step"});
  result.producer = root.field("producer").text(256);
  result.config_name = root.field("config_name").text();
  result.config_digest = root.field("config_digest").text(256);
  result.backend = root.field("backend").text(16);
  static const std::vector<const char*> backends = {"auto", "host", "cuda"};
  root.field("backend").one_of(backends);
  result.deterministic = root.field("deterministic").boolean();
  read_dims(root.field("dims"), result.dims);
  read_schedule(root.field("schedule"), result.schedule);
  const JsonNode data = root.field("data");
  data.require_exactly({"kind", "path", "seed"});
  data.field("kind").one_of({"text", "token_shards", "megatron_indexed", "random", "none"});
  result.data.kind = data.field("kind").text(64);
  result.data.path = data.field("path").text();
  result.data.seed = data.field("seed").unsigned_integer(UINT64_MAX);
  result.seed = root.field("seed").unsigned_integer(UINT64_MAX);
  read_memory(root.field("memory"), result.memory);
  root.field("buffers").each(
      kMaxBuffers, [&](const JsonNode& node) { read_buffer(node, result.memory.arena, result.buffers); });
  root.field("ops").each(
      kMaxOps, [&](const JsonNode& node) { read_op(node, result.dims, result.buffers.size(), result.ops); });
  root.field("segments").each(kMaxOps, [&](const JsonNode& node) {
    read_segment(node, result.dims, result.segments);
  });
  root.field("checks").each(64, [&](const JsonNode& node) {
    plan::Check& check = result.checks.emplace_back();
    node.require_exactly({"kind", "flag", "key", "fatal"});
    node.field("kind").one_of({"nonfinite_loss", "nonfinite_gradient"});
    check.kind = node.field("kind").text(64);
    check.flag = static_cast<plan::BufferId>(node.field("flag").integer(0, kMaxBuffers));
    check.key = node.field("key").text(256);
    check.fatal = node.field("fatal").boolean();
  });
  root.field("teardown").each(16, [&](const JsonNode& node) {
    node.one_of({"graphs", "libraries", "streams", "arena"});
    result.teardown.push_back(node.text(64));
  });
  const JsonNode flops = root.field("model_flops_per_step");
  result.model_flops_per_step = flops.finite();
  // No step of a model within the bounds above takes more.
  constexpr double kMostFlops = 1e38;
  if (!flops.failed() && (result.model_flops_per_step < 0 || result.model_flops_per_step > kMostFlops))
    flops.fail(fmt::format("is {}, must be between 0 and {}", result.model_flops_per_step, kMostFlops));
}

// Persistent buffers own their bytes; activations and workspaces may share bytes with one another over time
// only.
std::optional<Diagnostic> find_shared_bytes(const Plan& plan) {
  std::vector<const plan::Buffer*> sorted;
  for (const plan::Buffer& buffer : plan.buffers) sorted.push_back(&buffer);
  std::sort(sorted.begin(), sorted.end(), [](const auto* a, const auto* b) {
    return a->offset != b->offset ? a->offset < b->offset : a->id < b->id;
  });
  const auto persistent = [](const plan::Buffer& buffer) {
    return buffer.role != plan::Role::activation && buffer.role != plan::Role::workspace;
  };
  const plan::Buffer* last = nullptr;             // reaches furthest so far
  const plan::Buffer* last_persistent = nullptr;  // the persistent one that reaches furthest
  for (const plan::Buffer* buffer : sorted) {
    const plan::Buffer* other = persistent(*buffer) ? last : last_persistent;
    if (other != nullptr && other->offset + other->bytes() > buffer->offset) {
      return run_problem("RN006", fmt::format("the buffers `{}` and `{}` share bytes of the arena from {}",
                                              other->name, buffer->name, buffer->offset));
    }
    const auto further = [&](const plan::Buffer* than) {
      return than == nullptr || buffer->offset + buffer->bytes() > than->offset + than->bytes();
    };
    if (further(last)) last = buffer;
    if (persistent(*buffer) && further(last_persistent)) last_persistent = buffer;
  }
  return std::nullopt;
}

std::optional<Diagnostic> find_double_name(const Plan& plan) {
  std::vector<std::string_view> names;
  for (const plan::Buffer& buffer : plan.buffers) names.push_back(buffer.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice == names.end()) return std::nullopt;
  return run_problem("RN006", fmt::format("two buffers have the name `{}`", *twice));
}

constexpr const char* kRecompile = "make the plan again with `capstan compile`";

std::optional<Diagnostic> check_digest(std::string_view text, const std::string& digest) {
  const auto damaged = [&](const char* what) { return run_problem("RN004", what, {}, kRecompile); };
  const auto is_hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  if (digest.size() != 64 || !std::all_of(digest.begin(), digest.end(), is_hex)) {
    return damaged("the plan's `digest` is no SHA-256 in 64 hex digits");
  }
  const std::size_t key = text.find("\"digest\"");
  const std::size_t value = key == std::string_view::npos ? key : text.find(digest, key);
  if (value == std::string_view::npos) return damaged("the plan's `digest` is not written plainly");
  Sha256 hash;
  hash.update(text.substr(0, value));
  hash.update(std::string(64, '0'));
  hash.update(text.substr(value + 64));
  if (hash.finish() != digest) {
    return damaged(
        "the plan's text does not match its `digest`: it was edited or damaged after `capstan compile`");
  }
  return std::nullopt;
}

}  // namespace

Outcome<LoadedPlan> read_plan(std::string_view text) {
  if (text.size() > kMaxPlanBytes) {
    return run_problem(
        "RN001", fmt::format("the plan has {} bytes, more than {} are not read", text.size(), kMaxPlanBytes));
  }
  if (deepest_nesting(text) > kMaxDepth) {
    return run_problem("RN002", fmt::format("the plan nests deeper than {} levels", kMaxDepth), {},
                       kRecompile);
  }
  json document;
  try {
    document = json::parse(text);
  } catch (const json::parse_error& error) {
    const bool cut_off = error.byte >= text.size();
    return run_problem(
        "RN002",
        text.empty() ? "the plan is empty"
        : cut_off    ? fmt::format("the plan ends in the middle of its JSON, after {} bytes", text.size())
                     : fmt::format("the plan is no JSON: unexpected text at byte {}", error.byte),
        {}, kRecompile);
  } catch (const json::exception&) {
    return run_problem("RN002", "the plan is no JSON that can be read", {}, kRecompile);
  }
  if (!document.is_object()) {
    return run_problem("RN002",
                       fmt::format("the plan is {} in JSON, must be an object", document.type_name()), {},
                       kRecompile);
  }

  std::optional<FieldProblem> problem;
  const JsonNode root(&document, "", problem);
  const auto field_error = [&] {
    const std::string where =
        problem->path.empty() ? "the plan" : fmt::format("`{}` of the plan", problem->path);
    return run_problem("RN005", fmt::format("{} {}", where, problem->text), {}, kRecompile);
  };
  LoadedPlan loaded;
  // The version first: nothing else of another version can be judged.
  const std::int64_t version = root.field("format_version").integer(0, INT64_MAX);
  if (problem) return field_error();
  if (version != plan::kFormatVersion) {
    return run_problem("RN003",
                       fmt::format("the plan has format version {}, this runtime reads version {}", version,
                                   plan::kFormatVersion),
                       {{"version", version}}, "use `capstan` and `capstan-run` of the same release");
  }
  loaded.digest = root.field("digest").text(256);
  if (problem) return field_error();
  if (auto damaged = check_digest(text, loaded.digest)) return *damaged;

  read_document(root, loaded.plan);
  if (problem) return field_error();
  if (auto twice = find_double_name(loaded.plan)) return *twice;
  if (auto shared = find_shared_bytes(loaded.plan)) return *shared;
  for (const plan::Op& op : loaded.plan.ops) {
    if (const auto wrong = check_op(loaded.plan, op)) {
      return run_problem(
          "RN007", fmt::format("op {} `{}` of the plan: {}", op.id, plan::op_kind_name(op.kind), *wrong), {},
          kRecompile);
    }
  }
  if (const auto wrong = check_order(loaded.plan)) return run_problem("RN008", *wrong, {}, kRecompile);
  return loaded;
}

Outcome<LoadedPlan> load_plan(const std::string& path) {
  const auto refused = [&](const std::string& why) {
    return run_problem("RN001", fmt::format("`{}` cannot be read: {}", path, why), {{"path", path}});
  };
  std::string text;
  std::string reason_not;
  const int opened = path == "-" ? STDIN_FILENO : open_input_file(path, reason_not);
  if (opened < 0) return refused(reason_not);
  std::FILE* file = path == "-" ? stdin : fdopen(opened, "rb");
  if (file == nullptr) {
    ::close(opened);
    return refused(std::error_code(errno, std::generic_category()).message());
  }
  std::vector<char> chunk(1 << 16);
  std::size_t got;
  while ((got = std::fread(chunk.data(), 1, chunk.size(), file)) > 0 && text.size() <= kMaxPlanBytes) {
    text.append(chunk.data(), got);
  }
  const bool failed = std::ferror(file) != 0;
  const int reason = errno;
  if (file != stdin) std::fclose(file);
  if (failed) return refused(std::error_code(reason, std::generic_category()).message());
  Outcome<LoadedPlan> loaded = read_plan(text);
  if (loaded.ok()) loaded.value().text = std::move(text);
  return loaded;
}

}  // namespace capstan::runtime
