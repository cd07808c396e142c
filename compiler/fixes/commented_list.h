// A written list with comments between its elements -> the edits that take elements away and append others.
// A comment goes only with the elements of its line, when none of them stays.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "compiler/diagnostics/diagnostic.h"
#include "grammar/source/span.h"
#include "grammar/source/value.h"

namespace capstan {

/// Whether a comment stands inside the brackets. `whole` is the list's text, `items` its elements'.
bool has_comments(std::string_view text, const Span& whole, const std::vector<Span>& items);

/// `kept[i]` tells whether the element at `items[i]` (of which there is one at least) stays; `added` follows
/// the last that does. Nothing when neither element nor comment is left: the list is then written anew.
std::optional<std::vector<Edit>> commented_list_edits(std::string_view text, const Span& whole,
                                                      const std::vector<Span>& items,
                                                      const std::vector<bool>& kept,
                                                      const Value::List& added);

}  // namespace capstan
