// Where the edits of a TOML text go and what they write: lines, quotes, entries and list elements as they
// stand. Everything that is not part of the changed value keeps its bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/config/config.h"
#include "compiler/diagnostics/diagnostic.h"

namespace capstan {

struct Line {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;       ///< past the line ending
  std::uint32_t text_end = 0;  ///< before the line ending
};
Line line_at(std::string_view text, std::uint32_t offset);
/// The blanks that a line begins with.
std::string_view indent_of(std::string_view text, const Line& line);
std::uint32_t skip_blanks(std::string_view text, std::uint32_t at);
/// "\r\n" where the text's first line ends so.
std::string_view line_ending(std::string_view text);

/// TOML text of a value; strings follow the quotes of `model` (the text that stands there, or beside it)
/// where they can.
std::string write_value(const Value& value, std::string_view model);

/// Whether the key begins a statement of its own line; else it stands in an inline table.
bool is_statement(std::string_view text, const Span& key);
/// A table that exists only through `[a.b]` has no header of its own: `span` then shows another one's.
bool header_names(std::string_view text, const Span& span, const std::string& section);
/// The lines of a statement; of an entry in an inline table, the entry with one comma.
/// With `keep_comment` a comment behind the statement stays, on a line of its own.
Edit removal_of_entry(std::string_view text, const Span& key, const Span& value, bool keep_comment = false);

/// A statement on its way to another table.
struct MovedStatement {
  Edit removal;
  std::vector<std::string> above;  ///< the comment lines directly above, without indentation and line ending
  std::string equals;              ///< between key and value: " = "
  std::string value;               ///< as it is written
  std::string behind;              ///< the rest of the value's line: "  # why"
};
/// Comments at the very beginning of a file speak of the file and stay. Of an entry in an inline table,
/// the value alone. `is_comment` tells whether a line that begins with `#` at an offset is one.
MovedStatement take_statement(std::string_view text, const Span& key, const Span& value,
                              const std::function<bool(std::uint32_t)>& is_comment);

/// Edits that turn one written list into another by writing elements in place of others, or by taking
/// elements away and appending; nothing when order changes.
std::optional<std::vector<Edit>> list_edits(std::string_view text, const Setting& setting,
                                            const Value::List& wanted);

}  // namespace capstan
