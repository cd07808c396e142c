#include "grammar/toml/toml_document.h"

#include <toml++/toml.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "grammar/source/byte_order_mark.h"
#include "grammar/toml/toml_scan.h"

namespace capstan {
namespace {

/// Places of toml++ (1-based line, column in code points, byte order mark not counted) as byte offsets.
/// Constant time for ASCII lines; long other lines get marks, so that a text of one line stays linear.
class Places {
 public:
  Places(SourceId source, const SourceFile& file) : source_(source), text_(file.bytes()) {
    const std::size_t first = byte_order_mark_size(text_);
    lines_.push_back({static_cast<std::uint32_t>(first), true});
    for (std::size_t i = first; i < text_.size(); ++i) {
      if (static_cast<unsigned char>(text_[i]) >= 0x80) lines_.back().ascii = false;
      if (text_[i] == '\n') lines_.push_back({static_cast<std::uint32_t>(i + 1), true});
    }
  }

  std::uint32_t offset(const toml::source_position& place) {
    if (!place) return 0;
    const std::size_t line = place.line - 1;
    if (line >= lines_.size()) return size();
    const std::uint32_t begin = lines_[line].begin;
    const std::uint32_t steps = place.column == 0 ? 0 : place.column - 1;
    if (lines_[line].ascii) return std::min(begin + steps, size());
    return walk(line, steps);
  }
  Span span(const toml::source_region& region) {
    const std::uint32_t begin = offset(region.begin);
    return {source_, begin, std::max(begin, offset(region.end))};
  }
  /// From the opening bracket of a header to its closing one: toml++ gives the end of the table's content.
  Span header(std::uint32_t begin) const {
    char quote = 0;
    for (std::size_t at = begin; at < text_.size() && text_[at] != '\n'; ++at) {
      const char c = text_[at];
      if (quote != 0) {
        if (c == '\\' && quote == '"')
          ++at;
        else if (c == quote)
          quote = 0;
      } else if (c == '"' || c == '\'') {
        quote = c;
      } else if (c == ']') {
        const bool twice = at + 1 < text_.size() && text_[at + 1] == ']';
        return {source_, begin, static_cast<std::uint32_t>(at + (twice ? 2 : 1))};
      }
    }
    return {source_, begin, begin + 1};
  }
  /// The code point at a place; empty at the end of the text.
  Span character(std::uint32_t begin) const {
    std::uint32_t end = std::min(begin + 1, size());
    while (end < size() && (static_cast<unsigned char>(text_[end]) & 0xC0) == 0x80) ++end;
    return {source_, begin, end};
  }
  char byte(std::uint32_t offset) const { return offset < text_.size() ? text_[offset] : '\0'; }
  std::string_view text() const { return text_; }
  SourceId source() const { return source_; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(text_.size()); }

 private:
  struct Line {
    std::uint32_t begin;
    bool ascii;
  };
  static constexpr std::uint32_t kMarkEvery = 256;  // code points

  std::uint32_t next(std::uint32_t at) const {
    ++at;
    while (at < size() && (static_cast<unsigned char>(text_[at]) & 0xC0) == 0x80) ++at;
    return at;
  }
  std::uint32_t walk(std::size_t line, std::uint32_t steps) {
    const std::uint32_t limit = line + 1 < lines_.size() ? lines_[line + 1].begin : size();
    auto [found, fresh] = marks_.try_emplace(line);
    std::vector<std::uint32_t>& marks = found->second;
    if (fresh) {
      std::uint32_t count = 0;
      for (std::uint32_t at = lines_[line].begin; at < limit; at = next(at)) {
        if (count++ % kMarkEvery == 0) marks.push_back(at);
      }
      if (marks.empty()) marks.push_back(lines_[line].begin);
    }
    const std::size_t mark = std::min<std::size_t>(steps / kMarkEvery, marks.size() - 1);
    std::uint32_t at = marks[mark];
    for (std::uint32_t left = steps - static_cast<std::uint32_t>(mark) * kMarkEvery; left > 0 && at < limit;
         --left) {
      at = next(at);
    }
    return at;
  }

  SourceId source_;
  std::string_view text_;
  std::vector<Line> lines_;
  std::unordered_map<std::size_t, std::vector<std::uint32_t>> marks_;
};

SyntaxNode convert(const toml::node& node, const Span* key, Places& places);

SyntaxNode convert_table(const toml::table& table, const Span* key, Places& places) {
  SyntaxNode out;
  out.kind = SyntaxNode::Kind::table;
  const std::uint32_t begin = places.offset(table.source().begin);
  if (table.is_inline())
    out.span = places.span(table.source());
  else if (places.byte(begin) == '[')
    out.span = places.header(begin);
  else if (key != nullptr)
    out.span = *key;
  out.entries.reserve(table.size());
  for (const auto& [name, child] : table) {
    const Span name_span = places.span(name.source());
    out.entries.push_back({std::string(name.str()), name_span, convert(child, &name_span, places)});
  }
  // toml++ iterates by name; keys of one table never share a place.
  std::sort(out.entries.begin(), out.entries.end(), [](const SyntaxEntry& a, const SyntaxEntry& b) {
    return a.key_span.begin != b.key_span.begin ? a.key_span.begin < b.key_span.begin : a.key < b.key;
  });
  return out;
}

SyntaxNode convert_list(const toml::array& array, Places& places) {
  SyntaxNode out;
  out.kind = SyntaxNode::Kind::list;
  const std::uint32_t begin = places.offset(array.source().begin);
  const bool made_by_headers = !array.empty() && array.front().source().begin == array.source().begin;
  out.span = made_by_headers ? places.header(begin) : places.span(array.source());
  out.items.reserve(array.size());
  for (const toml::node& item : array) out.items.push_back(convert(item, nullptr, places));
  return out;
}

SyntaxNode convert(const toml::node& node, const Span* key, Places& places) {
  if (const toml::table* table = node.as_table()) return convert_table(*table, key, places);
  if (const toml::array* array = node.as_array()) return convert_list(*array, places);
  SyntaxNode out;
  out.span = places.span(node.source());
  if (const auto* text = node.as_string()) {
    out.scalar = Value(text->get());
  } else if (const auto* integer = node.as_integer()) {
    out.scalar = Value(integer->get());
  } else if (const auto* floating = node.as_floating_point()) {
    out.scalar = Value(floating->get());
  } else if (const auto* boolean = node.as_boolean()) {
    out.scalar = Value(boolean->get());
  } else {
    out.kind = SyntaxNode::Kind::unsupported;
    out.what = node.is_date() ? "date" : node.is_time() ? "time" : "date-time";
  }
  return out;
}

/// Messages of toml++ in the project's style: its scope prefix goes, quotes become back-ticks.
std::string restyle(std::string_view message) {
  if (message.starts_with("Error while parsing ")) {
    if (const auto colon = message.find(": "); colon != std::string_view::npos)
      message.remove_prefix(colon + 2);
  }
  std::string out;
  for (std::size_t at = 0; at < message.size(); ++at) {
    if (message.substr(at).starts_with("saw '\\n'") || message.substr(at).starts_with("saw '\\r'")) {
      out += "found the end of the line";
      at += 7;
    } else if (message.substr(at).starts_with("saw '")) {
      out += "found '";
      at += 4;
    } else if (message.substr(at).starts_with("saw ")) {
      out += "found ";
      at += 3;
    } else if (message.substr(at).starts_with("encountered end-of-file")) {
      out += "the text ends too early";
      at += std::string_view("encountered end-of-file").size() - 1;
    } else {
      out += message[at];
    }
  }
  std::replace(out.begin(), out.end(), '\'', '`');
  if (!out.empty() && out.front() >= 'A' && out.front() <= 'Z')
    out.front() = static_cast<char>(out.front() + 32);
  return out;
}

bool is_blank(char c) {
  return c == ' ' || c == '\t';
}
bool ends_token(char c) {
  return is_blank(c) || c == '\n' || c == '\r' || c == '=' || c == ',' || c == '[' || c == '{';
}

/// The key before the `=` that stands before `offset`; nothing if there is none.
std::optional<Span> key_before(std::uint32_t offset, const Places& places) {
  std::uint32_t end = offset;
  while (end > 0 && is_blank(places.byte(end - 1))) --end;
  if (end == 0 || places.byte(end - 1) != '=') return std::nullopt;
  --end;
  while (end > 0 && is_blank(places.byte(end - 1))) --end;
  std::uint32_t begin = end;
  char quote = 0;
  for (; begin > 0; --begin) {
    const char c = places.byte(begin - 1);
    if (c == '\n' || c == '\r') break;
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == ',' || c == '{') {
      break;
    }
  }
  while (begin < end && is_blank(places.byte(begin))) ++begin;
  return Span{places.source(), begin, end};
}

SyntaxProblem describe(const toml::parse_error& error, const TomlScan& scan, Places& places) {
  const std::string_view message = error.description();
  const std::uint32_t offset = places.offset(error.source().begin);
  SyntaxProblem problem{restyle(message), places.character(offset), {}};
  const bool at_line_end =
      offset >= places.size() || places.byte(offset) == '\n' || places.byte(offset) == '\r';
  if (message.starts_with("Error while parsing string") && at_line_end && scan.unclosed &&
      *scan.unclosed < offset) {
    return {"the string is not closed", Span{places.source(), *scan.unclosed, offset}, {}};
  }
  if (message.find("cannot redefine") != std::string_view::npos ||
      message.find("cannot insert") != std::string_view::npos) {
    // Point at the second definition, not at where the parser stood when it noticed.
    const bool extends = message.find("cannot insert") != std::string_view::npos ||
                         message.find("as dotted key") != std::string_view::npos;
    if (const auto key = key_before(offset, places)) {
      problem.where = *key;
    } else if (places.byte(offset) == '[') {
      problem.where = places.header(offset);
    } else if (extends) {
      std::uint32_t end =
          std::min(static_cast<std::uint32_t>(places.text().find('=', offset)), places.size());
      while (end > offset && is_blank(places.byte(end - 1))) --end;
      problem.where = {places.source(), offset, end};
    }
    // Own words: toml++ repeats parts of quoted keys in its text here.
    const std::string key(places.text().substr(problem.where.begin, problem.where.end - problem.where.begin));
    problem.message =
        "`" + key +
        (extends ? "` extends a value or table that is already complete" : "` is already defined");
  } else if (message.find("not representable") != std::string_view::npos ||
             message.find("leading zero") != std::string_view::npos ||
             message.starts_with("Error while parsing floating-point") ||
             message.starts_with("Error while parsing boolean") ||
             message.starts_with("Error while parsing date") ||
             message.starts_with("Error while parsing time")) {
    // The parser stands inside or after the value; show the whole of it.
    std::uint32_t begin = offset;
    while (begin > 0 && !ends_token(places.byte(begin - 1))) --begin;
    std::uint32_t end = offset;
    while (end < places.size() && !ends_token(places.byte(end)) && places.byte(end) != ']' &&
           places.byte(end) != '}' && places.byte(end) != '#') {
      ++end;
    }
    if (begin < end) problem.where = {places.source(), begin, end};
  }
  return problem;
}

}  // namespace

std::optional<SyntaxNode> parse_toml(SourceId source, const SourceMap& sources, SyntaxProblem& problem) {
  const SourceFile& file = sources[source];
  if (const auto bad = find_bad_byte(file.bytes())) {
    problem = {bad->message, Span{source, bad->offset, bad->offset + 1}, {}};
    return std::nullopt;
  }
  const TomlScan scan = scan_toml(file.bytes());
  if (scan.too_deep) {
    problem = {"nesting is deeper than " + std::to_string(kMaxTomlDepth) + " levels",
               Span{source, *scan.too_deep, *scan.too_deep + 1},
               {}};
    return std::nullopt;
  }
  if (scan.too_many) {
    problem = {"the text has more than " + std::to_string(kMaxTomlTables) + " tables",
               Span{source, *scan.too_many, *scan.too_many + 1},
               {}};
    return std::nullopt;
  }
  Places places(source, file);
  // Where a string does not end, the real parser says so and reads no further.
  if (scan.beyond_ascii && (!scan.unclosed || *scan.beyond_ascii < *scan.unclosed)) {
    const Span where = places.character(*scan.beyond_ascii);
    problem = {"`" + std::string(places.text().substr(where.begin, where.end - where.begin)) +
                   "` can stand only in a string or a comment; quote it",
               where,
               {}};
    return std::nullopt;
  }
  try {
    const toml::table root = toml::parse(file.bytes(), std::string_view{});
    SyntaxNode tree = convert_table(root, nullptr, places);
    tree.span = {source, 0, places.size()};
    return tree;
  } catch (const toml::parse_error& error) {
    problem = describe(error, scan, places);
    return std::nullopt;
  }
}

}  // namespace capstan
