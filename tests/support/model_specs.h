// Model specs for tests: small models that use every feature of lowering, and random ones.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <string>

#include "compiler/plan/model_spec.h"

namespace capstan::plan {

/// Two layers, RMSNorm, RoPE, grouped queries, SwiGLU, dropout, tied head; f32.
inline ModelSpec small_llama() {
  ModelSpec spec;
  spec.producer = "capstan test";
  spec.config_name = "small_llama.toml";
  spec.config_digest = std::string(64, '0');
  spec.backend = "host";
  spec.dims = {2, 16, 4, 2, 4, 24, 31, 32, 8, 2, 2};
  spec.normalization = Normalization::rms_norm;
  spec.activation = Activation::swiglu;
  spec.positions = Positions::rope;
  spec.rotary_dim = 4;
  spec.linear_bias = false;
  spec.qkv_bias = false;
  spec.hidden_dropout = 0.1;
  spec.attention_dropout = 0.1;
  spec.output_init_std = 0.02 / std::sqrt(2.0 * 2);
  spec.schedule = {20, 3, "none", 0, 1};
  spec.data = {"random", "", 1};
  spec.optimizer.decay_steps = 20;
  return spec;
}

/// Two layers, LayerNorm, learned positions, GELU, biases, untied head, no dropout; bf16 with f32 masters.
inline ModelSpec small_gpt() {
  ModelSpec spec = small_llama();
  spec.config_name = "small_gpt.toml";
  spec.dims.kv_heads = 4;
  spec.normalization = Normalization::layer_norm;
  spec.activation = Activation::gelu;
  spec.positions = Positions::learned;
  spec.linear_bias = true;
  spec.qkv_bias = true;
  spec.tied_head = false;
  spec.hidden_dropout = 0;
  spec.attention_dropout = 0;
  spec.param_dtype = DType::bf16;
  spec.has_masters = true;
  return spec;
}

inline ModelSpec with_scopes(ModelSpec spec, std::vector<std::string> modules) {
  spec.capture.extent = CaptureSpec::Extent::scoped;
  spec.capture.modules = std::move(modules);
  spec.capture.impl_key = "model.cuda_graph_impl";
  spec.capture.modules_key = "model.cuda_graph_scope";
  spec.schedule.graph_impl = "transformer_engine";
  return spec;
}

inline ModelSpec with_full_iteration(ModelSpec spec, bool optimizer) {
  spec.capture.extent = CaptureSpec::Extent::iteration;
  spec.capture.optimizer = optimizer;
  spec.capture.impl_key = "model.cuda_graph_impl";
  spec.capture.modules_key = "model.cuda_graph_scope";
  spec.capture.optimizer_key = "optimizer.optimizer_cuda_graph";
  spec.schedule.graph_impl = "full_iteration";
  return spec;
}

/// Any combination that lowering accepts, small enough to look at.
inline ModelSpec random_spec(std::mt19937_64& random) {
  const auto pick = [&](std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(high - low + 1));
  };
  const auto flip = [&] { return pick(0, 1) == 1; };
  ModelSpec spec = flip() ? small_llama() : small_gpt();
  Dims& dims = spec.dims;
  dims.layers = pick(1, 6);
  dims.kv_heads = pick(1, 3);
  dims.heads = dims.kv_heads * pick(1, 3);
  dims.head_dim = 2 * pick(1, 8);
  dims.hidden = pick(1, 40);
  dims.ffn_hidden = pick(1, 50);
  dims.vocab = pick(2, 70);
  dims.padded_vocab = dims.vocab + pick(0, 9);
  dims.seq_length = pick(1, 20);
  dims.micro_batch = pick(1, 3);
  dims.micro_batches = pick(1, 3);
  spec.normalization = flip() ? Normalization::rms_norm : Normalization::layer_norm;
  spec.activation = static_cast<Activation>(pick(0, 2));
  spec.positions = static_cast<Positions>(pick(0, 2));
  spec.rotary_dim = 2 * pick(1, dims.head_dim / 2);
  spec.rotary_interleaved = flip();
  spec.linear_bias = flip();
  spec.qkv_bias = flip();
  spec.tied_head = flip();
  spec.hidden_dropout = flip() ? 0.0 : 0.2;
  spec.attention_dropout = flip() ? 0.0 : 0.3;
  spec.check_loss = flip();
  spec.check_gradients = flip();
  const std::int64_t precision = pick(0, 3);
  spec.param_dtype = precision == 0 ? DType::f32 : precision == 1 ? DType::f64 : DType::bf16;
  spec.has_masters = precision >= 2;
  spec.grad_dtype = precision == 1 ? DType::f64 : precision == 3 ? DType::bf16 : DType::f32;
  const std::int64_t recompute = pick(0, 3);
  if (recompute == 1) {
    spec.recompute.granularity = RecomputeSpec::Granularity::selective;
    for (const char* module : {"core_attn", "mlp", "layernorm"}) {
      if (flip()) spec.recompute.modules.push_back(module);
    }
  } else if (recompute >= 2) {
    spec.recompute.granularity = RecomputeSpec::Granularity::full;
    spec.recompute.method = recompute == 2 ? RecomputeSpec::Method::uniform : RecomputeSpec::Method::block;
    spec.recompute.num_layers = pick(1, dims.layers);
  }
  const std::int64_t capture = pick(0, 3);
  if (capture == 1 && spec.recompute.granularity != RecomputeSpec::Granularity::full) {
    spec = with_scopes(spec, {});
    for (const char* module : {"attn", "mlp"}) {
      if (flip()) spec.capture.modules.push_back(module);
    }
    spec.capture.optimizer = flip();
    spec.capture.optimizer_key = "optimizer.optimizer_cuda_graph";
  } else if (capture >= 2) {
    spec = with_full_iteration(spec, capture == 3);
  }
  return spec;
}

}  // namespace capstan::plan
