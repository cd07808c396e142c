// A checked config -> a finished plan: bind, lower, passes. The one entry for commands.
#pragma once

#include <optional>
#include <string_view>

#include "compiler/plan/bind_model.h"
#include "compiler/plan/plan.h"

namespace capstan::plan {

/// Nothing when an error was reported: what the runtime cannot do (LW001), missing or unusable values (LW002,
/// LW003), a capture that cannot be honoured (LW004), a fault of the compiler (LW005).
/// `last`: the pass to stop after ("lowering" before any), for looking at unfinished plans; empty: all.
std::optional<Plan> compile(const BindRequest& request, Sink& sink, std::string_view last = {});

}  // namespace capstan::plan
