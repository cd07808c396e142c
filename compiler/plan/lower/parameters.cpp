#include "compiler/plan/lower/lowering.h"

namespace capstan::plan {

std::size_t add_parameter(Lowering& lowering, const std::string& name, const std::vector<std::int64_t>& shape,
                          Init init, bool decays) {
  const ModelSpec& spec = lowering.spec;
  PlanBuilder& builder = lowering.builder;
  const Init zeros{Init::Kind::zeros, 0, 0};
  if (init.kind == Init::Kind::normal) init.stream = lowering.next_init_stream++;

  Parameter parameter;
  parameter.decays = decays;
  parameter.weight = builder.add_buffer(name, spec.param_dtype, shape, Role::parameter, init);
  parameter.gradient = builder.add_buffer(name + ".grad", spec.grad_dtype, shape, Role::gradient, zeros);
  parameter.moment1 = builder.add_buffer(name + ".moment1", wide_dtype(spec), shape, Role::moment1, zeros);
  parameter.moment2 = builder.add_buffer(name + ".moment2", wide_dtype(spec), shape, Role::moment2, zeros);
  if (spec.has_masters) {
    // The same draw, not yet rounded: the parameter is the rounded master from the start.
    parameter.master = builder.add_buffer(name + ".master", DType::f32, shape, Role::master, init);
  }
  lowering.parameters.push_back(parameter);
  return lowering.parameters.size() - 1;
}

void declare_parameters(Lowering& lowering) {
  const ModelSpec& spec = lowering.spec;
  const Dims& dims = spec.dims;
  const Init embedding_init{Init::Kind::normal, spec.embedding_init_std, 0};
  lowering.word_table = add_parameter(lowering, "embedding.word.weight", {dims.padded_vocab, dims.hidden},
                                      embedding_init, true);
  if (spec.positions == Positions::learned) {
    lowering.position_table = add_parameter(lowering, "embedding.position.weight",
                                            {dims.seq_length, dims.hidden}, embedding_init, true);
  }
  const std::int64_t query_width = dims.heads * dims.head_dim;
  const std::int64_t qkv_width = (dims.heads + 2 * dims.kv_heads) * dims.head_dim;
  const std::int64_t fc1_width =
      spec.activation == Activation::swiglu ? 2 * dims.ffn_hidden : dims.ffn_hidden;
  for (std::int64_t layer = 0; layer < dims.layers; ++layer) {
    const std::string attn = layer_name(layer, "attn");
    AttentionBlock attention;
    attention.norm = declare_norm(lowering, attn + ".norm");
    attention.qkv =
        declare_linear(lowering, attn + ".qkv", dims.hidden, qkv_width, spec.qkv_bias, spec.init_std);
    attention.projection = declare_linear(lowering, attn + ".proj", query_width, dims.hidden,
                                          spec.linear_bias, spec.output_init_std);
    lowering.attention.push_back(attention);

    const std::string mlp_name = layer_name(layer, "mlp");
    MlpBlock mlp;
    mlp.norm = declare_norm(lowering, mlp_name + ".norm");
    mlp.fc1 =
        declare_linear(lowering, mlp_name + ".fc1", dims.hidden, fc1_width, spec.linear_bias, spec.init_std);
    mlp.fc2 = declare_linear(lowering, mlp_name + ".fc2", dims.ffn_hidden, dims.hidden, spec.linear_bias,
                             spec.output_init_std);
    lowering.mlp.push_back(mlp);
  }
  lowering.final_norm = declare_norm(lowering, "final_norm");
  if (!spec.tied_head) {
    lowering.head = declare_linear(lowering, "head", dims.hidden, dims.padded_vocab, false, spec.init_std);
  }
}

}  // namespace capstan::plan
