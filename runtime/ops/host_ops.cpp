#include "runtime/ops/host_ops.h"

namespace capstan::runtime {

HostOp host_op(plan::OpKind kind) {
  static constexpr HostOp table[] = {
#define CAPSTAN_OP(name) &host::name,
#include "compiler/plan/op_kinds.def"
#undef CAPSTAN_OP
  };
  return table[static_cast<std::size_t>(kind)];
}

}  // namespace capstan::runtime
