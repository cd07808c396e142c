#include "compiler/plan/print.h"

#include <fmt/format.h>

#include <iterator>

namespace capstan::plan {
namespace {

std::string print_shape(const Buffer& buffer) {
  std::string text = std::string(dtype_name(buffer.dtype)) + "[";
  for (std::size_t i = 0; i < buffer.shape.size(); ++i) {
    if (i > 0) text += ",";
    text += std::to_string(buffer.shape[i]);
  }
  return text + "]";
}

std::string print_attribute(const AttributeValue& value) {
  if (const bool* boolean = std::get_if<bool>(&value)) return *boolean ? "true" : "false";
  if (const std::int64_t* integer = std::get_if<std::int64_t>(&value)) return std::to_string(*integer);
  if (const double* floating = std::get_if<double>(&value)) return fmt::format("{}", *floating);
  return std::get<std::string>(value);
}

std::string print_operands(const Plan& plan, const std::vector<BufferId>& ids) {
  // Long lists (all gradients, all parameters) say nothing in full.
  constexpr std::size_t kShown = 8;
  std::string text;
  for (std::size_t i = 0; i < ids.size() && i < kShown; ++i) {
    if (i > 0) text += ", ";
    text += plan.buffers[ids[i]].name;
  }
  if (ids.size() > kShown) text += fmt::format(", ... {} more", ids.size() - kShown);
  return text;
}

std::string print_op(const Plan& plan, const Op& op) {
  std::string text = fmt::format("{:>5}  {:<9} {}", op.id, phase_name(op.phase), op_kind_name(op.kind));
  if (!op.inputs.empty()) text += " " + print_operands(plan, op.inputs);
  text += " -> " + print_operands(plan, op.outputs);
  if (!op.attributes.empty()) {
    text += " {";
    for (std::size_t i = 0; i < op.attributes.size(); ++i) {
      if (i > 0) text += ", ";
      text += op.attributes[i].first + "=" + print_attribute(op.attributes[i].second);
    }
    text += "}";
  }
  if (!op.key.empty()) text += "  # " + op.key;
  return text + "\n";
}

std::string print_segment(const Segment& segment) {
  std::string text = fmt::format("segment {} {}", segment.id, segment_mode_name(segment.mode));
  if (!segment.scope.empty()) text += " " + segment.scope;
  text += std::string(" ") + phase_name(segment.phase);
  if (segment.layer >= 0) text += fmt::format(" of layer {}", segment.layer);
  if (segment.whole_iteration) text += " whole iteration";
  if (!segment.reason.empty()) text += ": " + segment.reason;
  return text + "\n";
}

}  // namespace

std::string print_bytes(std::uint64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB"};
  double amount = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  while (amount >= 1024 && unit + 1 < std::size(kUnits)) {
    amount /= 1024;
    ++unit;
  }
  return fmt::format("{:.2f} {}", amount, kUnits[unit]);
}

std::string print_text(const Plan& plan, const PrintOptions& options) {
  const Dims& d = plan.dims;
  std::string text =
      fmt::format("plan of {}, format {}, backend {}\n", plan.config_name, plan.format_version, plan.backend);
  text += fmt::format(
      "model: {} layers, hidden {}, {} query and {} key heads of {}, ffn {}, vocabulary {} (padded {})\n",
      d.layers, d.hidden, d.heads, d.kv_heads, d.head_dim, d.ffn_hidden, d.vocab, d.padded_vocab);
  text += fmt::format("step: {} micro-batches of {} x {} tokens, {:.6g} model FLOP\n", d.micro_batches,
                      d.micro_batch, d.seq_length, plan.model_flops_per_step);
  text += fmt::format("schedule: {} steps, capture {} after {} eager steps\n", plan.schedule.train_steps,
                      plan.schedule.graph_impl, plan.schedule.warmup_steps);
  if (plan.memory.arena > 0) {
    const MemorySummary& m = plan.memory;
    text += fmt::format(
        "memory: {} in all: parameters {}, masters {}, gradients {}, optimizer {}, activations and "
        "workspaces {}, "
        "inputs and scalars {}\n",
        print_bytes(m.arena), print_bytes(m.parameters), print_bytes(m.masters), print_bytes(m.gradients),
        print_bytes(m.optimizer), print_bytes(m.activations_peak), print_bytes(m.inputs_and_scalars));
  }
  for (const Check& check : plan.checks) {
    text += fmt::format("check: {} after each step ({}{})\n", check.kind, check.key,
                        check.fatal ? ", fatal" : "");
  }
  text += "\n";
  if (plan.segments.empty()) {
    for (const Op& op : plan.ops) text += print_op(plan, op);
  }
  for (const Segment& segment : plan.segments) {
    text += print_segment(segment);
    for (OpId id = segment.first_op; id < segment.end_op; ++id) text += print_op(plan, plan.ops[id]);
  }
  if (!options.buffers) return text;
  text += "\nbuffers\n";
  for (const Buffer& buffer : plan.buffers) {
    text += fmt::format("{:>5}  {:<10} {} {}", buffer.id, role_name(buffer.role), buffer.name,
                        print_shape(buffer));
    if (options.offsets) text += fmt::format(" @{}+{}", buffer.offset, buffer.bytes());
    if (buffer.init.kind == Init::Kind::normal)
      text += fmt::format(" normal({:g}, stream {})", buffer.init.stddev, buffer.init.stream);
    if (buffer.init.kind == Init::Kind::ones) text += " ones";
    text += "\n";
  }
  return text;
}

}  // namespace capstan::plan
