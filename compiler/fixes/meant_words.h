// Words of a list key that the release does not know -> the value that was meant: each in its place the known
// word that it is nearest to, and no word twice.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "grammar/source/value.h"

namespace capstan {

struct MeantWords {
  Value value;        ///< of the kind that stands there: a list, "a,b", or one word
  std::string title;  ///< "write `attn` in place of `attm`, leave `mpl` out beside `mlp`"
};

/// A list without the words that are unknown and like no known one. Nothing when there are none, or no
/// others.
std::optional<MeantWords> without_strange_words(const Value& list, const std::vector<std::string>& known);

/// Nothing when every word is known or like no known one. With `only`, other unknown words stay.
std::optional<MeantWords> meant_words(const Value& value, const std::vector<std::string>& known,
                                      const std::string* only = nullptr);

}  // namespace capstan
