#include "compiler/plan/model_flops.h"

namespace capstan::plan {

double model_flops_per_step(const ModelSpec& spec) {
  const Dims& dims = spec.dims;
  const double hidden = static_cast<double>(dims.hidden);
  const double query_width = static_cast<double>(dims.heads * dims.head_dim);
  const double qkv_width = static_cast<double>((dims.heads + 2 * dims.kv_heads) * dims.head_dim);
  const double mlp_matrices = spec.activation == Activation::swiglu ? 3 : 2;
  const double layer_weights = hidden * qkv_width + query_width * hidden +
                               mlp_matrices * hidden * static_cast<double>(dims.ffn_hidden);
  // Scores and values: 2 matrices of S x S x head_dim a head, 2 FLOP each, 3 times (forward, two gradients),
  // half masked.
  const double attention = 6.0 * static_cast<double>(dims.seq_length) * query_width;
  const double per_token = static_cast<double>(dims.layers) * (6.0 * layer_weights + attention) +
                           6.0 * static_cast<double>(dims.padded_vocab) * hidden;
  return per_token * static_cast<double>(dims.tokens()) * static_cast<double>(dims.micro_batches);
}

}  // namespace capstan::plan
