// The reference implementation of every op of docs/plan-format.md, for buffers of f32, f64 and bf16. Each
// reads its operands from memory, computes in f32 (f64 where an operand is f64), and rounds once. Each result
// is made in a fixed order that does not depend on the number of threads.
#pragma once

#include "runtime/ops/op_call.h"

namespace capstan::runtime {

using HostOp = void (*)(const OpCall&);

namespace host {
#define CAPSTAN_OP(name) void name(const OpCall& call);
#include "compiler/plan/op_kinds.def"
#undef CAPSTAN_OP
}  // namespace host

/// Never null.
HostOp host_op(plan::OpKind kind);

}  // namespace capstan::runtime
