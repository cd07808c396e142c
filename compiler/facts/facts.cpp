#include "compiler/facts/facts.h"

namespace capstan {

FactId FactNames::intern(std::string_view name) {
  const auto [found, is_new] = ids_.emplace(std::string(name), static_cast<FactId>(names_.size()));
  if (is_new) names_.emplace_back(name);
  return found->second;
}

bool FactNames::find(std::string_view name, FactId& id) const {
  const auto found = ids_.find(std::string(name));
  if (found == ids_.end()) return false;
  id = found->second;
  return true;
}

}  // namespace capstan
