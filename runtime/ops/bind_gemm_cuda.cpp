#include "runtime/device/cuda_error.h"
#include "runtime/ops/cuda_bind.h"

namespace capstan::runtime::cuda {

Outcome<int> prepare_product(Bindings& b, const GemmProblem& problem, const GemmOperands& operands) {
  using Epilogue = GemmProblem::Epilogue;
  // Candidates are timed on numbers like those of training; zeros would flatter. fp8 factors hold whatever
  // the arena holds.
  if (b.gemms->tunes()) {
    const auto fill = [&](const void* data, Storage storage, std::int64_t count, std::uint64_t rng,
                          double spread) {
      launch_normal(b.stream, Floats{const_cast<void*>(data), storage}, count, 1, rng, spread);
    };
    if (!problem.is_fp8()) {
      fill(operands.a, problem.input, problem.m * problem.k, 1, 1.0);
      fill(operands.b, problem.input, problem.k * problem.n, 2, 0.02);
    }
    if (problem.has_addend) fill(operands.c, problem.output, problem.m * problem.n, 3, 1.0);
    if (problem.epilogue == Epilogue::dgelu)
      fill(operands.aux, problem.output, problem.m * problem.n, 4, 1.0);
  }
  return b.gemms->prepare(b.stream, problem, operands);
}

namespace {

Outcome<Launch> bind_product(Bindings& b, const GemmProblem& problem, const GemmOperands& operands) {
  const Outcome<int> entry = prepare_product(b, problem, operands);
  if (!entry.ok()) return entry.error();
  const GemmLibrary* library = b.gemms.get();
  return Launch([library, index = entry.value(), operands](cudaStream_t stream) {
    return library->run(stream, index, operands);
  });
}

}  // namespace

Outcome<Launch> bind_gemm_fp8(Bindings& b, const plan::Op& op) {
  GemmProblem problem;
  problem.m = op.integer("m");
  problem.n = op.integer("n");
  problem.k = op.integer("k");
  problem.transpose_b = true;
  problem.has_addend = op.boolean("accumulate");
  problem.fast_accumulation = op.boolean("fast_accumulation");
  const auto storage = [&](plan::BufferId id) {
    return b.plan->buffers[id].dtype == plan::DType::f8e4m3 ? Storage::f8e4m3 : Storage::f8e5m2;
  };
  problem.input = storage(op.inputs[0]);
  problem.input_b = storage(op.inputs[1]);
  for (const std::int64_t extent : {problem.m, problem.n, problem.k}) {
    if (extent % 16 != 0) return unsupported_op(op, "an extent is no multiple of 16");
  }
  const Outcome<Floats> out = floats_of(b, op, op.outputs[0]);
  if (!out.ok()) return out.error();
  problem.output = out.value().storage;
  GemmOperands operands;
  operands.a = b.at(op.inputs[0]);
  operands.b = b.at(op.inputs[1]);
  operands.scale_a = pointer_of<float>(b, op.inputs[2]);
  operands.scale_b = pointer_of<float>(b, op.inputs[3]);
  operands.d = out.value().data;
  if (op.text("epilogue") == "bias") {
    const Outcome<Floats> added = floats_of(b, op, op.inputs[4]);
    if (!added.ok()) return added.error();
    problem.epilogue = GemmProblem::Epilogue::bias;
    problem.bias = added.value().storage;
    operands.bias = added.value().data;
  }
  if (problem.has_addend) operands.c = operands.d;
  const Bindings::Region workspace = b.workspace_of(op, 1, b.product_workspace);
  operands.workspace = workspace.data;
  operands.workspace_bytes = workspace.bytes;
  return bind_product(b, problem, operands);
}

Outcome<Launch> bind_quantize_fp8(Bindings& b, const plan::Op& op) {
  QuantizeFp8 quantize;
  const Outcome<Floats> x = floats_of(b, op, op.inputs[0]);
  if (!x.ok()) return x.error();
  const plan::Buffer& from = b.plan->buffers[op.inputs[0]];
  quantize.x = x.value();
  quantize.columns = from.shape.back();
  quantize.rows = from.elements() / quantize.columns;
  if (quantize.rows % 16 != 0 || quantize.columns % 16 != 0)
    return unsupported_op(op, "an extent is no multiple of 16");
  quantize.format =
      b.plan->buffers[op.outputs[0]].dtype == plan::DType::f8e4m3 ? Storage::f8e4m3 : Storage::f8e5m2;
  quantize.rows_out = b.at(op.outputs[0]);
  quantize.columns_out = b.at(op.outputs[1]);
  quantize.scale = pointer_of<float>(b, op.outputs[2]);
  quantize.partial = pointer_of<float>(b, op.outputs[3]);
  return Launch([quantize](cudaStream_t stream) {
    launch_quantize_fp8(stream, quantize);
    return Status();
  });
}

Outcome<Launch> bind_gemm(Bindings& b, const plan::Op& op) {
  GemmProblem problem;
  problem.m = op.integer("m");
  problem.n = op.integer("n");
  problem.k = op.integer("k");
  problem.transpose_a = op.boolean("transpose_a");
  problem.transpose_b = op.boolean("transpose_b");
  using Epilogue = GemmProblem::Epilogue;
  const bool plain = op.kind == plan::OpKind::gemm;
  problem.has_addend = plain ? op.boolean("accumulate") : op.kind == plan::OpKind::gemm_add;
  bool bias = op.kind == plan::OpKind::gemm_gelu;
  if (plain || op.kind == plan::OpKind::gemm_add) {
    bias = op.text("epilogue") == "bias";
    if (bias) problem.epilogue = Epilogue::bias;
  } else {
    problem.epilogue = bias ? Epilogue::gelu_aux_bias : Epilogue::dgelu;
  }

  Outcome<Floats> left = floats_of(b, op, op.inputs[0]);
  Outcome<Floats> right = floats_of(b, op, op.inputs[1]);
  Outcome<Floats> out = floats_of(b, op, op.outputs[0]);
  for (const Outcome<Floats>* operand : {&left, &right, &out}) {
    if (!operand->ok()) return operand->error();
  }
  problem.input = left.value().storage;
  problem.output = out.value().storage;
  if (right.value().storage != problem.input)
    return unsupported_op(op, "its two factors have different dtypes");
  if (problem.input == Storage::f32 && problem.output == Storage::bf16) {
    return unsupported_op(op, "f32 factors with a bf16 result");
  }
  GemmOperands operands;
  operands.a = left.value().data;
  operands.b = right.value().data;
  operands.d = out.value().data;
  if (bias) {
    Outcome<Floats> added = floats_of(b, op, op.inputs[2]);
    if (!added.ok()) return added.error();
    problem.bias = added.value().storage;
    operands.bias = added.value().data;
  }
  if (problem.has_addend) operands.c = b.at(op.inputs.back());
  if (problem.epilogue == Epilogue::gelu_aux_bias) operands.aux = b.at(op.outputs[1]);
  if (problem.epilogue == Epilogue::dgelu) operands.aux = b.at(op.inputs.back());

  const std::size_t results = problem.epilogue == Epilogue::gelu_aux_bias ? 2 : 1;
  const Bindings::Region workspace = b.workspace_of(op, results, b.product_workspace);
  operands.workspace = workspace.data;
  operands.workspace_bytes = workspace.bytes;

  return bind_product(b, problem, operands);
}

}  // namespace capstan::runtime::cuda
