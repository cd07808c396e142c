#include "grammar/yaml/yaml_comments.h"

#include <algorithm>
#include <string_view>

namespace capstan {
namespace {

void collect_quoted(const SyntaxNode& node, std::string_view text, std::vector<Span>& out) {
  const auto add = [&](const Span& span) {
    if (span.exists() && span.begin < text.size() && span.end > span.begin) out.push_back(span);
  };
  if (node.kind == SyntaxNode::Kind::scalar || node.kind == SyntaxNode::Kind::unsupported) add(node.span);
  for (const SyntaxNode& item : node.items) collect_quoted(item, text, out);
  for (const SyntaxEntry& entry : node.entries) {
    add(entry.key_span);
    collect_quoted(entry.value, text, out);
  }
}

/// `key: |`, `- >-`: the lines below that are indented more are text.
bool opens_block(std::string_view line) {
  const std::size_t hash = line.find(" #");
  if (hash != std::string_view::npos) line = line.substr(0, hash);
  while (!line.empty() && (line.back() == ' ' || line.back() == '\r' || line.back() == '\t'))
    line.remove_suffix(1);
  std::size_t at = line.size();
  while (at > 0 &&
         (line[at - 1] == '-' || line[at - 1] == '+' || (line[at - 1] >= '1' && line[at - 1] <= '9')))
    --at;
  return at > 1 && (line[at - 1] == '|' || line[at - 1] == '>') && line[at - 2] == ' ';
}

}  // namespace

std::vector<Comment> find_yaml_comments(SourceId source, const SourceMap& sources, const SyntaxNode& tree) {
  const std::string_view text = sources[source].bytes();
  std::vector<Comment> out;
  if (text.find('#') == std::string_view::npos) return out;
  std::vector<Span> scalars;
  collect_quoted(tree, text, scalars);
  std::sort(scalars.begin(), scalars.end(), [](const Span& a, const Span& b) { return a.begin < b.begin; });
  std::size_t next = 0, covered = 0;  // end of the scalars that begin before the place
  std::uint32_t line = 1;
  std::size_t block_indent = std::string_view::npos;
  for (std::size_t begin = 0; begin < text.size(); ++line) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::size_t content = std::min(text.find_first_not_of(" \t\r", begin), end);
    const bool in_block =
        block_indent != std::string_view::npos && (content == end || content - begin > block_indent);
    if (!in_block) {
      block_indent = std::string_view::npos;
      for (std::size_t at = content; at < end; ++at) {
        if (text[at] != '#' || (at > begin && text[at - 1] != ' ' && text[at - 1] != '\t')) continue;
        for (; next < scalars.size() && scalars[next].begin <= at; ++next)
          covered = std::max<std::size_t>(covered, scalars[next].end);
        if (at < covered) continue;
        const std::size_t last = end > at && text[end - 1] == '\r' ? end - 1 : end;
        out.push_back({Span{source, static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(last)}, line,
                       at == content});
        break;
      }
      if (content < end && text[content] != '#' && opens_block(text.substr(begin, end - begin)))
        block_indent = content - begin;
    }
    begin = end + 1;
  }
  return out;
}

}  // namespace capstan
