#include "compiler/facts/facts.h"

namespace capstan {

FactId FactNames::intern(std::string_view name) {
  FactId id = static_cast<FactId>(names_.size());
  if (find(name, id)) return id;
  ids_.emplace(name, id);
  names_.emplace_back(name);
  return id;
}

bool FactNames::find(std::string_view name, FactId& id) const {
  const auto found = ids_.find(name);
  if (found == ids_.end()) return false;
  id = found->second;
  return true;
}

}  // namespace capstan
