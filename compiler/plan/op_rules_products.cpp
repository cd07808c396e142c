#include "compiler/plan/op_checker.h"

// Rules of matrix products and of the ops that are made of them.
namespace capstan::plan::op_table {

void check_gemm(Checker& c) {
  if (!c.attributes({{"m", kInt},
                     {"n", kInt},
                     {"k", kInt},
                     {"transpose_a", kBool},
                     {"transpose_b", kBool},
                     {"accumulate", kBool},
                     {"epilogue", kText}})) {
    return;
  }
  const Op& op = c.op();
  const bool bias = op.text("epilogue") == "bias", accumulate = op.boolean("accumulate");
  c.require(bias || op.text("epilogue") == "none", "has an unknown epilogue");
  const std::size_t operands = 2u + (bias ? 1 : 0) + (accumulate ? 1 : 0);
  if (!c.counts(operands, operands, 1, 2)) return;
  c.takes_library_workspace(1);
  const std::int64_t m = op.integer("m"), n = op.integer("n"), k = op.integer("k");
  c.shape(c.in(0), op.boolean("transpose_a") ? Shape{k, m} : Shape{m, k});
  c.shape(c.in(1), op.boolean("transpose_b") ? Shape{n, k} : Shape{k, n});
  c.dtype(c.in(1), c.in(0).dtype);
  c.shape(c.out(0), {m, n});
  if (bias) {
    c.shape(c.in(2), {n});
    c.dtype(c.in(2), c.in(0).dtype);
  }
  if (accumulate) c.updates(c.inputs() - 1, 0);
}

/// A product with the point-wise op that follows it.
void check_fused_gemm(Checker& c) {
  const Op& op = c.op();
  const bool adds = op.kind == OpKind::gemm_add, forward = op.kind == OpKind::gemm_gelu;
  if (adds ? !c.attributes({{"m", kInt},
                            {"n", kInt},
                            {"k", kInt},
                            {"transpose_a", kBool},
                            {"transpose_b", kBool},
                            {"epilogue", kText}})
           : !c.attributes(
                 {{"m", kInt}, {"n", kInt}, {"k", kInt}, {"transpose_a", kBool}, {"transpose_b", kBool}})) {
    return;
  }
  const bool bias = forward || (adds && op.text("epilogue") == "bias");
  if (adds) c.require(bias || op.text("epilogue") == "none", "has an unknown epilogue");
  const std::size_t operands = 2u + (bias ? 1 : 0) + (forward ? 0 : 1), results = forward ? 2 : 1;
  if (!c.counts(operands, operands, results, results + 1)) return;
  c.takes_library_workspace(results);
  const std::int64_t m = op.integer("m"), n = op.integer("n"), k = op.integer("k");
  c.shape(c.in(0), op.boolean("transpose_a") ? Shape{k, m} : Shape{m, k});
  c.shape(c.in(1), op.boolean("transpose_b") ? Shape{n, k} : Shape{k, n});
  c.dtype(c.in(1), c.in(0).dtype);
  if (bias) {
    c.shape(c.in(2), {n});
    c.dtype(c.in(2), c.in(0).dtype);
  }
  c.shape(c.out(0), {m, n});
  c.like(forward ? c.out(1) : c.in(c.inputs() - 1), c.out(0));
}

void check_rope(Checker& c) {
  if (!c.counts(1, 1) || !c.attributes({{"heads", kInt},
                                        {"kv_heads", kInt},
                                        {"head_dim", kInt},
                                        {"rotary_dim", kInt},
                                        {"base", kFloat},
                                        {"seq_length", kInt},
                                        {"interleaved", kBool},
                                        {"inverse", kBool}})) {
    return;
  }
  c.updates(0, 0);
  const Op& op = c.op();
  const std::int64_t head_dim = op.integer("head_dim"), rotary = op.integer("rotary_dim");
  c.require(rotary > 0 && rotary <= head_dim && rotary % 2 == 0,
            "rotates an odd number of columns or more than a head has");
  c.require(op.floating("base") > 0, "has a base that is not positive");
  c.shape(c.in(0), {c.plan().dims.tokens(), (op.integer("heads") + 2 * op.integer("kv_heads")) * head_dim});
}

void check_attention(Checker& c, bool backward) {
  if (!c.attributes({{"batch", kInt},
                     {"seq_length", kInt},
                     {"heads", kInt},
                     {"kv_heads", kInt},
                     {"head_dim", kInt},
                     {"scale", kFloat},
                     {"causal", kBool},
                     {"p", kFloat},
                     {"rng_offset", kInt}})) {
    return;
  }
  if (backward ? !c.counts(5, 5, 2, 4) : !c.counts(2, 2)) return;
  c.probability();
  const Op& op = c.op();
  const std::int64_t heads = op.integer("heads"), kv_heads = op.integer("kv_heads"),
                     head_dim = op.integer("head_dim");
  c.require(kv_heads > 0 && heads % kv_heads == 0, "has query heads that its key heads do not divide");
  const std::int64_t tokens = op.integer("batch") * op.integer("seq_length");
  const Shape qkv = {tokens, (heads + 2 * kv_heads) * head_dim}, core = {tokens, heads * head_dim};
  const Shape per_query = {op.integer("batch"), heads, op.integer("seq_length")};
  if (backward) {
    c.shape(c.in(0), core);
    c.shape(c.in(1), qkv);
    c.shape(c.in(2), core);
    c.wide(c.in(3), per_query);
    c.scalar(c.in(4), DType::u64);
    c.like(c.out(0), c.in(1));
    c.workspace(c.out(1));
    c.wide(c.out(1), per_query);
    if (c.outputs() >= 3) {
      c.workspace(c.out(2));
      c.wide(c.out(2), qkv);
    }
    c.takes_library_workspace(3);
  } else {
    c.shape(c.in(0), qkv);
    c.scalar(c.in(1), DType::u64);
    c.shape(c.out(0), core);
    c.dtype(c.out(0), c.in(0).dtype);
    c.wide(c.out(1), per_query);
  }
}

void check_quantize_fp8(Checker& c) {
  if (!c.attributes({}) || !c.counts(1, 4)) return;
  c.rank(c.in(0), 2);
  if (!c.ok()) return;
  const std::int64_t rows = c.in(0).shape[0], columns = c.in(0).shape[1];
  c.quantized(c.out(0));
  c.shape(c.out(0), {rows, columns});
  c.shape(c.out(1), {columns, rows});
  c.dtype(c.out(1), c.out(0).dtype);
  c.scalar(c.out(2), DType::f32);
  c.workspace(c.out(3));
  c.shape(c.out(3), {kLargestPartials});
  c.dtype(c.out(3), DType::f32);
}

void check_gemm_fp8(Checker& c) {
  if (!c.attributes({{"m", kInt},
                     {"n", kInt},
                     {"k", kInt},
                     {"accumulate", kBool},
                     {"epilogue", kText},
                     {"fast_accumulation", kBool}})) {
    return;
  }
  const Op& op = c.op();
  const bool bias = op.text("epilogue") == "bias", accumulate = op.boolean("accumulate");
  c.require(bias || op.text("epilogue") == "none", "has an unknown epilogue");
  const std::size_t operands = 4u + (bias ? 1 : 0) + (accumulate ? 1 : 0);
  if (!c.counts(operands, operands, 1, 2)) return;
  c.takes_library_workspace(1);
  const std::int64_t m = op.integer("m"), n = op.integer("n"), k = op.integer("k");
  c.quantized(c.in(0));
  c.quantized(c.in(1));
  c.shape(c.in(0), {m, k});
  c.shape(c.in(1), {n, k});
  c.require(c.in(0).dtype == DType::f8e4m3 || c.in(1).dtype == DType::f8e4m3, "has two factors in f8e5m2");
  c.scalar(c.in(2), DType::f32);
  c.scalar(c.in(3), DType::f32);
  c.shape(c.out(0), {m, n});
  if (bias) c.shape(c.in(4), {n});
  if (accumulate) c.updates(c.inputs() - 1, 0);
}

/// The head's product, the loss and their backward pass, some rows at a time.
void check_linear_cross_entropy(Checker& c) {
  if (!c.attributes({{"vocab", kInt}, {"scale", kFloat}, {"chunk_rows", kInt}})) return;
  if (!c.counts(4, 4, 4, 5)) return;
  c.takes_library_workspace(4);
  c.rank(c.in(0), 2);
  c.rank(c.in(1), 2);
  if (!c.ok()) return;
  const std::int64_t rows = c.in(0).shape[0], hidden = c.in(0).shape[1], columns = c.in(1).shape[0];
  const std::int64_t vocab = c.op().integer("vocab"), chunk = c.op().integer("chunk_rows");
  c.require(vocab > 0 && vocab <= columns, "has a vocabulary wider than its matrix");
  c.require(chunk > 0 && chunk <= rows, "has chunks of no rows, or of more than there are");
  c.shape(c.in(1), {columns, hidden});
  c.dtype(c.in(1), c.in(0).dtype);
  c.dtype(c.in(2), DType::i32);
  c.require(c.in(2).elements() == rows, "has another number of targets than rows");
  c.gradient_of(c.in(3), c.in(1));
  c.updates(3, 2);
  c.wide(c.out(0), {rows});
  c.like(c.out(1), c.in(0));
  c.workspace(c.out(3));
  c.shape(c.out(3), {chunk, columns});
  c.dtype(c.out(3), c.in(0).dtype);
}

}  // namespace capstan::plan::op_table
