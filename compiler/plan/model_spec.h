// What lowering needs to know of a training config, as plain numbers: bind_model makes it from config and
// facts, tests make it directly. Everything the runtime cannot do was refused before; a ModelSpec always
// lowers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/plan/plan.h"

namespace capstan::plan {

enum class Normalization : std::uint8_t { rms_norm, layer_norm };
enum class Activation : std::uint8_t { swiglu, gelu, gelu_tanh };
enum class Positions : std::uint8_t { none, rope, learned };

struct OptimizerSpec {
  double max_lr = 1e-3, min_lr = 0, init_lr = 0;
  std::string decay_style = "linear";        ///< constant | linear | cosine | inverse-square-root
  double warmup_steps = 0, decay_steps = 1;  ///< steps; fractions are possible
  double sample_fraction = 1;                ///< 1 / global batch size: one sample as a fraction of a step
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double weight_decay = 0.01;  ///< of matrices; biases and norms have none
  double clip_grad = 1.0;      ///< 0: off
};

struct RecomputeSpec {
  enum class Granularity : std::uint8_t { none, selective, full } granularity = Granularity::none;
  std::vector<std::string> modules;  ///< selective: "core_attn", "mlp", "layernorm"
  enum class Method : std::uint8_t { uniform, block } method = Method::uniform;  ///< full
  std::int64_t num_layers = 1;  ///< full: layers per unit (uniform), or layers from the first on (block)
};

struct CaptureSpec {
  /// `scoped` captures modules per layer, `iteration` forward and backward of the whole step.
  enum class Extent : std::uint8_t { none, scoped, iteration } extent = Extent::none;
  std::vector<std::string> modules;  ///< scoped: "attn", "mlp"; empty: whole layers
  bool optimizer = false;   ///< the optimizer, too: within the iteration's graph, or as a graph of its own
  bool rng_tracker = true;  ///< random state lives on the device (model.use_te_rng_tracker)
  bool fall_back_to_eager = false;  ///< execute.capture_fallback = "eager"
  /// Config keys that asked ("model.cuda_graph_impl", "model.cuda_graph_scope",
  /// "optimizer.optimizer_cuda_graph").
  std::string impl_key, modules_key, optimizer_key;
};

struct ModelSpec {
  std::string producer, config_name, config_digest;
  std::string backend = "auto";
  Dims dims;
  Normalization normalization = Normalization::layer_norm;
  double norm_eps = 1e-5;
  Activation activation = Activation::gelu;
  Positions positions = Positions::learned;
  double rotary_base = 10000;
  std::int64_t rotary_dim = 0;  ///< rope: rotated columns of each head, even
  bool rotary_interleaved = false;
  bool linear_bias = true;  ///< of the projection and both MLP matrices
  bool qkv_bias = true;
  bool tied_head = true;
  double hidden_dropout = 0, attention_dropout = 0;
  double init_std = 0.02;         ///< weights
  double output_init_std = 0.02;  ///< of the matrices that end a residual branch
  double embedding_init_std = 0.02;

  DType param_dtype = DType::f32;  ///< of parameters and activations: f32, bf16 or (tests) f64
  DType grad_dtype = DType::f32;   ///< of parameter gradients
  /// Products of the layers on fp8 factors, each tensor with its present largest value as scale. `hybrid` has
  /// gradients in f8e5m2, `e4m3` everything in f8e4m3. Extents of the layers are then multiples of 16.
  enum class Fp8 : std::uint8_t { none, hybrid, e4m3 } fp8 = Fp8::none;
  std::int64_t wide_layers_at_start = 0, wide_layers_at_end = 0;  ///< layers without fp8, in fp8 plans
  bool has_masters = false;                                       ///< f32 copies of narrower parameters

  OptimizerSpec optimizer;
  RecomputeSpec recompute;
  CaptureSpec capture;
  bool check_loss = false, check_gradients = false;
  bool deterministic = true;
  Schedule schedule;
  Data data;
  std::uint64_t seed = 1234;
};

/// Dtype of statistics, losses and scalars: f32, or f64 when everything is f64.
inline DType wide_dtype(const ModelSpec& spec) {
  return spec.param_dtype == DType::f64 ? DType::f64 : DType::f32;
}

}  // namespace capstan::plan
