#include "compiler/fixes/emptied_table.h"

#include <algorithm>

#include "compiler/fixes/toml_layout.h"
#include "grammar/source/syntax_tree.h"
#include "grammar/toml/toml_document.h"

namespace capstan {
namespace {

bool is_blank_line(std::string_view text, const Line& line) {
  return text.substr(line.begin, line.text_end - line.begin).find_first_not_of(" \t") ==
         std::string_view::npos;
}

}  // namespace

std::optional<EmptiedTable> find_emptied_table(SourceId file, const SourceMap& sources,
                                               const std::string& section, bool comments_move,
                                               const std::function<bool(const Span&)>& is_removed,
                                               const std::function<bool(std::uint32_t)>& is_comment) {
  SyntaxProblem problem;
  const std::optional<SyntaxNode> tree = parse_toml(file, sources, problem);
  if (!tree) return std::nullopt;
  const auto entry = std::find_if(tree->entries.begin(), tree->entries.end(),
                                  [&](const SyntaxEntry& candidate) { return candidate.key == section; });
  if (entry == tree->entries.end() || entry->value.kind != SyntaxNode::Kind::table) return std::nullopt;
  const SyntaxNode& table = entry->value;
  const std::string_view text = sources[file].bytes();
  if (!table.span.exists() || table.span.begin >= text.size()) return std::nullopt;
  for (const SyntaxEntry& key : table.entries) {
    if (!is_removed(key.key_span)) return std::nullopt;
  }
  const bool is_inline = text[table.span.begin] == '{' && is_statement(text, entry->key_span);
  const bool has_header = text[table.span.begin] == '[' && header_names(text, table.span, section);
  if (!is_inline && !has_header) return std::nullopt;

  EmptiedTable emptied;
  Span header = is_inline ? entry->key_span : table.span;
  // A header's comment is looked for behind its bracket, an inline table's behind its brace.
  const std::size_t closing = is_inline ? table.span.end - 1 : text.find(']', table.span.begin);
  const Span ends = {file, static_cast<std::uint32_t>(closing), static_cast<std::uint32_t>(closing + 1)};
  header.end = std::min(header.end, ends.begin);
  MovedStatement moved = take_statement(text, header, ends, is_comment);
  if (comments_move) {
    emptied.comments = std::move(moved.above);
    if (const std::size_t begin = moved.behind.find('#'); begin != std::string::npos)
      emptied.comments.push_back(moved.behind.substr(begin));
    emptied.removal = std::move(moved.removal);
    // One of the blank lines around the table goes with it.
    if (const std::uint32_t begin = emptied.removal.span.begin; begin > 0) {
      const Line before = line_at(text, begin - 1);
      if (is_blank_line(text, before)) emptied.removal.span.begin = before.begin;
    }
  } else {
    emptied.removal = removal_of_entry(text, header, ends, true);
  }
  return emptied;
}

}  // namespace capstan
