// Rules that only a fact about the target would decide (`target.nccl`) are no findings of a config that may
// be perfectly fine: they are counted in the closing line.
#pragma once

#include <vector>

#include "compiler/diagnostics/diagnostic.h"
#include "compiler/diagnostics/render/render.h"

namespace capstan {

/// Takes those TG002 out of `findings` and adds them to the summary. One that asks for a key of the config,
/// too, stays a finding.
void fold_undecided(std::vector<Diagnostic>& findings, RunSummary& summary);

/// Rules that a TG002 counts, else 0.
std::size_t undecided_rules(const Diagnostic& diagnostic);

}  // namespace capstan
