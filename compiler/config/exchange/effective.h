// What a stack makes of a config: every key of the stack with its set value or its default, renamed keys
// under their new names. Two configs with the same effective config train the same. Sections that only
// Capstan reads (target, cluster, execute) stay out.
#pragma once

#include <string>
#include <vector>

#include "compiler/config/config.h"
#include "compiler/schema/schema.h"

namespace capstan {

struct EffectiveValue {
  std::string path;
  Value value;
  OriginKind origin = OriginKind::default_value;
  const Setting* setting = nullptr;  ///< null for defaults
  std::string default_text;          ///< how the source writes a default that no Value can hold
  bool open = false;                 ///< not set, and not known to hold its default: the value is "?"
};

/// Functions have several spellings: "F.silu", "torch.nn.functional.silu" and "silu" are "silu".
Value function_name(const Value& value);

/// Sorted by path. Settings that the stack does not know stay out.
std::vector<EffectiveValue> effective_config(const Config& config, const SchemaView& view);
/// SHA-256 in hex over paths and values, defaults included; origins and places do not count.
std::string effective_digest(const std::vector<EffectiveValue>& values);

/// A key whose effective values differ; none stands for "the stack does not have the key".
struct EffectiveDifference {
  std::string path;
  const EffectiveValue* before = nullptr;
  const EffectiveValue* after = nullptr;
};
std::vector<EffectiveDifference> compare(const std::vector<EffectiveValue>& before,
                                         const std::vector<EffectiveValue>& after);

}  // namespace capstan
