#include "runtime/load/op_checker.h"

// Checks of matrix products and of the ops that are made of them.
namespace capstan::runtime::op_checks {

void check_gemm(Checker& c) {
  const std::int64_t m = c.extent("m"), n = c.extent("n"), k = c.extent("k");
  c.boolean("transpose_a");
  c.boolean("transpose_b");
  const bool accumulate = c.boolean("accumulate");
  const bool bias = c.text("epilogue", {"none", "bias"}) == "bias";
  const std::size_t wanted = 2u + bias + accumulate;
  c.counts(wanted, wanted, 1, 2);
  if (!c.ok()) return;
  c.takes_library_workspace(1);
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
  c.takes_library_workspace(outputs);
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
    c.takes_library_workspace(3);
  } else {
    c.float_in(0, qkv);
    c.counter_in(1);
    c.float_out(0, out);
    c.float_out(1, per_row);
  }
}

void check_quantize_fp8(Checker& c) {
  c.counts(1, 1, 4, 4);
  if (!c.ok()) return;
  const std::int64_t elements = c.input(0).elements(), columns = last_extent(c.input(0));
  c.float_in(0, elements);
  c.quantized(c.output(0), "output 0", elements);
  c.quantized(c.output(1), "output 1", elements);
  if (last_extent(c.output(0)) != columns || last_extent(c.output(1)) != elements / columns)
    return c.fail("output 0 must have the rows of input 0, and output 1 its columns");
  if (c.output(0).dtype != c.output(1).dtype) return c.fail("its two results have different dtypes");
  c.type_out(2, DType::f32, 1);
  c.type_out(3, DType::f32, plan::kLargestPartials);
}

void check_gemm_fp8(Checker& c) {
  const std::int64_t m = c.extent("m"), n = c.extent("n"), k = c.extent("k");
  const bool accumulate = c.boolean("accumulate");
  c.boolean("fast_accumulation");
  const bool bias = c.text("epilogue", {"none", "bias"}) == "bias";
  const std::size_t wanted = 4u + bias + accumulate;
  c.counts(wanted, wanted, 1, 2);
  if (!c.ok()) return;
  c.takes_library_workspace(1);
  c.quantized(c.input(0), "input 0", product({m, k}));
  c.quantized(c.input(1), "input 1", product({n, k}));
  if (c.input(0).dtype == DType::f8e5m2 && c.input(1).dtype == DType::f8e5m2)
    return c.fail("its two factors are both f8e5m2");
  c.type_in(2, DType::f32, 1);
  c.type_in(3, DType::f32, 1);
  if (bias) c.float_in(4, n);
  c.float_out(0, product({m, n}));
  if (accumulate) c.same(0, wanted - 1);
}

void check_linear_cross_entropy(Checker& c) {
  c.counts(4, 4, 4, 5);
  if (!c.ok()) return;
  c.takes_library_workspace(4);
  const std::int64_t hidden = last_extent(c.input(0)), tokens = rows(c.input(0)), columns = rows(c.input(1));
  if (last_extent(c.input(1)) != hidden) return c.fail("input 1 has another width than input 0");
  if (c.input(0).dtype != c.input(1).dtype) return c.fail("inputs 0 and 1 have different dtypes");
  c.integer("vocab", 1, columns);
  c.floating("scale", -1e30, 1e30);
  const std::int64_t chunk = c.integer("chunk_rows", 1, tokens);
  c.float_in(0, product({c.plan().dims.tokens(), hidden}));
  c.float_in(1, product({columns, hidden}));
  c.type_in(2, DType::i32, tokens);
  c.float_in(3, product({columns, hidden}));
  c.same(2, 3);
  c.float_out(0, tokens);
  c.float_out(1, product({tokens, hidden}));
  if (!c.ok()) return;
  if (c.output(1).dtype != c.input(0).dtype || c.output(3).dtype != c.input(0).dtype)
    return c.fail("outputs 1 and 3 must have the dtype of input 0");
  c.scratch_out(3, product({chunk, columns}));
}

}  // namespace capstan::runtime::op_checks
