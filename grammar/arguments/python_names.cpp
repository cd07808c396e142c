#include "grammar/arguments/python_names.h"

#include <algorithm>

namespace capstan {

void PythonNames::bind(const std::string& function, const std::string& name, PythonPlace place) {
  if (place.variable == name && place.path.empty()) return;  // `cfg = cfg`
  const auto earlier = places_.find({function, name});
  if (place.conditional && earlier != places_.end() &&
      (earlier->second.variable != place.variable || earlier->second.path != place.path)) {
    place.any = true;
    place.path.clear();
  }
  places_[{function, name}] = std::move(place);
}

const PythonPlace* PythonNames::find(const std::vector<std::string>& functions,
                                     const std::string& name) const {
  for (auto function = functions.rbegin(); function != functions.rend(); ++function) {
    if (const PythonPlace* const found = find_own(*function, name)) return found;
  }
  return find_own({}, name);
}

const PythonPlace* PythonNames::find_own(const std::string& function, const std::string& name) const {
  const auto found = places_.find({function, name});
  return found == places_.end() ? nullptr : &found->second;
}

void PythonNames::replace(const std::string& variable, const std::vector<std::string>& path) {
  std::erase_if(places_, [&](const auto& entry) {
    const PythonPlace& place = entry.second;
    return place.variable == variable && place.path.size() >= path.size() &&
           std::equal(path.begin(), path.end(), place.path.begin());
  });
}

}  // namespace capstan
