// Which values a key may take in a question. Finite lists: every value of an enumeration, every subset of a
// module list, and for numbers those that rules, the schema and related keys suggest. Deterministic order,
// the current state first.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/solve/subject.h"

namespace capstan {

/// For explaining: everything the type allows; where that cannot be listed, one choice "any value".
Domain explain_domain(const Subject& subject, FactId fact);
/// For repairing and completing: values that can be written into a config (or the default, unset). Best first
/// after the current one. Nothing for keys that are no config keys.
std::optional<Domain> repair_domain(const Subject& subject, FactId fact);
/// A key to be filled, with the values that are tried: those of repair_domain(), the open state left out.
struct OpenKey {
  FactId fact = 0;
  Domain domain;
};
/// Keys without a domain are left out.
std::vector<OpenKey> open_keys(const Subject& subject, const std::vector<FactId>& open);
/// A key whose values can be changed by the user: a config key or an environment variable, known to the
/// release.
bool is_changeable(const Subject& subject, FactId fact);
/// Whether the domain has all values that a config can give the key: switches, closed enumerations, and lists
/// of the words that the release knows.
bool lists_every_value(const Subject& subject, FactId fact, const Domain& domain);
/// The words that the elements of a list key are taken from: those that the release states for it, or else
/// those that its rules name; empty for other keys.
std::vector<std::string> known_words(const Subject& subject, FactId fact);
/// Elements of a list key's present value that are none of its known words, as indices.
std::vector<std::size_t> unknown_words(const Subject& subject, FactId fact);
/// Effect of a key; environment variables count as `run`.
KeyEffect effect_of(const Subject& subject, FactId fact);
/// The default that holds when nothing sets the key.
Choice default_choice(const Subject& subject, FactId fact);

}  // namespace capstan
