#include "runtime/device/cuda_error.h"
#include "runtime/ops/cuda_bind.h"

namespace capstan::runtime::cuda {

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

  // Candidates are timed on numbers like those of training; zeros would flatter.
  if (b.gemms->tunes()) {
    const std::int64_t a_count = problem.m * problem.k;
    const std::int64_t b_count = problem.k * problem.n;
    launch_normal(b.stream, left.value(), a_count, 1, 1, 1.0);
    launch_normal(b.stream, right.value(), b_count, 1, 2, 0.02);
    const Floats addend{const_cast<void*>(operands.c), problem.output};
    if (problem.has_addend) launch_normal(b.stream, addend, problem.m * problem.n, 1, 3, 1.0);
    const Floats aux{operands.aux, problem.output};
    if (problem.epilogue == Epilogue::dgelu) launch_normal(b.stream, aux, problem.m * problem.n, 1, 4, 1.0);
  }
  Outcome<int> entry = b.gemms->prepare(b.stream, problem, operands);
  if (!entry.ok()) return entry.error();
  const GemmLibrary* library = b.gemms.get();
  return Launch([library, index = entry.value(), operands](cudaStream_t stream) {
    return library->run(stream, index, operands);
  });
}

}  // namespace capstan::runtime::cuda
