// The state of lowering one model: the plan under construction, its scalars, the gradient that flows along
// the residual stream. One function per module appends that module's forward or backward ops; lower.cpp calls
// them in issue order.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/plan/model_spec.h"
#include "compiler/plan/plan_builder.h"

namespace capstan::plan {

/// A trained tensor and what belongs to it.
struct Parameter {
  BufferId weight = 0, gradient = 0, moment1 = 0, moment2 = 0;
  std::optional<BufferId> master;
  bool decays = false;  ///< weight decay applies
};

/// A tensor in fp8, as it is and transposed, and what its numbers are to be multiplied with.
struct Quantized {
  BufferId rows = 0, columns = 0, scale = 0;
};

/// y = x W^T + b.
struct LinearLayer {
  std::size_t weight = 0;  ///< index into Lowering::parameters
  std::optional<std::size_t> bias;
  std::int64_t in = 0, out = 0;
  std::optional<Quantized> quantized_input = {},
                           quantized_weight = {};  ///< of the forward pass, in fp8 plans
};

struct NormLayer {
  std::size_t weight = 0;
  std::optional<std::size_t> bias;  ///< LayerNorm
};

/// What the backward of a norm reads.
struct NormSaved {
  BufferId input = 0, output = 0, rstd = 0;
  std::optional<BufferId> mean;
};

struct AttentionBlock {
  NormLayer norm;
  LinearLayer qkv, projection;
  NormSaved saved;
  BufferId qkv_out = 0, core_out = 0, lse = 0;
};

struct MlpBlock {
  NormLayer norm;
  LinearLayer fc1, fc2;
  NormSaved saved;
  BufferId fc1_out = 0, activated = 0;
};

struct Lowering {
  const ModelSpec& spec;
  PlanBuilder builder;

  // Scalars and inputs of every plan.
  BufferId batch_tokens = 0, tokens = 0, targets = 0, step = 0, micro_batch_index = 0, rng_counter = 0,
           learning_rate = 0, loss = 0, grad_norm = 0, nonfinite = 0;

  std::vector<Parameter> parameters;  ///< in the order of the forward pass
  std::uint64_t next_init_stream = 0;

  std::size_t word_table = 0;  ///< index of the word embedding
  std::optional<std::size_t> position_table;
  std::optional<LinearLayer> head;  ///< untied head
  std::vector<AttentionBlock> attention;
  std::vector<MlpBlock> mlp;
  NormLayer final_norm;
  NormSaved final_saved;

  BufferId stream = 0;           ///< residual stream: output of the last lowered module
  BufferId stream_gradient = 0;  ///< its gradient, accumulated in place through the backward pass
  BufferId logits = 0, loss_lse = 0;
  BufferId head_input_gradient = 0;  ///< where the head's op makes it in the forward pass

  Lowering(Plan& plan, const ModelSpec& model) : spec(model), builder(plan) {}
  std::int64_t token_count() const { return spec.dims.tokens(); }
  double loss_scale() const {
    return 1.0 / (static_cast<double>(token_count()) * static_cast<double>(spec.dims.micro_batches));
  }
  const Parameter& parameter(std::size_t index) const { return parameters[index]; }

  BufferId add_activation(std::string name, std::int64_t columns) {
    return builder.add_buffer(std::move(name), spec.param_dtype, {token_count(), columns}, Role::activation);
  }
};

/// Dropout sites have one offset each; the backward and a recomputed forward use the site's own.
namespace rng_site {
inline std::int64_t embedding() {
  return 0;
}
inline std::int64_t attention(std::int64_t layer) {
  return 3 * layer + 1;
}
inline std::int64_t attention_residual(std::int64_t layer) {
  return 3 * layer + 2;
}
inline std::int64_t mlp_residual(std::int64_t layer) {
  return 3 * layer + 3;
}
}  // namespace rng_site

// scalars.cpp
void declare_scalars(Lowering& lowering);
// parameters.cpp: weights with gradient, moments, master. `stddev` 0 with `ones` false makes zeros.
std::size_t add_parameter(Lowering& lowering, const std::string& name, const std::vector<std::int64_t>& shape,
                          Init init, bool decays);
void declare_parameters(Lowering& lowering);

// linear.cpp
LinearLayer declare_linear(Lowering& lowering, const std::string& name, std::int64_t in, std::int64_t out,
                           bool bias, double stddev);
/// Appends the forward gemm; gives the output buffer `name`.
BufferId forward_linear(Lowering& lowering, LinearLayer& layer, BufferId input, const std::string& name);
/// Appends bias gradient, weight gradient and (into `input_gradient`) data gradient.
void backward_linear(Lowering& lowering, const LinearLayer& layer, BufferId input, BufferId output_gradient,
                     BufferId input_gradient);
/// Appends the op that makes it.
Quantized quantize(Lowering& lowering, BufferId from, const std::string& name, DType format);
/// The gemm op itself, d[m,n] = op(a) op(b) (+ bias) (+ d).
struct Gemm {
  BufferId a = 0, b = 0, d = 0;
  std::int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false, accumulate = false;
  std::optional<BufferId> bias = {};
};
void add_gemm(Lowering& lowering, const Gemm& gemm);
/// Rows of the partial sums of a reduction over tokens (docs/plan-format.md, "Memory").
std::int64_t partial_rows(std::int64_t tokens);

// norm.cpp
NormLayer declare_norm(Lowering& lowering, const std::string& name);
/// Reads the residual stream; gives what the backward needs (output among it).
NormSaved forward_norm(Lowering& lowering, const NormLayer& norm, const std::string& name);
/// Adds to the stream's gradient, or starts it when `starts_stream`.
void backward_norm(Lowering& lowering, const NormLayer& norm, const NormSaved& saved,
                   BufferId output_gradient, const std::string& name, bool starts_stream);

// residual.cpp: stream = stream + dropout(branch)
void forward_residual(Lowering& lowering, BufferId branch, std::int64_t rng_offset, const std::string& name);
/// Gradient of the branch: the stream's own buffer when there is no dropout.
BufferId backward_residual(Lowering& lowering, std::int64_t rng_offset, const std::string& name);

// embedding.cpp, attention.cpp, mlp.cpp, head.cpp, optimizer.cpp, step.cpp
void forward_embedding(Lowering& lowering);
void backward_embedding(Lowering& lowering);
void forward_attention(Lowering& lowering, std::int64_t layer);
void backward_attention(Lowering& lowering, std::int64_t layer);
void forward_mlp(Lowering& lowering, std::int64_t layer);
void backward_mlp(Lowering& lowering, std::int64_t layer);
void forward_head(Lowering& lowering);
void backward_head(Lowering& lowering);
void begin_step(Lowering& lowering);
void end_micro_batch(Lowering& lowering);
void update_parameters(Lowering& lowering);
void end_step(Lowering& lowering);

/// "layer.3.attn"
std::string layer_name(std::int64_t layer, const char* module);

}  // namespace capstan::plan
