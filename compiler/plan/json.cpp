#include "compiler/plan/json.h"

#include <array>
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <stdexcept>
#include <utility>

#include "grammar/source/sha256.h"

namespace capstan::plan {
namespace {

constexpr std::size_t kDigestLength = 64;
constexpr std::string_view kDigestOpening = "\"digest\": \"";

const char* init_kind_name(Init::Kind kind) {
  switch (kind) {
    case Init::Kind::none:
      return "none";
    case Init::Kind::zeros:
      return "zeros";
    case Init::Kind::ones:
      return "ones";
    case Init::Kind::normal:
      return "normal";
  }
  return "?";
}

class Writer {
 public:
  std::string text;

  void raw(std::string_view piece) { text.append(piece); }

  void string(std::string_view value) {
    text.push_back('"');
    for (const char c : value) {
      switch (c) {
        case '"':
          text.append("\\\"");
          break;
        case '\\':
          text.append("\\\\");
          break;
        case '\n':
          text.append("\\n");
          break;
        case '\t':
          text.append("\\t");
          break;
        case '\r':
          text.append("\\r");
          break;
        default:
          if (static_cast<unsigned char>(c) < 0x20) {
            constexpr char kHexDigits[] = "0123456789abcdef";
            text.append("\\u00");
            text.push_back(kHexDigits[static_cast<unsigned char>(c) >> 4]);
            text.push_back(kHexDigits[c & 0xf]);
          } else {
            text.push_back(c);
          }
      }
    }
    text.push_back('"');
  }

  template <typename Integer>
  void integer(Integer value) {
    std::array<char, 24> digits;
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
    text.append(digits.data(), end);
  }

  /// Shortest form that reads back to the same double; always with `.` or `e`, so that a reader tells it from
  /// an integer.
  void floating(double value) {
    if (!std::isfinite(value)) throw std::invalid_argument("a plan holds a number that is not finite");
    std::array<char, 40> digits;
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
    const std::string_view written(digits.data(), static_cast<std::size_t>(end - digits.data()));
    text.append(written);
    if (written.find_first_of(".e") == std::string_view::npos) text.append(".0");
  }

  void boolean(bool value) { text.append(value ? "true" : "false"); }

  void key(std::string_view name) {
    text.push_back('"');
    text.append(name);
    text.append("\": ");
  }

  template <typename Items, typename WriteItem>
  void inline_list(const Items& items, WriteItem write_item) {
    text.push_back('[');
    bool first = true;
    for (const auto& item : items) {
      if (!first) text.append(", ");
      first = false;
      write_item(item);
    }
    text.push_back(']');
  }

  /// One item a line.
  template <typename Items, typename WriteItem>
  void lines(const Items& items, WriteItem write_item) {
    if (items.empty()) {
      text.append("[]");
      return;
    }
    text.append("[\n");
    bool first = true;
    for (const auto& item : items) {
      if (!first) text.append(",\n");
      first = false;
      text.append("    ");
      write_item(item);
    }
    text.append("\n  ]");
  }
};

void write_buffer(Writer& out, const Buffer& buffer) {
  out.raw("{\"id\": ");
  out.integer(buffer.id);
  out.raw(", \"name\": ");
  out.string(buffer.name);
  out.raw(", \"dtype\": ");
  out.string(dtype_name(buffer.dtype));
  out.raw(", \"shape\": ");
  out.inline_list(buffer.shape, [&](std::int64_t extent) { out.integer(extent); });
  out.raw(", \"role\": ");
  out.string(role_name(buffer.role));
  out.raw(", \"init\": {\"kind\": ");
  out.string(init_kind_name(buffer.init.kind));
  out.raw(", \"stddev\": ");
  out.floating(buffer.init.stddev);
  out.raw(", \"stream\": ");
  out.integer(buffer.init.stream);
  out.raw("}, \"offset\": ");
  out.integer(buffer.offset);
  out.raw("}");
}

void write_attribute(Writer& out, const AttributeValue& value) {
  if (const bool* boolean = std::get_if<bool>(&value)) return out.boolean(*boolean);
  if (const std::int64_t* integer = std::get_if<std::int64_t>(&value)) return out.integer(*integer);
  if (const double* floating = std::get_if<double>(&value)) return out.floating(*floating);
  out.string(std::get<std::string>(value));
}

void write_op(Writer& out, const Op& op) {
  out.raw("{\"id\": ");
  out.integer(op.id);
  out.raw(", \"kind\": ");
  out.string(op_kind_name(op.kind));
  out.raw(", \"phase\": ");
  out.string(phase_name(op.phase));
  out.raw(", \"stage\": ");
  out.string(stage_name(op.stage));
  out.raw(", \"inputs\": ");
  out.inline_list(op.inputs, [&](BufferId id) { out.integer(id); });
  out.raw(", \"outputs\": ");
  out.inline_list(op.outputs, [&](BufferId id) { out.integer(id); });
  out.raw(", \"attributes\": {");
  bool first = true;
  for (const auto& [name, value] : op.attributes) {
    if (!first) out.raw(", ");
    first = false;
    out.key(name);
    write_attribute(out, value);
  }
  out.raw("}, \"module\": ");
  out.string(op.module);
  out.raw(", \"layer\": ");
  out.integer(op.layer);
  out.raw(", \"key\": ");
  out.string(op.key);
  out.raw("}");
}

void write_segment(Writer& out, const Segment& segment) {
  out.raw("{\"id\": ");
  out.integer(segment.id);
  out.raw(", \"mode\": ");
  out.string(segment_mode_name(segment.mode));
  out.raw(", \"scope\": ");
  out.string(segment.scope);
  out.raw(", \"reason\": ");
  out.string(segment.reason);
  out.raw(", \"first_op\": ");
  out.integer(segment.first_op);
  out.raw(", \"end_op\": ");
  out.integer(segment.end_op);
  out.raw(", \"whole_iteration\": ");
  out.boolean(segment.whole_iteration);
  out.raw(", \"layer\": ");
  out.integer(segment.layer);
  out.raw(", \"phase\": ");
  out.string(phase_name(segment.phase));
  out.raw("}");
}

void write_check(Writer& out, const Check& check) {
  out.raw("{\"kind\": ");
  out.string(check.kind);
  out.raw(", \"flag\": ");
  out.integer(check.flag);
  out.raw(", \"key\": ");
  out.string(check.key);
  out.raw(", \"fatal\": ");
  out.boolean(check.fatal);
  out.raw("}");
}

template <typename Integer>
void write_fields(Writer& out, std::initializer_list<std::pair<const char*, Integer>> fields) {
  bool first = true;
  for (const auto& [name, value] : fields) {
    if (!first) out.raw(", ");
    first = false;
    out.key(name);
    out.integer(value);
  }
}

}  // namespace

std::string write_json(const Plan& plan) {
  Writer out;
  out.text.reserve(512 + 160 * plan.buffers.size() + 320 * plan.ops.size());
  out.raw("{\n  \"format_version\": ");
  out.integer(plan.format_version);
  out.raw(",\n  ");
  out.raw(kDigestOpening);
  const std::size_t digest_at = out.text.size();
  out.raw(std::string(kDigestLength, '0'));
  out.raw("\",\n  \"producer\": ");
  out.string(plan.producer);
  out.raw(",\n  \"config_name\": ");
  out.string(plan.config_name);
  out.raw(",\n  \"config_digest\": ");
  out.string(plan.config_digest);
  out.raw(",\n  \"backend\": ");
  out.string(plan.backend);
  out.raw(",\n  \"deterministic\": ");
  out.boolean(plan.deterministic);

  const Dims& dims = plan.dims;
  out.raw(",\n  \"dims\": {");
  write_fields<std::int64_t>(out, {{"layers", dims.layers},
                                   {"hidden", dims.hidden},
                                   {"heads", dims.heads},
                                   {"kv_heads", dims.kv_heads},
                                   {"head_dim", dims.head_dim},
                                   {"ffn_hidden", dims.ffn_hidden},
                                   {"vocab", dims.vocab},
                                   {"padded_vocab", dims.padded_vocab},
                                   {"seq_length", dims.seq_length},
                                   {"micro_batch", dims.micro_batch},
                                   {"micro_batches", dims.micro_batches}});

  out.raw("},\n  \"schedule\": {\"train_steps\": ");
  out.integer(plan.schedule.train_steps);
  out.raw(", \"warmup_steps\": ");
  out.integer(plan.schedule.warmup_steps);
  out.raw(", \"graph_impl\": ");
  out.string(plan.schedule.graph_impl);
  out.raw(", \"save_every\": ");
  out.integer(plan.schedule.save_every);
  out.raw(", \"log_every\": ");
  out.integer(plan.schedule.log_every);

  out.raw("},\n  \"data\": {\"kind\": ");
  out.string(plan.data.kind);
  out.raw(", \"path\": ");
  out.string(plan.data.path);
  out.raw(", \"seed\": ");
  out.integer(plan.data.seed);

  out.raw("},\n  \"seed\": ");
  out.integer(plan.seed);
  out.raw(",\n  \"buffers\": ");
  out.lines(plan.buffers, [&](const Buffer& buffer) { write_buffer(out, buffer); });
  out.raw(",\n  \"ops\": ");
  out.lines(plan.ops, [&](const Op& op) { write_op(out, op); });
  out.raw(",\n  \"segments\": ");
  out.lines(plan.segments, [&](const Segment& segment) { write_segment(out, segment); });
  out.raw(",\n  \"checks\": ");
  out.lines(plan.checks, [&](const Check& check) { write_check(out, check); });
  out.raw(",\n  \"teardown\": ");
  out.inline_list(plan.teardown, [&](const std::string& step) { out.string(step); });

  const MemorySummary& memory = plan.memory;
  out.raw(",\n  \"memory\": {");
  write_fields<std::uint64_t>(out, {{"arena", memory.arena},
                                    {"parameters", memory.parameters},
                                    {"masters", memory.masters},
                                    {"gradients", memory.gradients},
                                    {"optimizer", memory.optimizer},
                                    {"activations_peak", memory.activations_peak},
                                    {"workspaces_peak", memory.workspaces_peak},
                                    {"inputs_and_scalars", memory.inputs_and_scalars}});
  out.raw("},\n  \"model_flops_per_step\": ");
  out.floating(plan.model_flops_per_step);
  out.raw("\n}\n");

  out.text.replace(digest_at, kDigestLength, sha256(out.text));
  return std::move(out.text);
}

}  // namespace capstan::plan
