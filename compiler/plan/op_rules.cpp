#include "compiler/plan/op_rules.h"

#include <algorithm>

#include "compiler/plan/op_checker.h"

namespace capstan::plan {
namespace {

using namespace op_table;

void check_load_micro_batch(Checker& c) {
  if (!c.counts(2, 2) || !c.attributes({})) return;
  const Dims& d = c.plan().dims;
  c.shape(c.in(0), {d.micro_batches, d.micro_batch, d.seq_length + 1});
  c.dtype(c.in(0), DType::i32);
  c.scalar(c.in(1), DType::i64);
  for (std::size_t i = 0; i < 2; ++i) {
    c.shape(c.out(i), {d.micro_batch, d.seq_length});
    c.dtype(c.out(i), DType::i32);
  }
}

void check_embedding(Checker& c) {
  if (!c.counts(2, 3, 1, 1) || !c.attributes({})) return;
  c.dtype(c.in(0), DType::i32);
  c.rank(c.in(1), 2);
  if (!c.ok()) return;
  c.shape(c.out(0), {c.in(0).elements(), c.in(1).shape[1]});
  c.dtype(c.out(0), c.in(1).dtype);
  if (c.inputs() == 3) {
    c.shape(c.in(2), {c.plan().dims.seq_length, c.in(1).shape[1]});
    c.dtype(c.in(2), c.in(1).dtype);
  }
}

void check_norm(Checker& c, bool has_mean) {
  if (!c.counts(has_mean ? 3 : 2, has_mean ? 3 : 2) || !c.attributes({{"eps", kFloat}})) return;
  c.rank(c.in(0), 2);
  if (!c.ok()) return;
  const Shape columns = {c.in(0).shape[1]}, rows = {c.in(0).shape[0]};
  for (std::size_t i = 1; i < c.inputs(); ++i) {
    c.shape(c.in(i), columns);
    c.dtype(c.in(i), c.in(0).dtype);
  }
  c.like(c.out(0), c.in(0));
  for (std::size_t i = 1; i < c.outputs(); ++i) c.wide(c.out(i), rows);
}

void check_norm_backward(Checker& c, bool has_mean) {
  if (!c.attributes({{"accumulate_dx", kBool}})) return;
  const bool accumulate = c.op().boolean("accumulate_dx");
  const std::size_t operands = has_mean ? 7 : 5;
  if (!c.counts(operands + (accumulate ? 1 : 0), has_mean ? 4 : 3)) return;
  c.rank(c.in(1), 2);
  if (!c.ok()) return;
  const std::int64_t rows = c.in(1).shape[0], columns = c.in(1).shape[1];
  c.like(c.in(0), c.in(1));
  c.shape(c.in(2), {columns});
  c.wide(c.in(3), {rows});
  if (has_mean) c.wide(c.in(4), {rows});
  const std::size_t dweight = has_mean ? 5 : 4;
  c.updates(dweight, 1);
  c.shape(c.in(dweight), {columns});
  if (has_mean) {
    c.updates(6, 2);
    c.shape(c.in(6), {columns});
  }
  c.like(c.out(0), c.in(1));
  if (accumulate) c.updates(c.inputs() - 1, 0);
  const std::int64_t partial_rows = std::min<std::int64_t>(256, (rows + 15) / 16);
  const Buffer& partial = c.out(c.outputs() - 1);
  c.workspace(partial);
  c.wide(partial, has_mean ? Shape{2, partial_rows, columns} : Shape{partial_rows, columns});
}

void check_swiglu(Checker& c, bool backward) {
  if (!c.counts(backward ? 2 : 1, 1) || !c.attributes({})) return;
  const Buffer& gate_up = c.in(backward ? 1 : 0);
  c.rank(gate_up, 2);
  if (!c.ok()) return;
  c.require(gate_up.shape[1] % 2 == 0, "has an odd number of columns");
  const Shape half = {gate_up.shape[0], gate_up.shape[1] / 2};
  if (backward) {
    c.shape(c.in(0), half);
    c.like(c.out(0), gate_up);
  } else {
    c.shape(c.out(0), half);
    c.dtype(c.out(0), gate_up.dtype);
  }
}

void check_elementwise(Checker& c, std::size_t same_inputs, std::size_t inputs) {
  if (!c.counts(inputs, 1)) return;
  for (std::size_t i = 0; i < same_inputs; ++i) c.like(c.out(0), c.in(i));
}

void check_dropout(Checker& c, std::size_t same_inputs) {
  if (!c.attributes({{"p", kFloat}, {"rng_offset", kInt}})) return;
  c.probability();
  check_elementwise(c, same_inputs, same_inputs + 1);
  if (c.ok()) c.scalar(c.in(same_inputs), DType::u64);
}

void check_cross_entropy(Checker& c, bool backward) {
  if (backward ? !c.attributes({{"vocab", kInt}, {"scale", kFloat}}) : !c.attributes({{"vocab", kInt}}))
    return;
  if (backward ? !c.counts(3, 1) : !c.counts(2, 2)) return;
  c.rank(c.in(0), 2);
  if (!c.ok()) return;
  c.require(c.op().integer("vocab") > 0 && c.op().integer("vocab") <= c.in(0).shape[1],
            "has a vocabulary wider than its logits");
  const std::int64_t rows = c.in(0).shape[0];
  c.dtype(c.in(1), DType::i32);
  c.require(c.in(1).elements() == rows, "has another number of targets than rows");
  if (backward) {
    c.wide(c.in(2), {rows});
    c.like(c.out(0), c.in(0));
  } else {
    c.wide(c.out(0), {rows});
    c.wide(c.out(1), {rows});
  }
}

void check_accumulate_loss(Checker& c) {
  if (!c.counts(3, 2) || !c.attributes({{"scale", kFloat}})) return;
  c.rank(c.in(0), 1);
  c.scalar(c.in(1), c.wide_dtype());
  c.scalar(c.in(2), DType::i32);
  c.updates(1, 0);
  c.updates(2, 1);
}

void check_bias_backward(Checker& c) {
  if (!c.counts(2, 2) || !c.attributes({})) return;
  c.rank(c.in(0), 2);
  if (!c.ok()) return;
  c.shape(c.in(1), {c.in(0).shape[1]});
  c.updates(1, 0);
  c.workspace(c.out(1));
  c.wide(c.out(1), {std::min<std::int64_t>(256, (c.in(0).shape[0] + 15) / 16), c.in(0).shape[1]});
}

void check_embedding_backward(Checker& c) {
  if (!c.counts(3, 4, 1, 3) || !c.attributes({})) return;
  c.rank(c.in(0), 2);
  c.rank(c.in(2), 2);
  if (!c.ok()) return;
  c.dtype(c.in(1), DType::i32);
  c.require(c.in(1).elements() == c.in(0).shape[0], "has another number of tokens than rows");
  if (c.in(2).shape[1] != c.in(0).shape[1]) c.fail("`" + c.in(2).name + "` has another width");
  c.updates(2, 0);
  const std::size_t gradients = c.inputs() - 2;
  c.require(c.outputs() == gradients || c.outputs() == gradients + 1,
            "has another number of outputs than gradients");
  if (!c.ok()) return;
  if (gradients == 2) {
    c.updates(3, 1);
    c.shape(c.in(3), {c.plan().dims.seq_length, c.in(0).shape[1]});
  }
  if (c.outputs() > gradients) {
    const Buffer& order = c.out(gradients);
    c.workspace(order);
    c.dtype(order, DType::i32);
    c.shape(order, {4 * c.in(0).shape[0] + 2 * c.in(2).shape[0] + 2});
  }
}

void check_zero(Checker& c) {
  if (!c.attributes({})) return;
  c.require(c.op().inputs.empty(), "reads something");
  c.require(!c.op().outputs.empty(), "clears nothing");
}

void check_grad_norm(Checker& c) {
  if (!c.attributes({})) return;
  if (!c.counts(2, 1u << 24, 3, 3)) return;
  for (std::size_t i = 0; i + 1 < c.inputs(); ++i) {
    if (c.in(i).role != Role::gradient) c.fail("`" + c.in(i).name + "` is no gradient");
  }
  c.scalar(c.out(0), c.wide_dtype());
  c.scalar(c.out(1), DType::i32);
  c.updates(c.inputs() - 1, 1);
  c.workspace(c.out(2));
  c.wide(c.out(2), {1024});
}

void check_check_finite(Checker& c) {
  if (!c.counts(2, 1) || !c.attributes({{"bit", kInt}})) return;
  c.require(c.op().integer("bit") >= 0 && c.op().integer("bit") < 31,
            "sets a bit that an i32 flag does not have");
  c.scalar(c.in(1), DType::i32);
  c.updates(1, 0);
}

void check_learning_rate(Checker& c) {
  if (!c.counts(1, 1)) return;
  if (!c.attributes({{"style", kText},
                     {"max_lr", kFloat},
                     {"min_lr", kFloat},
                     {"init_lr", kFloat},
                     {"warmup_steps", kFloat},
                     {"decay_steps", kFloat},
                     {"unit", kFloat}})) {
    return;
  }
  const std::string& style = c.op().text("style");
  c.require(style == "constant" || style == "linear" || style == "cosine" || style == "inverse-square-root",
            "has an unknown style");
  c.scalar(c.in(0), DType::i64);
  c.scalar(c.out(0), c.wide_dtype());
}

void check_adamw(Checker& c) {
  if (!c.attributes({{"beta1", kFloat},
                     {"beta2", kFloat},
                     {"eps", kFloat},
                     {"weight_decay", kFloat},
                     {"clip_grad", kFloat},
                     {"has_master", kBool}})) {
    return;
  }
  constexpr std::size_t kScalars = 4;
  const bool has_master = c.op().boolean("has_master");
  const std::size_t reads = has_master ? 5 : 4, writes = reads - 1;
  const std::size_t count = c.inputs() < kScalars ? 0 : (c.inputs() - kScalars) / reads;
  c.require(count > 0 && c.inputs() == kScalars + count * reads && c.outputs() == count * writes,
            "has operands that do not group by parameter");
  if (!c.ok()) return;
  c.scalar(c.in(0), c.wide_dtype());
  c.scalar(c.in(1), DType::i64);
  c.scalar(c.in(2), c.wide_dtype());
  c.scalar(c.in(3), DType::i32);
  for (std::size_t p = 0; p < count && c.ok(); ++p) {
    const std::size_t i = kScalars + p * reads, o = p * writes;
    c.updates(i, o);
    c.gradient_of(c.in(i + 1), c.in(i));
    c.updates(i + 2, o + 1);
    c.updates(i + 3, o + 2);
    for (std::size_t moment = i + 2; moment < i + 4; ++moment) c.wide(c.in(moment), c.in(i).shape);
    if (has_master) {
      c.updates(i + 4, o + 3);
      c.wide(c.in(i + 4), c.in(i).shape);
    }
    if (c.in(i).role != Role::parameter || c.in(i + 1).role != Role::gradient)
      c.fail("`" + c.in(i).name + "` is no parameter, or stands without its gradient");
  }
}

void check_counters(Checker& c, DType first, DType second) {
  if (!c.counts(2, 2) || !c.attributes({})) return;
  c.scalar(c.in(0), first);
  c.scalar(c.in(1), second);
  c.updates(0, 0);
  c.updates(1, 1);
}

}  // namespace

std::string find_operand_problem(const Plan& plan, const Op& op) {
  Checker c(plan, op);
  switch (op.kind) {
    case OpKind::load_micro_batch:
      check_load_micro_batch(c);
      break;
    case OpKind::embedding:
      check_embedding(c);
      break;
    case OpKind::rms_norm:
      check_norm(c, false);
      break;
    case OpKind::layer_norm:
      check_norm(c, true);
      break;
    case OpKind::gemm:
      check_gemm(c);
      break;
    case OpKind::gemm_add:
    case OpKind::gemm_gelu:
    case OpKind::gemm_gelu_backward:
      check_fused_gemm(c);
      break;
    case OpKind::quantize_fp8:
      check_quantize_fp8(c);
      break;
    case OpKind::gemm_fp8:
      check_gemm_fp8(c);
      break;
    case OpKind::linear_cross_entropy:
      check_linear_cross_entropy(c);
      break;
    case OpKind::rope:
      check_rope(c);
      break;
    case OpKind::attention:
      check_attention(c, false);
      break;
    case OpKind::swiglu:
      check_swiglu(c, false);
      break;
    case OpKind::gelu:
      if (c.attributes({{"tanh", kBool}})) check_elementwise(c, 1, 1);
      break;
    case OpKind::dropout:
      check_dropout(c, 1);
      break;
    case OpKind::dropout_add:
      check_dropout(c, 2);
      break;
    case OpKind::add:
      if (c.attributes({})) check_elementwise(c, 2, 2);
      break;
    case OpKind::cross_entropy:
      check_cross_entropy(c, false);
      break;
    case OpKind::accumulate_loss:
      check_accumulate_loss(c);
      break;
    case OpKind::cross_entropy_backward:
      check_cross_entropy(c, true);
      break;
    case OpKind::rms_norm_backward:
      check_norm_backward(c, false);
      break;
    case OpKind::layer_norm_backward:
      check_norm_backward(c, true);
      break;
    case OpKind::attention_backward:
      check_attention(c, true);
      break;
    case OpKind::swiglu_backward:
      check_swiglu(c, true);
      break;
    case OpKind::gelu_backward:
      if (c.attributes({{"tanh", kBool}})) check_elementwise(c, 2, 2);
      break;
    case OpKind::dropout_backward:
      check_dropout(c, 1);
      break;
    case OpKind::bias_backward:
      check_bias_backward(c);
      break;
    case OpKind::embedding_backward:
      check_embedding_backward(c);
      break;
    case OpKind::zero:
      check_zero(c);
      break;
    case OpKind::check_finite:
      check_check_finite(c);
      break;
    case OpKind::grad_norm:
      check_grad_norm(c);
      break;
    case OpKind::learning_rate:
      check_learning_rate(c);
      break;
    case OpKind::adamw:
      check_adamw(c);
      break;
    case OpKind::advance_micro_batch:
      check_counters(c, DType::i64, DType::u64);
      break;
    case OpKind::advance_step:
      check_counters(c, DType::i64, DType::i64);
      break;
  }
  return c.problem;
}

bool may_share(const Op& op, std::size_t input, std::size_t output) {
  if (output != 0) return false;
  switch (op.kind) {
    case OpKind::add:
    case OpKind::dropout_add:
    case OpKind::gelu_backward:
      return input <= 1;
    case OpKind::gelu:
    case OpKind::dropout:
    case OpKind::dropout_backward:
    case OpKind::cross_entropy_backward:
      return input == 0;
    case OpKind::swiglu_backward:
      return input == 1;
    default:
      return false;
  }
}

bool draws_random_numbers(const Op& op) {
  const AttributeValue* p = op.find("p");
  return p != nullptr && std::holds_alternative<double>(*p) && std::get<double>(*p) > 0;
}

}  // namespace capstan::plan
