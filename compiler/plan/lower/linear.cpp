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

BufferId forward_linear(Lowering& lowering, const LinearLayer& layer, BufferId input,
                        const std::string& name) {
  const BufferId output = lowering.add_activation(name, layer.out);
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
