#include "runtime/load/check_op.h"

#include <vector>

#include "runtime/load/op_checker.h"

namespace capstan::runtime {
namespace {

using namespace op_checks;

void check_load_micro_batch(Checker& c) {
  c.counts(2, 2, 2, 2);
  if (!c.ok()) return;
  const plan::Dims& dims = c.plan().dims;
  c.type_in(0, DType::i32, product({dims.micro_batches, dims.micro_batch, dims.seq_length + 1}));
  c.type_in(1, DType::i64, 1);
  c.type_out(0, DType::i32, product({dims.micro_batch, dims.seq_length}));
  c.type_out(1, DType::i32, product({dims.micro_batch, dims.seq_length}));
}

void check_embedding(Checker& c) {
  c.counts(2, 3, 1, 1);
  if (!c.ok()) return;
  const plan::Dims& dims = c.plan().dims;
  const std::int64_t width = last_extent(c.input(1)), tokens = c.input(0).elements();
  c.type_in(0, DType::i32, dims.tokens());
  c.float_in(1, c.input(1).elements());
  c.float_out(0, product({tokens, width}));
  if (c.inputs() == 3) c.float_in(2, product({dims.seq_length, width}));
  if (rows(c.input(1)) < dims.vocab) c.fail("input 1 has fewer rows than the vocabulary");
}

void check_embedding_backward(Checker& c) {
  c.counts(3, 4, 1, 3);
  if (!c.ok()) return;
  const plan::Dims& dims = c.plan().dims;
  const std::int64_t width = last_extent(c.input(2));
  c.type_in(1, DType::i32, dims.tokens());
  c.float_in(0, product({dims.tokens(), width}));
  c.float_in(2, c.input(2).elements());
  c.same(0, 2);
  if (rows(c.input(2)) < dims.vocab) c.fail("input 2 has fewer rows than the vocabulary");
  std::size_t written = 1;
  if (c.inputs() == 4) {
    c.float_in(3, product({dims.seq_length, width}));
    if (c.outputs() < 2) return c.fail("has an input for the position table's gradient, but no output");
    c.same(1, 3);
    written = 2;
  }
  if (c.outputs() > written + 1)
    c.fail(fmt::format("has {} outputs, needs at most {}", c.outputs(), written + 1));
}

void check_norm(Checker& c, bool centered) {
  const std::size_t parameters = centered ? 2 : 1;
  c.counts(1 + parameters, 1 + parameters, 1 + parameters, 1 + parameters);
  c.floating("eps", 0.0, 1.0);
  if (!c.ok()) return;
  const std::int64_t width = c.input(1).elements(), elements = c.input(0).elements();
  if (elements % width != 0) return c.fail("input 0 is no whole number of rows of the weight's length");
  c.float_in(0, elements);
  for (std::size_t i = 0; i < parameters; ++i) c.float_in(1 + i, width);
  c.float_out(0, elements);
  for (std::size_t i = 0; i < parameters; ++i) c.float_out(1 + i, elements / width);
}

void check_norm_backward(Checker& c, bool centered) {
  const bool accumulates = c.boolean("accumulate_dx");
  const std::size_t fixed = centered ? 7 : 5;
  const std::size_t gradients = centered ? 2 : 1;
  c.counts(fixed + accumulates, fixed + accumulates, 1 + gradients, 2 + gradients);
  if (!c.ok()) return;
  const std::int64_t width = c.input(2).elements(), elements = c.input(0).elements();
  if (elements % width != 0) return c.fail("input 0 is no whole number of rows of the weight's length");
  c.float_in(0, elements);
  c.float_in(1, elements);
  c.float_in(2, width);
  for (std::size_t i = 3; i < 3 + gradients; ++i) c.float_in(i, elements / width);
  for (std::size_t i = 0; i < gradients; ++i) {
    c.float_in(3 + gradients + i, width);
    c.same(1 + i, 3 + gradients + i);
  }
  c.float_out(0, elements);
  if (accumulates) c.same(0, fixed);
  if (c.outputs() == 2 + gradients) {
    c.scratch_out(1 + gradients,
                  product({static_cast<std::int64_t>(gradients), row_chunks(elements / width), width}));
  }
}

void check_swiglu(Checker& c, bool backward) {
  c.counts(backward ? 2 : 1, backward ? 2 : 1, 1, 1);
  if (!c.ok()) return;
  const Buffer& gate_up = c.input(backward ? 1 : 0);
  const std::int64_t all = gate_up.elements();
  if (last_extent(gate_up) % 2 != 0) return c.fail("the last extent of gate_up must be even");
  const Buffer& half = backward ? c.input(0) : c.output(0);
  if (last_extent(half) != last_extent(gate_up) / 2)
    return c.fail("the last extents do not fit: gate_up has twice the other's");
  c.float_in(0, backward ? all / 2 : all);
  if (backward) c.float_in(1, all);
  c.float_out(0, backward ? all : all / 2);
}

/// All operands floating and of one size; `first_inputs` of them, then perhaps the counter.
void check_pointwise(Checker& c, std::size_t inputs, bool counter) {
  const std::size_t wanted = inputs + counter;
  c.counts(wanted, wanted, 1, 1);
  if (!c.ok()) return;
  const std::int64_t elements = c.output(0).elements();
  for (std::size_t i = 0; i < inputs; ++i) c.float_in(i, elements);
  if (counter) c.counter_in(inputs);
  c.float_out(0, elements);
}

void check_cross_entropy(Checker& c, bool backward) {
  c.counts(backward ? 3 : 2, backward ? 3 : 2, backward ? 1 : 2, backward ? 1 : 2);
  if (!c.ok()) return;
  const std::int64_t tokens = c.input(1).elements(), width = last_extent(c.input(0));
  c.type_in(1, DType::i32, c.plan().dims.tokens());
  c.float_in(0, product({tokens, width}));
  c.integer("vocab", 1, width);
  if (backward) {
    c.floating("scale", -1e30, 1e30);
    c.float_in(2, tokens);
    c.float_out(0, product({tokens, width}));
  } else {
    c.float_out(0, tokens);
    c.float_out(1, tokens);
  }
}

void check_accumulate_loss(Checker& c) {
  c.counts(3, 3, 2, 2);
  c.floating("scale", -1e30, 1e30);
  if (!c.ok()) return;
  c.float_in(0, c.input(0).elements());
  c.float_in(1, 1);
  c.type_in(2, DType::i32, 1);
  c.same(0, 1);
  c.same(1, 2);
}

void check_bias_backward(Checker& c) {
  c.counts(2, 2, 1, 2);
  if (!c.ok()) return;
  const std::int64_t width = c.input(1).elements();
  if (c.input(0).elements() % width != 0)
    return c.fail("input 0 is no whole number of rows of the bias's length");
  c.float_in(0, c.input(0).elements());
  c.float_in(1, width);
  c.same(0, 1);
  if (c.outputs() == 2) c.scratch_out(1, product({row_chunks(c.input(0).elements() / width), width}));
}

void check_grad_norm(Checker& c) {
  c.counts(2, std::numeric_limits<std::size_t>::max(), 2, 3);
  if (!c.ok()) return;
  const std::size_t last = c.inputs() - 1;
  for (std::size_t i = 0; i < last; ++i) c.float_in(i, c.input(i).elements());
  c.type_in(last, DType::i32, 1);
  c.float_out(0, 1);
  c.same(1, last);
  if (c.outputs() == 3) c.scratch_out(2, 1024);
}

void check_learning_rate(Checker& c) {
  c.counts(1, 1, 1, 1);
  c.text("style", {"constant", "linear", "cosine", "inverse-square-root"});
  for (const char* name : {"max_lr", "min_lr", "init_lr"}) c.floating(name, 0.0, 1e30);
  c.floating("warmup_steps", 0.0, 1e15);
  c.floating("decay_steps", 0.0, 1e15);
  c.floating("unit", 0.0, 1e15);
  if (!c.ok()) return;
  c.type_in(0, DType::i64, 1);
  c.float_out(0, 1);
}

void check_adamw(Checker& c) {
  c.floating("beta1", 0.0, std::nextafter(1.0, 0.0));
  c.floating("beta2", 0.0, std::nextafter(1.0, 0.0));
  c.floating("eps", 0.0, 1.0);
  c.floating("weight_decay", 0.0, 1e6);
  c.floating("clip_grad", 0.0, 1e30);
  const std::size_t per_input = c.boolean("has_master") ? 5 : 4;
  if (!c.ok()) return;
  if (c.inputs() < 4 + per_input || (c.inputs() - 4) % per_input != 0) {
    return c.fail(fmt::format("has {} inputs, needs 4 and {} for each parameter", c.inputs(), per_input));
  }
  const std::size_t parameters = (c.inputs() - 4) / per_input, per_output = per_input - 1;
  if (c.outputs() != parameters * per_output) {
    return c.fail(fmt::format("has {} outputs, needs {}", c.outputs(), parameters * per_output));
  }
  c.float_in(0, 1);
  c.type_in(1, DType::i64, 1);
  c.float_in(2, 1);
  c.type_in(3, DType::i32, 1);
  for (std::size_t p = 0; p < parameters && c.ok(); ++p) {
    const std::size_t first = 4 + p * per_input;
    const std::int64_t elements = c.input(first).elements();
    for (std::size_t i = 0; i < per_input; ++i) c.float_in(first + i, elements);
    c.same(p * per_output, first);
    for (std::size_t i = 1; i < per_output; ++i) c.same(p * per_output + i, first + i + 1);
  }
}

void check_counters(Checker& c, bool step) {
  c.counts(2, 2, 2, 2);
  if (!c.ok()) return;
  c.type_in(0, DType::i64, 1);
  c.type_in(1, step ? DType::i64 : DType::u64, 1);
  c.same(0, 0);
  c.same(1, 1);
}

void check_kind(Checker& c, OpKind kind) {
  switch (kind) {
    case OpKind::load_micro_batch:
      return check_load_micro_batch(c);
    case OpKind::embedding:
      return check_embedding(c);
    case OpKind::rms_norm:
      return check_norm(c, false);
    case OpKind::layer_norm:
      return check_norm(c, true);
    case OpKind::gemm:
      return check_gemm(c);
    case OpKind::gemm_add:
    case OpKind::gemm_gelu:
    case OpKind::gemm_gelu_backward:
      return check_fused_gemm(c, kind);
    case OpKind::quantize_fp8:
      return check_quantize_fp8(c);
    case OpKind::gemm_fp8:
      return check_gemm_fp8(c);
    case OpKind::linear_cross_entropy:
      return check_linear_cross_entropy(c);
    case OpKind::rope:
      return check_rope(c);
    case OpKind::attention:
      return check_attention(c, false);
    case OpKind::swiglu:
      return check_swiglu(c, false);
    case OpKind::gelu:
      return c.boolean("tanh"), check_pointwise(c, 1, false);
    case OpKind::dropout:
      return c.dropout_attributes(), check_pointwise(c, 1, true);
    case OpKind::dropout_add:
      return c.dropout_attributes(), check_pointwise(c, 2, true);
    case OpKind::add:
      return check_pointwise(c, 2, false);
    case OpKind::cross_entropy:
      return check_cross_entropy(c, false);
    case OpKind::accumulate_loss:
      return check_accumulate_loss(c);
    case OpKind::cross_entropy_backward:
      return check_cross_entropy(c, true);
    case OpKind::rms_norm_backward:
      return check_norm_backward(c, false);
    case OpKind::layer_norm_backward:
      return check_norm_backward(c, true);
    case OpKind::attention_backward:
      return check_attention(c, true);
    case OpKind::swiglu_backward:
      return check_swiglu(c, true);
    case OpKind::gelu_backward:
      return c.boolean("tanh"), check_pointwise(c, 2, false);
    case OpKind::dropout_backward:
      return c.dropout_attributes(), check_pointwise(c, 1, true);
    case OpKind::bias_backward:
      return check_bias_backward(c);
    case OpKind::embedding_backward:
      return check_embedding_backward(c);
    case OpKind::zero:
      return c.counts(0, 0, 1, std::numeric_limits<std::size_t>::max());
    case OpKind::check_finite:
      c.counts(2, 2, 1, 1);
      c.integer("bit", 0, 30);
      if (!c.ok()) return;
      c.float_in(0, c.input(0).elements());
      c.type_in(1, DType::i32, 1);
      return c.same(0, 1);
    case OpKind::grad_norm:
      return check_grad_norm(c);
    case OpKind::learning_rate:
      return check_learning_rate(c);
    case OpKind::adamw:
      return check_adamw(c);
    case OpKind::advance_micro_batch:
      return check_counters(c, false);
    case OpKind::advance_step:
      return check_counters(c, true);
  }
  c.fail("is of no known kind");
}

/// Whether output `output` may stand at the place of input `input` ("in place" in the table).
bool works_in_place(OpKind kind, std::size_t input, std::size_t output) {
  if (output != 0) return false;
  switch (kind) {
    case OpKind::gelu:
    case OpKind::dropout:
    case OpKind::dropout_backward:
    case OpKind::cross_entropy_backward:
      return input == 0;
    case OpKind::dropout_add:
    case OpKind::add:
    case OpKind::gelu_backward:
      return input <= 1;
    case OpKind::swiglu_backward:
      return input == 1;
    default:
      return false;
  }
}

bool share_bytes(const Buffer& a, const Buffer& b) {
  return a.offset < b.offset + b.bytes() && b.offset < a.offset + a.bytes();
}

/// Two buffers that are operands of one op share no byte, unless the op works in place on exactly that pair.
std::optional<std::string> find_overlap(const Plan& plan, const Op& op) {
  // Long operand lists are those of gradients and parameters, each once; this also keeps the search below
  // short.
  for (const auto* list : {&op.inputs, &op.outputs}) {
    std::vector<BufferId> sorted = *list;
    std::sort(sorted.begin(), sorted.end());
    const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
    if (twice == sorted.end() || (list == &op.inputs && list->size() <= 8)) continue;
    return fmt::format("`{}` stands twice in one operand list", plan.buffers[*twice].name);
  }
  struct Place {
    const Buffer* buffer;
    bool output;
    std::size_t index;
  };
  std::vector<Place> places;
  for (std::size_t i = 0; i < op.inputs.size(); ++i)
    places.push_back({&plan.buffers[op.inputs[i]], false, i});
  for (std::size_t i = 0; i < op.outputs.size(); ++i)
    places.push_back({&plan.buffers[op.outputs[i]], true, i});
  std::sort(places.begin(), places.end(),
            [](const Place& a, const Place& b) { return a.buffer->offset < b.buffer->offset; });
  for (std::size_t i = 0; i < places.size(); ++i) {
    for (std::size_t j = i + 1; j < places.size() && share_bytes(*places[i].buffer, *places[j].buffer); ++j) {
      const Place &first = places[i], &second = places[j];
      if (first.buffer == second.buffer) continue;
      const Place &in = first.output ? second : first, &out = first.output ? first : second;
      const bool in_place = in.output != out.output && works_in_place(op.kind, in.index, out.index) &&
                            in.buffer->offset == out.buffer->offset && in.buffer->dtype == out.buffer->dtype;
      if (in_place) continue;
      return fmt::format("its operands `{}` and `{}` share bytes of the arena", first.buffer->name,
                         second.buffer->name);
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> check_op(const Plan& plan, const Op& op) {
  Checker checker(plan, op);
  check_kind(checker, op.kind);
  if (!checker.ok()) return checker.wrong;
  return find_overlap(plan, op);
}

}  // namespace capstan::runtime
