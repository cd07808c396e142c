#include "compiler/diagnostics/suppress.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

namespace capstan {
namespace {

bool is_blank(char c) {
  return c == ' ' || c == '\t';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_code_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '-' || c == '_';
}

/// A real calendar date in the form YYYY-MM-DD.
bool is_date(std::string_view text) {
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') return false;
  for (const std::size_t i : {0, 1, 2, 3, 5, 6, 8, 9}) {
    if (!is_digit(text[i])) return false;
  }
  const auto number = [&](std::size_t at, std::size_t count) {
    int value = 0;
    for (std::size_t i = at; i < at + count; ++i) value = value * 10 + (text[i] - '0');
    return value;
  };
  const int year = number(0, 4), month = number(5, 2), day = number(8, 2);
  if (month < 1 || month > 12 || day < 1) return false;
  constexpr int kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  return day <= kDays[month - 1] + (month == 2 && leap ? 1 : 0);
}

/// A reader over one comment that knows byte offsets.
class CommentReader {
 public:
  CommentReader(const Comment& comment, std::string_view text) : comment_(comment), text_(text) {}

  void skip_blanks() {
    while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
  }
  bool take(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  std::string_view take_code() {
    const std::size_t begin = at_;
    // A `--` ends the codes even without a blank before it.
    while (at_ < text_.size() && is_code_character(text_[at_]) && !text_.substr(at_).starts_with("--")) ++at_;
    return text_.substr(begin, at_ - begin);
  }
  std::string_view rest() const { return text_.substr(at_); }
  bool at_end() const { return at_ >= text_.size(); }
  std::size_t at() const { return at_; }
  Span span(std::size_t begin, std::size_t end) const {
    return {comment_.span.source, comment_.span.begin + static_cast<std::uint32_t>(begin),
            comment_.span.begin + static_cast<std::uint32_t>(end)};
  }

 private:
  const Comment& comment_;
  std::string_view text_;
  std::size_t at_ = 0;
};

std::optional<Suppression> read_one(const Comment& comment, const SourceMap& sources,
                                    const std::vector<KnownCode>& known, const std::string& today, Sink& sink,
                                    bool& whole_file) {
  CommentReader reader(comment, sources.text(comment.span));
  reader.take("#");
  reader.skip_blanks();
  if (!reader.take("capstan:")) return std::nullopt;
  reader.skip_blanks();
  whole_file = reader.take("allow-file");
  if (!whole_file && !reader.take("allow")) {
    const std::size_t begin = reader.at();
    const auto word = reader.take_code();
    sink.problem(
        "SU001",
        word.empty()
            ? std::string("`capstan:` is followed by no word; `allow` or `allow-file` is needed")
            : fmt::format("`{}` is no word after `capstan:`; `allow` or `allow-file` is needed", word),
        word.empty() ? comment.span : reader.span(begin, begin + word.size()));
    return std::nullopt;
  }
  Suppression suppression;
  suppression.comment = comment.span;
  while (true) {
    reader.skip_blanks();
    const std::size_t begin = reader.at();
    const std::string_view code = reader.take_code();
    if (code.empty()) {
      sink.problem("SU001", "a code is missing in this suppression",
                   reader.span(begin, begin + (reader.at_end() ? 0 : 1)));
      return std::nullopt;
    }
    suppression.targets.push_back({std::string(code), reader.span(begin, begin + code.size()), true, false});
    reader.skip_blanks();
    if (!reader.take(",")) break;
  }
  std::string_view reason;
  if (reader.take("--")) {
    reader.skip_blanks();
    reason = reader.rest();
  } else if (!reader.at_end()) {
    sink.problem("SU001", "`--` and a reason must follow the codes of a suppression",
                 reader.span(reader.at(), reader.at() + reader.rest().size()));
    return std::nullopt;
  }
  const auto trim = [](std::string_view text) {
    while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
    return text;
  };
  reason = trim(reason);
  // `until DATE` or `[until DATE]` at the end; other uses of the word belong to the reason. In brackets it is
  // always meant as a date.
  const auto bracket = reason.rfind("[until ");
  const bool bracketed = bracket != std::string_view::npos;
  const auto until = bracketed ? bracket + 1 : reason.rfind("until ");
  if (until != std::string_view::npos && (until == 0 || bracketed || is_blank(reason[until - 1]))) {
    std::string_view date = reason.substr(until + 6);
    if (bracketed && date.ends_with(']')) date.remove_suffix(1);
    date = trim(date);
    while (!date.empty() && is_blank(date.front())) date.remove_prefix(1);
    if (bracketed || (!date.empty() && is_digit(date.front()) && date.find(' ') == std::string_view::npos)) {
      const std::size_t begin = static_cast<std::size_t>(date.data() - sources.text(comment.span).data());
      if (!is_date(date)) {
        sink.problem("SU001", fmt::format("`{}` is no date; `YYYY-MM-DD` is needed", date),
                     reader.span(begin, begin + date.size()));
        return std::nullopt;
      }
      suppression.until = std::string(date);
      reason = trim(reason.substr(0, bracketed ? until - 1 : until));
      if (!today.empty() && suppression.until < today) {
        sink.problem("SU005", fmt::format("this suppression ended on {}", date),
                     reader.span(begin, begin + date.size()));
        return std::nullopt;
      }
    }
  }
  if (reason.empty()) {
    sink.problem("SU002", "this suppression gives no reason; write `-- ` and why behind the codes",
                 comment.span);
    return std::nullopt;
  }
  suppression.reason = std::string(reason);
  for (Suppression::Target& target : suppression.targets) {
    target.known = std::any_of(known.begin(), known.end(), [&](const KnownCode& code) {
      return code.code == target.code || code.name == target.code;
    });
    if (!target.known)
      sink.problem("SU003", fmt::format("no rule has the code or name `{}`", target.code), target.span);
  }
  return suppression;
}

bool cannot_be_suppressed(const Diagnostic& diagnostic) {
  return diagnostic.code.starts_with("SY") || diagnostic.code.starts_with("RU") ||
         diagnostic.code.starts_with("SU");
}

}  // namespace

std::vector<Suppression> read_suppressions(const std::vector<Comment>& comments, const SourceMap& sources,
                                           const std::vector<KnownCode>& known, const std::string& today,
                                           Sink& sink) {
  std::vector<Suppression> suppressions;
  for (std::size_t i = 0; i < comments.size(); ++i) {
    bool whole_file = false;
    auto suppression = read_one(comments[i], sources, known, today, sink, whole_file);
    if (!suppression) continue;
    if (!whole_file) {
      suppression->line = comments[i].line;
      if (comments[i].alone) {
        // Several comment lines may stand above one value.
        std::uint32_t line = comments[i].line + 1;
        for (std::size_t k = i + 1; k < comments.size() && comments[k].alone && comments[k].line == line; ++k)
          ++line;
        suppression->line = line;
      }
    }
    suppressions.push_back(std::move(*suppression));
  }
  return suppressions;
}

std::size_t apply_suppressions(std::vector<Diagnostic>& diagnostics, std::vector<Suppression>& suppressions,
                               const SourceMap& sources) {
  const auto suppressed = [&](const Diagnostic& diagnostic) {
    if (cannot_be_suppressed(diagnostic)) return false;
    bool covered = false;
    for (Suppression& suppression : suppressions) {
      for (Suppression::Target& target : suppression.targets) {
        if (target.code != diagnostic.code && target.code != diagnostic.name) continue;
        for (const Label& label : diagnostic.labels) {
          if (!label.primary || label.span.source != suppression.comment.source) continue;
          if (suppression.line != 0 &&
              sources[label.span.source].locate(label.span.begin).line != suppression.line)
            continue;
          target.used = true;  // all suppressions that cover it count as used, not only the first
          covered = true;
          break;
        }
      }
    }
    return covered;
  };
  const std::size_t before = diagnostics.size();
  std::erase_if(diagnostics, suppressed);
  return before - diagnostics.size();
}

void report_unused(const std::vector<Suppression>& suppressions, const SourceMap& sources, Sink& sink) {
  for (const Suppression& suppression : suppressions) {
    const bool all_unused =
        std::none_of(suppression.targets.begin(), suppression.targets.end(),
                     [](const Suppression::Target& target) { return target.used || !target.known; });
    for (const Suppression::Target& target : suppression.targets) {
      if (target.used || !target.known) continue;  // an unknown code was reported already
      Diagnostic diagnostic;
      diagnostic.code = "SU004";
      diagnostic.name = "unused-suppression";
      diagnostic.severity = Severity::warning;
      diagnostic.message = fmt::format("this suppression of `{}` suppresses nothing", target.code);
      diagnostic.arguments = {{"code", Value(target.code)}};
      diagnostic.labels.push_back({target.span, {}, true});
      if (all_unused) {
        // With the blanks before it; a comment alone on its line takes the line with it.
        const std::string_view bytes = sources[suppression.comment.source].bytes();
        Span range = suppression.comment;
        while (range.begin > 0 && is_blank(bytes[range.begin - 1])) --range.begin;
        const bool alone = range.begin == 0 || bytes[range.begin - 1] == '\n';
        if (alone && range.end < bytes.size() && bytes[range.end] == '\r') ++range.end;
        if (alone && range.end < bytes.size() && bytes[range.end] == '\n') ++range.end;
        diagnostic.fixes.push_back(
            {"remove the comment", Applicability::safe, CostClass::free, {{range, ""}}, false});
      }
      sink.report(std::move(diagnostic));
    }
  }
}

}  // namespace capstan
