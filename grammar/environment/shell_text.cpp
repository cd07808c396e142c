#include "grammar/environment/shell_text.h"

#include <algorithm>

namespace capstan {
namespace {

/// Puts places of the source where the reader put those of the made text.
class PlaceMapper {
 public:
  explicit PlaceMapper(const ShellText& text) : text_(text) {}

  void map(ShellScript& script) const {
    for (ShellCommand& command : script.commands) {
      for (ShellAssignment& assignment : command.assignments) {
        map(assignment.name_span);
        map(assignment.value);
        for (ShellWord& item : assignment.items) map(item);
      }
      for (ShellWord& word : command.words) map(word);
      for (ShellHereDocument& document : command.documents) map(document.body);
      map(command.span);
    }
    script.comments.clear();
  }
  /// The place of a part; that of its first piece when the pieces lie apart.
  void map(Span& span) const {
    if (text_.pieces.empty()) {
      span = Span{};
      return;
    }
    const std::size_t begin = span.begin, end = span.end;
    const std::size_t first = index_of(begin), last = index_of(std::max(begin, end == 0 ? 0 : end - 1));
    Span out = text_.pieces[first].span, tail = text_.pieces[last].span;
    if (is_exact(first))
      out.begin += static_cast<std::uint32_t>(std::min(begin - text_.pieces[first].begin, size_of(first)));
    if (is_exact(last)) {
      const std::size_t inside = end > text_.pieces[last].begin ? end - text_.pieces[last].begin : 0;
      tail.end = tail.begin + static_cast<std::uint32_t>(std::min(inside, size_of(last)));
    }
    if (tail.source == out.source && tail.end >= out.begin) out.end = tail.end;
    span = out;
  }

 private:
  void map(ShellWord& word) const {
    for (ShellPart& part : word.parts) {
      part.mark = mark_of(part.span);
      map(part.span);
    }
    map(word.span);
  }
  /// The first mark of the pieces that the part is made of.
  int mark_of(const Span& span) const {
    if (text_.pieces.empty()) return -1;
    for (std::size_t i = index_of(span.begin); i < text_.pieces.size(); ++i) {
      if (text_.pieces[i].begin >= span.end) break;
      if (text_.pieces[i].mark >= 0) return text_.pieces[i].mark;
    }
    return -1;
  }
  std::size_t index_of(std::size_t at) const {
    const auto behind = std::upper_bound(
        text_.pieces.begin(), text_.pieces.end(), at,
        [](std::size_t place, const ShellText::Piece& piece) { return place < piece.begin; });
    return static_cast<std::size_t>(behind - text_.pieces.begin()) - (behind == text_.pieces.begin() ? 0 : 1);
  }
  std::size_t size_of(std::size_t index) const {
    const std::size_t end =
        index + 1 < text_.pieces.size() ? text_.pieces[index + 1].begin : text_.text.size();
    return end - text_.pieces[index].begin;
  }
  bool is_exact(std::size_t index) const {
    return text_.pieces[index].span.end - text_.pieces[index].span.begin == size_of(index);
  }

  const ShellText& text_;
};

}  // namespace

void ShellText::add(const std::string& part, Span span, int mark) {
  if (part.empty()) return;
  pieces.push_back({text.size(), span, mark});
  text += part;
}

ShellScript parse_shell(const ShellText& text, std::vector<SyntaxProblem>& problems) {
  const std::size_t before = problems.size();
  ShellScript script = parse_shell(kNoSource, text.text, problems);
  const PlaceMapper mapper(text);
  mapper.map(script);
  for (std::size_t i = before; i < problems.size(); ++i) mapper.map(problems[i].where);
  return script;
}

}  // namespace capstan
