#include "runtime/load/check_op.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace capstan::runtime {
namespace {

using plan::Buffer;
using plan::BufferId;
using plan::DType;
using plan::Op;
using plan::OpKind;
using plan::Plan;

bool is_floating(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f64 || dtype == DType::bf16 || dtype == DType::f16;
}

/// Product of non-negative factors; nothing when it leaves the range.
std::int64_t product(std::initializer_list<std::int64_t> factors) {
  std::int64_t result = 1;
  for (const std::int64_t factor : factors) {
    if (__builtin_mul_overflow(result, factor, &result)) return std::numeric_limits<std::int64_t>::max();
  }
  return result;
}

/// Checks of one op; the first one that fails is kept.
class Checker {
 public:
  Checker(const Plan& plan, const Op& op) : plan_(plan), op_(op) {}

  std::optional<std::string> wrong;

  std::size_t inputs() const { return op_.inputs.size(); }
  std::size_t outputs() const { return op_.outputs.size(); }
  const Buffer& input(std::size_t i) const { return plan_.buffers[op_.inputs[i]]; }
  const Buffer& output(std::size_t i) const { return plan_.buffers[op_.outputs[i]]; }
  bool ok() const { return !wrong.has_value(); }
  void fail(std::string text) {
    if (ok()) wrong = std::move(text);
  }

  void counts(std::size_t min_in, std::size_t max_in, std::size_t min_out, std::size_t max_out) {
    const auto count = [&](const char* what, std::size_t has, std::size_t low, std::size_t high) {
      if (has >= low && has <= high) return;
      fail(low == high ? fmt::format("has {} {}, needs {}", has, what, low)
                       : fmt::format("has {} {}, needs {} to {}", has, what, low, high));
    };
    count("inputs", inputs(), min_in, max_in);
    count("outputs", outputs(), min_out, max_out);
  }

  std::int64_t integer(const char* name, std::int64_t low, std::int64_t high) {
    const plan::AttributeValue* value = op_.find(name);
    if (value == nullptr) return missing(name), low;
    const std::int64_t* number = std::get_if<std::int64_t>(value);
    if (number == nullptr) return fail(fmt::format("attribute `{}` must be an integer", name)), low;
    if (*number < low || *number > high) {
      return fail(fmt::format("attribute `{}` is {}, must be between {} and {}", name, *number, low, high)),
             low;
    }
    return *number;
  }
  std::int64_t extent(const char* name) { return integer(name, 1, std::int64_t{1} << 40); }
  double floating(const char* name, double low, double high) {
    const plan::AttributeValue* value = op_.find(name);
    if (value == nullptr) return missing(name), low;
    const double* number = std::get_if<double>(value);
    if (number == nullptr)
      return fail(fmt::format("attribute `{}` must be a floating-point number", name)), low;
    if (!(*number >= low && *number <= high)) {
      return fail(fmt::format("attribute `{}` is {}, must be between {} and {}", name, *number, low, high)),
             low;
    }
    return *number;
  }
  bool boolean(const char* name) {
    const plan::AttributeValue* value = op_.find(name);
    if (value == nullptr) return missing(name), false;
    const bool* flag = std::get_if<bool>(value);
    if (flag == nullptr) return fail(fmt::format("attribute `{}` must be a boolean", name)), false;
    return *flag;
  }
  std::string text(const char* name, std::initializer_list<const char*> options) {
    const plan::AttributeValue* value = op_.find(name);
    if (value == nullptr) return missing(name), std::string();
    const std::string* word = std::get_if<std::string>(value);
    if (word == nullptr || std::find(options.begin(), options.end(), *word) == options.end()) {
      return fail(fmt::format("attribute `{}` has no known value", name)), std::string();
    }
    return *word;
  }

  /// `where` reads "input 2" in messages.
  void is_float(const Buffer& buffer, const std::string& where) {
    if (!is_floating(buffer.dtype))
      fail(fmt::format("{} `{}` must hold floating-point numbers", where, buffer.name));
  }
  void is_type(const Buffer& buffer, const std::string& where, DType dtype) {
    if (buffer.dtype != dtype) {
      fail(fmt::format("{} `{}` is {}, must be {}", where, buffer.name, plan::dtype_name(buffer.dtype),
                       plan::dtype_name(dtype)));
    }
  }
  void has(const Buffer& buffer, const std::string& where, std::int64_t elements) {
    if (buffer.elements() != elements) {
      fail(fmt::format("{} `{}` has {} elements, needs {}", where, buffer.name, buffer.elements(), elements));
    }
  }
  void float_in(std::size_t i, std::int64_t elements) {
    float_at(input(i), fmt::format("input {}", i), elements);
  }
  void float_out(std::size_t i, std::int64_t elements) {
    float_at(output(i), fmt::format("output {}", i), elements);
  }
  void type_in(std::size_t i, DType dtype, std::int64_t elements) {
    is_type(input(i), fmt::format("input {}", i), dtype);
    has(input(i), fmt::format("input {}", i), elements);
  }
  void type_out(std::size_t i, DType dtype, std::int64_t elements) {
    is_type(output(i), fmt::format("output {}", i), dtype);
    has(output(i), fmt::format("output {}", i), elements);
  }
  /// Output o is the buffer of input i (updated in place).
  void same(std::size_t o, std::size_t i) {
    if (op_.outputs[o] != op_.inputs[i]) {
      fail(fmt::format("output {} must be the buffer of input {}, which it updates", o, i));
    }
  }
  void dropout_attributes() {
    floating("p", 0.0, std::nextafter(1.0, 0.0));
    integer("rng_offset", 0, std::numeric_limits<std::uint32_t>::max());
  }
  void counter_in(std::size_t i) { type_in(i, DType::u64, 1); }
  /// Scratch of at least the size that the format gives it.
  void scratch_out(std::size_t i, std::int64_t elements) {
    is_float(output(i), fmt::format("output {}", i));
    has_at_least(output(i), fmt::format("output {}", i), elements);
  }
  /// Output i, where there is one more than the op itself needs: bytes for a library of the device.
  void library_workspace(std::size_t i) {
    if (i < outputs()) is_type(output(i), fmt::format("output {}", i), DType::u8);
  }
  void has_at_least(const Buffer& buffer, const std::string& where, std::int64_t elements) {
    if (buffer.elements() < elements) {
      fail(fmt::format("{} `{}` has {} elements, needs at least {}", where, buffer.name, buffer.elements(),
                       elements));
    }
  }

  const Plan& plan() const { return plan_; }

 private:
  void missing(const char* name) { fail(fmt::format("lacks the attribute `{}`", name)); }
  void float_at(const Buffer& buffer, const std::string& where, std::int64_t elements) {
    is_float(buffer, where);
    has(buffer, where, elements);
  }

  const Plan& plan_;
  const Op& op_;
};

std::int64_t last_extent(const Buffer& buffer) {
  return buffer.shape.back();
}
std::int64_t rows(const Buffer& buffer) {
  return buffer.elements() / last_extent(buffer);
}

/// Rows of the partial sums of a column sum over `count` rows.
std::int64_t row_chunks(std::int64_t count) {
  return std::min<std::int64_t>(256, (count + 15) / 16);
}

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

void check_gemm(Checker& c) {
  const std::int64_t m = c.extent("m"), n = c.extent("n"), k = c.extent("k");
  c.boolean("transpose_a");
  c.boolean("transpose_b");
  const bool accumulate = c.boolean("accumulate");
  const bool bias = c.text("epilogue", {"none", "bias"}) == "bias";
  const std::size_t wanted = 2u + bias + accumulate;
  c.counts(wanted, wanted, 1, 2);
  if (!c.ok()) return;
  c.library_workspace(1);
  c.float_in(0, product({m, k}));
  c.float_in(1, product({k, n}));
  if (bias) c.float_in(2, n);
  c.float_out(0, product({m, n}));
  if (accumulate) c.same(0, wanted - 1);
}

void check_fused_gemm(Checker& c, OpKind kind) {
  const std::int64_t m = c.extent("m"), n = c.extent("n"), k = c.extent("k");
  c.boolean("transpose_a");
  c.boolean("transpose_b");
  const bool adds = kind == OpKind::gemm_add, forward = kind == OpKind::gemm_gelu;
  const bool bias = forward || (adds && c.text("epilogue", {"none", "bias"}) == "bias");
  const std::size_t inputs = 2u + bias + !forward, outputs = forward ? 2 : 1;
  c.counts(inputs, inputs, outputs, outputs + 1);
  if (!c.ok()) return;
  c.library_workspace(outputs);
  c.float_in(0, product({m, k}));
  c.float_in(1, product({k, n}));
  if (bias) c.float_in(2, n);
  if (!forward) c.float_in(inputs - 1, product({m, n}));
  for (std::size_t i = 0; i < outputs; ++i) c.float_out(i, product({m, n}));
}

void check_rope(Checker& c) {
  c.counts(1, 1, 1, 1);
  const std::int64_t heads = c.extent("heads"), kv_heads = c.extent("kv_heads"),
                     head_dim = c.extent("head_dim");
  const std::int64_t rotary = c.integer("rotary_dim", 2, head_dim);
  c.extent("seq_length");
  c.floating("base", 1.0, 1e30);
  c.boolean("interleaved");
  c.boolean("inverse");
  if (!c.ok()) return;
  if (rotary % 2 != 0) return c.fail("attribute `rotary_dim` must be even");
  c.float_in(0, product({c.plan().dims.tokens(), heads + 2 * kv_heads, head_dim}));
  c.same(0, 0);
}

void check_attention(Checker& c, bool backward) {
  const std::int64_t batch = c.extent("batch"), length = c.extent("seq_length"), heads = c.extent("heads"),
                     kv_heads = c.extent("kv_heads"), head_dim = c.extent("head_dim");
  c.floating("scale", 0.0, 1e30);
  c.boolean("causal");
  c.dropout_attributes();
  if (backward) {
    c.counts(5, 5, 2, 4);
  } else {
    c.counts(2, 2, 2, 2);
  }
  if (!c.ok()) return;
  if (heads % kv_heads != 0) return c.fail("attribute `heads` must be a multiple of `kv_heads`");
  const std::int64_t tokens = product({batch, length});
  const std::int64_t qkv = product({tokens, heads + 2 * kv_heads, head_dim}),
                     out = product({tokens, heads, head_dim}), per_row = product({batch, heads, length});
  if (backward) {
    c.float_in(0, out);
    c.float_in(1, qkv);
    c.float_in(2, out);
    c.float_in(3, per_row);
    c.counter_in(4);
    c.float_out(0, qkv);
    c.float_out(1, per_row);
    if (c.outputs() >= 3) c.scratch_out(2, qkv);
    c.library_workspace(3);
  } else {
    c.float_in(0, qkv);
    c.counter_in(1);
    c.float_out(0, out);
    c.float_out(1, per_row);
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
