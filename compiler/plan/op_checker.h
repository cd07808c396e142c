// What the rules of the op table are written in: asks about operands and attributes of one op and keeps the
// first answer that is wrong. For the op_rules*.cpp files only.
#pragma once

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "compiler/plan/plan.h"

namespace capstan::plan::op_table {

using Shape = std::vector<std::int64_t>;

enum class AttributeType { boolean, integer, floating, text };

/// Checks one op; the first problem stays.
class Checker {
 public:
  Checker(const Plan& plan, const Op& op) : plan_(plan), op_(op) {}

  std::string problem;

  bool ok() const { return problem.empty(); }
  void require(bool condition, const char* clause) {
    if (!condition) fail(clause);
  }
  /// Callers that put a clause together ask first whether it is needed: ops are many, problems few.
  void fail(std::string clause) {
    if (ok()) problem = std::move(clause);
  }

  /// Operand counts; nothing else may be asked when this fails.
  bool counts(std::size_t inputs_min, std::size_t inputs_max, std::size_t outputs_min,
              std::size_t outputs_max) {
    if (op_.inputs.size() < inputs_min || op_.inputs.size() > inputs_max)
      fail("has " + std::to_string(op_.inputs.size()) + " inputs");
    if (op_.outputs.size() < outputs_min || op_.outputs.size() > outputs_max)
      fail("has " + std::to_string(op_.outputs.size()) + " outputs");
    return ok();
  }
  bool counts(std::size_t inputs, std::size_t outputs) { return counts(inputs, inputs, outputs, outputs); }

  /// Exactly these attributes.
  bool attributes(std::initializer_list<std::pair<const char*, AttributeType>> wanted) {
    if (op_.attributes.size() != wanted.size())
      fail("has " + std::to_string(op_.attributes.size()) + " attributes");
    for (const auto& [name, type] : wanted) {
      const AttributeValue* value = op_.find(name);
      if (value == nullptr || value->index() != static_cast<std::size_t>(type))
        fail(std::string("lacks attribute `") + name + "` or has it with another type");
    }
    for (const auto& [name, value] : op_.attributes) {
      if (const double* number = std::get_if<double>(&value)) {
        if (!std::isfinite(*number)) fail("attribute `" + name + "` is not finite");
      }
    }
    return ok();
  }

  const Buffer& in(std::size_t i) const { return plan_.buffers[op_.inputs[i]]; }
  const Buffer& out(std::size_t i) const { return plan_.buffers[op_.outputs[i]]; }
  std::size_t inputs() const { return op_.inputs.size(); }
  std::size_t outputs() const { return op_.outputs.size(); }

  void shape(const Buffer& buffer, const Shape& wanted) {
    if (buffer.shape != wanted) fail("`" + buffer.name + "` has another shape");
  }
  void dtype(const Buffer& buffer, DType wanted) {
    if (buffer.dtype != wanted) fail("`" + buffer.name + "` has dtype " + dtype_name(buffer.dtype));
  }
  void like(const Buffer& buffer, const Buffer& model) {
    shape(buffer, model.shape);
    dtype(buffer, model.dtype);
  }
  void scalar(const Buffer& buffer, DType wanted) {
    shape(buffer, {1});
    dtype(buffer, wanted);
  }
  /// Output `output` is the buffer of input `input`: updated.
  void updates(std::size_t input, std::size_t output) {
    if (op_.inputs[input] != op_.outputs[output]) fail("`" + in(input).name + "` stands in the inputs only");
  }
  /// Statistics and sums: f32, in f64 plans f64.
  void wide(const Buffer& buffer, const Shape& wanted) {
    shape(buffer, wanted);
    dtype(buffer, wide_dtype());
  }
  DType wide_dtype() const {
    const Buffer* loss = plan_.find_buffer(names::kLoss);
    return loss != nullptr && loss->dtype == DType::f64 ? DType::f64 : DType::f32;
  }
  void rank(const Buffer& buffer, std::size_t wanted) {
    if (buffer.shape.size() != wanted) fail("`" + buffer.name + "` has another rank");
  }
  void workspace(const Buffer& buffer) {
    if (buffer.role != Role::workspace) fail("`" + buffer.name + "` is no workspace");
  }
  /// Output `output`, where there is one more than the op itself needs: bytes for a library of the device.
  void takes_library_workspace(std::size_t output) {
    if (output >= outputs()) return;
    workspace(out(output));
    dtype(out(output), DType::u8);
    rank(out(output), 1);
  }
  void quantized(const Buffer& buffer) {
    if (buffer.dtype != DType::f8e4m3 && buffer.dtype != DType::f8e5m2)
      fail("`" + buffer.name + "` has dtype " + dtype_name(buffer.dtype) + ", not an fp8 one");
  }
  void gradient_of(const Buffer& gradient, const Buffer& weight) { shape(gradient, weight.shape); }
  void probability() {
    const double p = op_.floating("p");
    require(p >= 0 && p < 1, "drops with a probability outside [0, 1)");
    require(op_.integer("rng_offset") >= 0 && op_.integer("rng_offset") <= 0xffffffffll,
            "`rng_offset` has more than 32 bits");
  }
  const Plan& plan() const { return plan_; }
  const Op& op() const { return op_; }

 private:
  const Plan& plan_;
  const Op& op_;
};

inline constexpr AttributeType kBool = AttributeType::boolean, kInt = AttributeType::integer,
                               kFloat = AttributeType::floating, kText = AttributeType::text;

// op_rules_products.cpp
void check_gemm(Checker& c);
void check_fused_gemm(Checker& c);
void check_quantize_fp8(Checker& c);
void check_gemm_fp8(Checker& c);
void check_attention(Checker& c, bool backward);
void check_rope(Checker& c);
void check_linear_cross_entropy(Checker& c);

}  // namespace capstan::plan::op_table
