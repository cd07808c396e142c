#include "runtime/execute/state.h"

#include <cstring>

namespace capstan::runtime {

Outcome<StateSnapshot> StateSnapshot::take(const plan::Plan& plan, Backend& backend) {
  StateSnapshot snapshot;
  for (const plan::Buffer& buffer : plan.buffers) {
    if (buffer.role == plan::Role::activation || buffer.role == plan::Role::workspace) continue;
    Contents& contents = snapshot.contents_.emplace_back();
    contents.buffer = buffer.id;
    contents.bytes.resize(buffer.bytes());
    if (Status read = backend.download(buffer.id, contents.bytes); !read.ok()) return read.error();
  }
  return snapshot;
}

Status StateSnapshot::restore(Backend& backend) const {
  for (const Contents& contents : contents_) {
    if (Status written = backend.upload(contents.buffer, contents.bytes); !written.ok()) return written;
  }
  return {};
}

std::optional<plan::BufferId> StateSnapshot::find_difference(const StateSnapshot& other) const {
  for (std::size_t i = 0; i < contents_.size(); ++i) {
    if (contents_[i].bytes != other.contents_[i].bytes) return contents_[i].buffer;
  }
  return std::nullopt;
}

namespace {

template <typename T>
Status read_value(const plan::Plan& plan, Backend& backend, const char* name, T& value) {
  return backend.download(plan.buffer(name).id, std::as_writable_bytes(std::span(&value, 1)));
}

/// An f32 or f64 scalar.
Status read_real(const plan::Plan& plan, Backend& backend, const char* name, double& value) {
  if (plan.buffer(name).dtype == plan::DType::f64) return read_value(plan, backend, name, value);
  float narrow = 0;
  Status read = read_value(plan, backend, name, narrow);
  value = narrow;
  return read;
}

}  // namespace

Outcome<StepScalars> read_scalars(const plan::Plan& plan, Backend& backend) {
  namespace names = plan::names;
  StepScalars scalars;
  if (Status read = read_real(plan, backend, names::kLoss, scalars.loss); !read.ok()) return read.error();
  if (Status read = read_real(plan, backend, names::kLearningRate, scalars.learning_rate); !read.ok())
    return read.error();
  if (Status read = read_real(plan, backend, names::kGradNorm, scalars.grad_norm); !read.ok())
    return read.error();
  if (Status read = read_value(plan, backend, names::kNonfinite, scalars.nonfinite); !read.ok())
    return read.error();
  if (Status read = read_value(plan, backend, names::kStep, scalars.step); !read.ok()) return read.error();
  return scalars;
}

}  // namespace capstan::runtime
