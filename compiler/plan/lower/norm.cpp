#include "compiler/plan/lower/lowering.h"

namespace capstan::plan {

NormLayer declare_norm(Lowering& lowering, const std::string& name) {
  const std::vector<std::int64_t> shape = {lowering.spec.dims.hidden};
  NormLayer norm;
  norm.weight = add_parameter(lowering, name + ".weight", shape, {Init::Kind::ones, 0, 0}, false);
  if (lowering.spec.normalization == Normalization::layer_norm) {
    norm.bias = add_parameter(lowering, name + ".bias", shape, {Init::Kind::zeros, 0, 0}, false);
  }
  return norm;
}

NormSaved forward_norm(Lowering& lowering, const NormLayer& norm, const std::string& name) {
  PlanBuilder& builder = lowering.builder;
  const DType wide = wide_dtype(lowering.spec);
  const std::vector<std::int64_t> per_token = {lowering.token_count()};
  NormSaved saved;
  saved.input = lowering.stream;
  saved.output = lowering.add_activation(name + ".out", lowering.spec.dims.hidden);
  const BufferId weight = lowering.parameter(norm.weight).weight;
  const Attributes attributes = {{"eps", lowering.spec.norm_eps}};
  if (norm.bias) {
    saved.mean = builder.add_buffer(name + ".mean", wide, per_token, Role::activation);
    saved.rstd = builder.add_buffer(name + ".rstd", wide, per_token, Role::activation);
    builder.add_op(OpKind::layer_norm, {saved.input, weight, lowering.parameter(*norm.bias).weight},
                   {saved.output, *saved.mean, saved.rstd}, attributes);
  } else {
    saved.rstd = builder.add_buffer(name + ".rstd", wide, per_token, Role::activation);
    builder.add_op(OpKind::rms_norm, {saved.input, weight}, {saved.output, saved.rstd}, attributes);
  }
  return saved;
}

void backward_norm(Lowering& lowering, const NormLayer& norm, const NormSaved& saved,
                   BufferId output_gradient, const std::string& name, bool starts_stream) {
  PlanBuilder& builder = lowering.builder;
  const std::int64_t hidden = lowering.spec.dims.hidden;
  if (starts_stream) lowering.stream_gradient = lowering.add_activation("stream.grad", hidden);
  const BufferId dx = lowering.stream_gradient;
  const Parameter& weight = lowering.parameter(norm.weight);
  const std::int64_t rows = partial_rows(lowering.token_count());

  std::vector<BufferId> inputs = {output_gradient, saved.input, weight.weight};
  std::vector<BufferId> outputs = {dx, weight.gradient};
  std::vector<std::int64_t> partial_shape = {rows, hidden};
  if (norm.bias) {
    const BufferId dbias = lowering.parameter(*norm.bias).gradient;
    inputs.insert(inputs.end(), {*saved.mean, saved.rstd, weight.gradient, dbias});
    outputs.push_back(dbias);
    partial_shape.insert(partial_shape.begin(), 2);
  } else {
    inputs.insert(inputs.end(), {saved.rstd, weight.gradient});
  }
  if (!starts_stream) inputs.push_back(dx);
  outputs.push_back(
      builder.add_buffer(name + ".partial", wide_dtype(lowering.spec), partial_shape, Role::workspace));
  builder.add_op(norm.bias ? OpKind::layer_norm_backward : OpKind::rms_norm_backward, std::move(inputs),
                 std::move(outputs), {{"accumulate_dx", !starts_stream}});
}

}  // namespace capstan::plan
