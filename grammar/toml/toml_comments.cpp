#include "grammar/toml/toml_comments.h"

#include "grammar/toml/toml_scan.h"

namespace capstan {

std::vector<Comment> find_toml_comments(SourceId source, const SourceMap& sources) {
  const std::string_view text = sources[source].bytes();
  std::vector<Comment> comments;
  std::uint32_t line = 1;
  std::size_t line_start = 0, counted = 0;
  for (const TomlScan::Range& range : scan_toml(text).comments) {
    for (; counted < range.begin; ++counted) {
      if (text[counted] == '\n') {
        ++line;
        line_start = counted + 1;
      }
    }
    const std::string_view before = text.substr(line_start, range.begin - line_start);
    comments.push_back({Span{source, range.begin, range.end}, line,
                        before.find_first_not_of(" \t\xEF\xBB\xBF") == std::string_view::npos});
  }
  return comments;
}

}  // namespace capstan
