// Values worth trying for a fact when looking for a config that breaks a rule: those that a repair may write,
// and beside them what no author would: words that no list has, lists and numbers of another kind, allocator
// strings, pipeline layouts, GPUs and cluster sizes. Versions of libraries are tried one by one.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compiler/solve/subject.h"

namespace capstan {

/// What the active rules compare facts with beyond plain values; built once per set of active rules.
struct RuleProbes {
  std::map<FactId, std::vector<Version>> versions;  ///< version literals, by the fact compared
  std::map<FactId, std::vector<Value>> values;      ///< values that functions on the fact tell apart
};
RuleProbes collect_probes(const RuleBook& book);

/// Facts that are what the stack is: Megatron's versions and the front-end.
bool is_fixed_by_the_stack(const std::string& name);

/// The current state comes first. Nothing for facts that a config cannot state: the front-end, defines,
/// versions.
std::optional<Domain> witness_domain(const Subject& subject, const RuleProbes& probes, FactId fact);

/// The facts as they are, then with other versions of the libraries that the item at `position` depends on
/// (never of Megatron itself, which is the stack), as long as the item stays active.
std::vector<Facts> version_variants(const Subject& subject, const RuleProbes& probes, std::uint32_t position);

}  // namespace capstan
