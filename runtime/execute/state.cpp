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

ScalarReader::ScalarReader(const plan::Plan& plan, Backend& backend) : backend_(backend) {
  namespace names = plan::names;
  const std::array<const char*, kScalars> wanted = {names::kLoss, names::kLearningRate, names::kGradNorm,
                                                    names::kNonfinite, names::kStep};
  for (std::size_t i = 0; i < kScalars; ++i) {
    const plan::Buffer& buffer = plan.buffer(wanted[i]);
    buffers_[i] = buffer.id;
    dtypes_[i] = buffer.dtype;
    bytes_ += buffer.bytes();
  }
}

Status ScalarReader::begin(std::size_t slot) {
  return backend_.begin_read(buffers_, slot);
}

Outcome<StepScalars> ScalarReader::await(std::size_t slot) {
  std::array<std::byte, kScalars * sizeof(double)> bytes;
  if (Status read = backend_.await_read(slot, std::span(bytes).first(bytes_)); !read.ok())
    return read.error();
  const std::byte* next = bytes.data();
  const auto take = [&](auto value) {
    std::memcpy(&value, next, sizeof(value));
    next += sizeof(value);
    return value;
  };
  const auto take_real = [&](plan::DType dtype) {
    return dtype == plan::DType::f64 ? take(double{}) : static_cast<double>(take(float{}));
  };
  StepScalars scalars;
  scalars.loss = take_real(dtypes_[0]);
  scalars.learning_rate = take_real(dtypes_[1]);
  scalars.grad_norm = take_real(dtypes_[2]);
  scalars.nonfinite = take(std::int32_t{});
  scalars.step = take(std::int64_t{});
  return scalars;
}

Outcome<StepScalars> read_scalars(const plan::Plan& plan, Backend& backend) {
  ScalarReader reader(plan, backend);
  if (Status begun = reader.begin(0); !begun.ok()) return begun.error();
  return reader.await(0);
}

}  // namespace capstan::runtime
