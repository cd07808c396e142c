// Flat facts that rules read: each name of the fact universe with its value for one config on one stack.
// Names are config keys ("model.x", "env.X", "target.x", "cluster.x") and what rules define
// ("graph.modules").
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "compiler/config/config.h"
#include "compiler/schema/version.h"
#include "grammar/source/value.h"

namespace capstan {

using FactId = std::uint32_t;

/// All names that facts can have; grows while a rule set is resolved, fixed afterwards.
class FactNames {
 public:
  FactId intern(std::string_view name);
  const std::string& name(FactId id) const { return names_[id]; }
  std::size_t size() const { return names_.size(); }
  bool find(std::string_view name, FactId& id) const;

 private:
  struct HashText {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };

  std::vector<std::string> names_;
  std::unordered_map<std::string, FactId, HashText, std::equal_to<>> ids_;
};

/// A fact's value. `unknown` is not none: nobody said it and no default exists (GPU architecture, torch
/// version).
struct Fact {
  enum class State : std::uint8_t { unknown, known };
  State state = State::unknown;
  bool set = false;         ///< a layer set it (else default, derived or assumed)
  bool is_version = false;  ///< value is a version; `version` holds it
  Value value;
  Version version;
  const Setting* setting = nullptr;  ///< the config setting it came from, or null
  bool is_set = false;               ///< a list that is a set: a rule gave it, order means nothing
};

struct Facts {
  const FactNames* names = nullptr;
  std::vector<Fact> values;  ///< by FactId
  const Config* config = nullptr;
  const SchemaView* schema = nullptr;
};

}  // namespace capstan
