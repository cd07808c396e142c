#include <algorithm>

#include "compiler/plan/lower/lowering.h"

namespace capstan::plan {

LinearLayer declare_linear(Lowering& lowering, const std::string& name, std::int64_t in, std::int64_t out,
                           bool bias, double stddev) {
  LinearLayer layer;
  layer.in = in;
  layer.out = out;
  layer.weight = add_parameter(lowering, name + ".weight", {out, in}, {Init::Kind::normal, stddev, 0}, true);
  if (bias) layer.bias = add_parameter(lowering, name + ".bias", {out}, {Init::Kind::zeros, 0, 0}, false);
  return layer;
}

void add_gemm(Lowering& lowering, const Gemm& gemm) {
  std::vector<BufferId> inputs = {gemm.a, gemm.b};
  if (gemm.bias) inputs.push_back(*gemm.bias);
  if (gemm.accumulate) inputs.push_back(gemm.d);
  lowering.builder.add_op(OpKind::gemm, std::move(inputs), {gemm.d},
                          {{"m", gemm.m},
                           {"n", gemm.n},
                           {"k", gemm.k},
                           {"transpose_a", gemm.transpose_a},
                           {"transpose_b", gemm.transpose_b},
                           {"accumulate", gemm.accumulate},
                           {"epilogue", std::string(gemm.bias ? "bias" : "none")}});
}

Quantized quantize(Lowering& lowering, BufferId from, const std::string& name, DType format) {
  PlanBuilder& builder = lowering.builder;
  const std::vector<std::int64_t> shape = builder.buffer(from).shape;
  Quantized made;
  made.rows = builder.add_buffer(name + ".fp8", format, shape, Role::activation);
  made.columns = builder.add_buffer(name + ".fp8.transposed", format, {shape[1], shape[0]}, Role::activation);
  made.scale = builder.add_buffer(name + ".fp8.scale", DType::f32, {1}, Role::activation);
  const BufferId largest =
      builder.add_buffer(name + ".fp8.largest", DType::f32, {kLargestPartials}, Role::workspace);
  builder.add_op(OpKind::quantize_fp8, {from}, {made.rows, made.columns, made.scale, largest});
  return made;
}

namespace {

/// Whether the layer that is being lowered has fp8 products.
bool is_fp8_layer(const Lowering& lowering) {
  const ModelSpec& spec = lowering.spec;
  const std::int64_t layer = lowering.builder.place.layer;
  return spec.fp8 != ModelSpec::Fp8::none && layer >= spec.wide_layers_at_start &&
         layer < spec.dims.layers - spec.wide_layers_at_end;
}

/// d[m,n] = a b^T of fp8 factors.
struct Fp8Product {
  BufferId a = 0, b = 0, scale_a = 0, scale_b = 0, d = 0;
  std::int64_t m = 0, n = 0, k = 0;
  bool accumulate = false, fast = false;
  std::optional<BufferId> bias = {};
};

void add_fp8_product(Lowering& lowering, const Fp8Product& product) {
  std::vector<BufferId> inputs = {product.a, product.b, product.scale_a, product.scale_b};
  if (product.bias) inputs.push_back(*product.bias);
  if (product.accumulate) inputs.push_back(product.d);
  lowering.builder.add_op(OpKind::gemm_fp8, std::move(inputs), {product.d},
                          {{"m", product.m},
                           {"n", product.n},
                           {"k", product.k},
                           {"accumulate", product.accumulate},
                           {"epilogue", std::string(product.bias ? "bias" : "none")},
                           {"fast_accumulation", product.fast}});
}

}  // namespace

BufferId forward_linear(Lowering& lowering, LinearLayer& layer, BufferId input, const std::string& name) {
  const BufferId output = lowering.add_activation(name, layer.out);
  if (is_fp8_layer(lowering)) {
    layer.quantized_input = quantize(lowering, input, name + ".in", DType::f8e4m3);
    layer.quantized_weight =
        quantize(lowering, lowering.parameter(layer.weight).weight, name + ".weight", DType::f8e4m3);
    Fp8Product product{layer.quantized_input->rows,
                       layer.quantized_weight->rows,
                       layer.quantized_input->scale,
                       layer.quantized_weight->scale,
                       output,
                       lowering.token_count(),
                       layer.out,
                       layer.in};
    product.fast = true;
    if (layer.bias) product.bias = lowering.parameter(*layer.bias).weight;
    add_fp8_product(lowering, product);
    return output;
  }
  Gemm gemm{input,   lowering.parameter(layer.weight).weight, output, lowering.token_count(), layer.out,
            layer.in};
  gemm.transpose_b = true;
  if (layer.bias) gemm.bias = lowering.parameter(*layer.bias).weight;
  add_gemm(lowering, gemm);
  return output;
}

void backward_linear(Lowering& lowering, const LinearLayer& layer, BufferId input, BufferId output_gradient,
                     BufferId input_gradient) {
  const std::int64_t tokens = lowering.token_count();
  if (layer.bias) {
    const BufferId dbias = lowering.parameter(*layer.bias).gradient;
    const BufferId partial = lowering.builder.add_buffer(lowering.builder.buffer(dbias).name + ".partial",
                                                         wide_dtype(lowering.spec),
                                                         {partial_rows(tokens), layer.out}, Role::workspace);
    lowering.builder.add_op(OpKind::bias_backward, {output_gradient, dbias}, {dbias, partial});
  }
  const Parameter& weight = lowering.parameter(layer.weight);
  if (layer.quantized_input) {
    const bool hybrid = lowering.spec.fp8 == ModelSpec::Fp8::hybrid;
    const Quantized dy =
        quantize(lowering, output_gradient, lowering.builder.buffer(weight.gradient).name + ".out",
                 hybrid ? DType::f8e5m2 : DType::f8e4m3);
    const Quantized &x = *layer.quantized_input, &w = *layer.quantized_weight;
    Fp8Product of_weight{dy.columns,      x.columns, dy.scale, x.scale,
                         weight.gradient, layer.out, layer.in, tokens};
    of_weight.accumulate = true;
    add_fp8_product(lowering, of_weight);
    add_fp8_product(lowering, Fp8Product{dy.rows, w.columns, dy.scale, w.scale, input_gradient, tokens,
                                         layer.in, layer.out});
    return;
  }
  Gemm weight_gradient{output_gradient, input, weight.gradient, layer.out, layer.in, tokens};
  weight_gradient.transpose_a = true;
  weight_gradient.accumulate = true;
  add_gemm(lowering, weight_gradient);
  add_gemm(lowering, Gemm{output_gradient, weight.weight, input_gradient, tokens, layer.in, layer.out});
}

std::int64_t partial_rows(std::int64_t tokens) {
  return std::min<std::int64_t>(256, (tokens + 15) / 16);
}

}  // namespace capstan::plan
