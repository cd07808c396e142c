#include "compiler/fixes/point_config.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "grammar/source/syntax_tree.h"
#include "grammar/toml/toml_document.h"

namespace capstan {
namespace {

std::uint32_t line_begin(std::string_view text, std::uint32_t at) {
  const std::size_t newline = at == 0 ? std::string_view::npos : text.rfind('\n', at - 1);
  return newline == std::string_view::npos ? 0 : static_cast<std::uint32_t>(newline + 1);
}

std::uint32_t line_end(std::string_view text, std::uint32_t at) {
  const std::size_t newline = text.find('\n', at);
  return static_cast<std::uint32_t>(newline == std::string_view::npos ? text.size() : newline + 1);
}

class TableRemoval {
 public:
  TableRemoval(std::string_view name, SourceId file, std::string_view text)
      : name_(name), file_(file), text_(text) {}

  std::vector<Edit> run(const SyntaxEntry& table) {
    take(table);
    std::sort(edits_.begin(), edits_.end(),
              [](const Edit& a, const Edit& b) { return a.span.begin < b.span.begin; });
    // Two tables of one header line, or two keys of one statement, are one edit.
    edits_.erase(std::unique(edits_.begin(), edits_.end(),
                             [](const Edit& a, const Edit& b) { return a.span.begin == b.span.begin; }),
                 edits_.end());
    return std::move(edits_);
  }

 private:
  void take(const SyntaxEntry& entry) {
    const SyntaxNode& node = entry.value;
    const bool is_inline =
        node.span.exists() && node.span.begin < text_.size() && text_[node.span.begin] == '{';
    if (node.kind != SyntaxNode::Kind::table || is_inline) {
      remove_lines(entry.key_span.begin, std::max(entry.key_span.end, node.span.end));
      return;
    }
    // The span of a table that only dotted keys or headers of inner tables make is another one's.
    if (node.span.exists() && is_own_header(node.span)) remove_lines(node.span.begin, node.span.end);
    for (const SyntaxEntry& inner : node.entries) take(inner);
  }

  bool is_own_header(const Span& span) const {
    std::string header;
    for (const char c : text_.substr(span.begin, line_end(text_, span.begin) - span.begin)) {
      if (c == ' ' || c == '\t' || c == '"' || c == '\'') continue;
      header += c;
      if (c == ']') break;
    }
    return header == "[" + name_ + "]" || header.starts_with("[" + name_ + ".");
  }

  void remove_lines(std::uint32_t begin, std::uint32_t end) {
    edits_.push_back({{file_, line_begin(text_, begin), line_end(text_, end > begin ? end - 1 : end)}, ""});
  }

  std::string name_;
  SourceId file_;
  std::string_view text_;
  std::vector<Edit> edits_;
};

}  // namespace

std::vector<Edit> removal_of_table(std::string_view name, SourceId file, const SourceMap& sources) {
  SyntaxProblem problem;
  const std::optional<SyntaxNode> tree = parse_toml(file, sources, problem);
  if (!tree) return {};
  for (const SyntaxEntry& entry : tree->entries) {
    if (entry.key == name) return TableRemoval(name, file, sources[file].bytes()).run(entry);
  }
  return {};
}

std::vector<Edit> moved_file_names(SourceId file, const std::string& folder, const SourceMap& sources) {
  SyntaxProblem problem;
  const std::optional<SyntaxNode> tree = parse_toml(file, sources, problem);
  if (!tree) return {};
  namespace fs = std::filesystem;
  const fs::path from =
      sources[file].kind() == SourceKind::file ? fs::path(sources[file].name()).parent_path() : fs::path();
  std::error_code error;
  // Absolute first: of a relative path of which nothing exists yet, weakly_canonical() makes no absolute one.
  const auto canonical = [&error](const fs::path& path) {
    return fs::weakly_canonical(fs::absolute(path, error), error);
  };
  const fs::path to = canonical(folder);
  std::vector<Edit> edits;
  const auto move = [&](const SyntaxNode& node) {
    if (node.kind != SyntaxNode::Kind::scalar || node.scalar.kind() != Value::Kind::string) return;
    const fs::path name = node.scalar.string();
    if (name.empty() || name.is_absolute()) return;
    const fs::path target = canonical(from / name);
    if (!error) edits.push_back({node.span, to_text(Value(target.lexically_relative(to).string()))});
  };
  if (const SyntaxNode* extends = find(*tree, "extends")) {
    move(*extends);
    for (const SyntaxNode& item : extends->items) move(item);
  }
  const SyntaxNode* dataset = find(*tree, "dataset");
  const SyntaxNode* path = dataset != nullptr ? find(*dataset, "path") : nullptr;
  if (path != nullptr) move(*path);
  return edits;
}

}  // namespace capstan
