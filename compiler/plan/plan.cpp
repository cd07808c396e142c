#include "compiler/plan/plan.h"

#include <stdexcept>

namespace capstan::plan {

std::uint64_t size_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return 4;
    case DType::f64:
      return 8;
    case DType::bf16:
    case DType::f16:
      return 2;
    case DType::i32:
      return 4;
    case DType::i64:
      return 8;
    case DType::u8:
      return 1;
    case DType::u64:
      return 8;
    case DType::f8e4m3:
    case DType::f8e5m2:
      return 1;
  }
  return 0;
}

const char* dtype_name(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "f32";
    case DType::f64:
      return "f64";
    case DType::bf16:
      return "bf16";
    case DType::f16:
      return "f16";
    case DType::i32:
      return "i32";
    case DType::i64:
      return "i64";
    case DType::u8:
      return "u8";
    case DType::u64:
      return "u64";
    case DType::f8e4m3:
      return "f8e4m3";
    case DType::f8e5m2:
      return "f8e5m2";
  }
  return "?";
}

const char* op_kind_name(OpKind kind) {
  switch (kind) {
#define CAPSTAN_OP(name) \
  case OpKind::name:     \
    return #name;
#include "compiler/plan/op_kinds.def"
#undef CAPSTAN_OP
  }
  return "?";
}

const char* role_name(Role role) {
  switch (role) {
    case Role::parameter:
      return "parameter";
    case Role::master:
      return "master";
    case Role::gradient:
      return "gradient";
    case Role::moment1:
      return "moment1";
    case Role::moment2:
      return "moment2";
    case Role::input:
      return "input";
    case Role::scalar:
      return "scalar";
    case Role::activation:
      return "activation";
    case Role::workspace:
      return "workspace";
  }
  return "?";
}

const char* phase_name(Phase phase) {
  switch (phase) {
    case Phase::forward:
      return "forward";
    case Phase::recompute:
      return "recompute";
    case Phase::backward:
      return "backward";
    case Phase::optimizer:
      return "optimizer";
    case Phase::bookkeeping:
      return "bookkeeping";
  }
  return "?";
}

const char* stage_name(Stage stage) {
  switch (stage) {
    case Stage::step_begin:
      return "step_begin";
    case Stage::micro_batch:
      return "micro_batch";
    case Stage::step_end:
      return "step_end";
  }
  return "?";
}

const char* segment_mode_name(SegmentMode mode) {
  return mode == SegmentMode::eager ? "eager" : "graph";
}

std::int64_t Buffer::elements() const {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  return count;
}

std::uint64_t Buffer::bytes() const {
  return static_cast<std::uint64_t>(elements()) * size_of(dtype);
}

const AttributeValue* Op::find(std::string_view name) const {
  for (const auto& [key_name, value] : attributes) {
    if (key_name == name) return &value;
  }
  return nullptr;
}

namespace {

template <typename T>
const T& get_attribute(const Op& op, std::string_view name) {
  const AttributeValue* value = op.find(name);
  if (value == nullptr) {
    throw std::out_of_range(std::string(op_kind_name(op.kind)) + " has no attribute " + std::string(name));
  }
  return std::get<T>(*value);
}

}  // namespace

std::int64_t Op::integer(std::string_view name) const {
  return get_attribute<std::int64_t>(*this, name);
}
double Op::floating(std::string_view name) const {
  return get_attribute<double>(*this, name);
}
bool Op::boolean(std::string_view name) const {
  return get_attribute<bool>(*this, name);
}
const std::string& Op::text(std::string_view name) const {
  return get_attribute<std::string>(*this, name);
}

const Buffer* Plan::find_buffer(std::string_view name) const {
  for (const Buffer& candidate : buffers) {
    if (candidate.name == name) return &candidate;
  }
  return nullptr;
}

const Buffer& Plan::buffer(std::string_view name) const {
  const Buffer* found = find_buffer(name);
  if (found == nullptr) throw std::out_of_range("the plan has no buffer " + std::string(name));
  return *found;
}

}  // namespace capstan::plan
