// Which part of a config the names of a recipe stand for: `m = cfg.model` makes `m` the section until it is
// assigned again. Straight-line code only: what a condition decides is marked, never guessed.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace capstan {

struct PythonPlace {
  std::string variable;           ///< "cfg"
  std::vector<std::string> path;  ///< {"model"}
  bool any = false;               ///< some part of the variable; which one is not known
  bool conditional = false;       ///< named under a condition: what is assigned to it may not arrive
};

class PythonNames {
 public:
  void bind(const std::string& function, const std::string& name, PythonPlace place);
  void forget(const std::string& function, const std::string& name) { places_.erase({function, name}); }
  /// `functions`: those that are open here, outermost first. Null when the name stands for itself.
  const PythonPlace* find(const std::vector<std::string>& functions, const std::string& name) const;
  /// The same without names of functions around it and of the module.
  const PythonPlace* find_own(const std::string& function, const std::string& name) const;
  /// A part of the config is another object from here on: names of the old one, and of what is in it, are
  /// forgotten.
  void replace(const std::string& variable, const std::vector<std::string>& path);

 private:
  std::map<std::pair<std::string, std::string>, PythonPlace> places_;
};

}  // namespace capstan
