#include "grammar/environment/sbatch.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>

#include "grammar/environment/shell_script.h"

namespace capstan {
namespace {

/// Long names of the short options that are read here (sbatch manual).
std::string_view long_name(char option) {
  switch (option) {
    case 'N':
      return "nodes";
    case 'n':
      return "ntasks";
    case 'c':
      return "cpus-per-task";
    case 'G':
      return "gpus";
    case 't':
      return "time";
    case 'p':
      return "partition";
    case 'A':
      return "account";
    case 'J':
      return "job-name";
    case 'o':
      return "output";
    case 'e':
      return "error";
    case 'q':
      return "qos";
    case 'w':
      return "nodelist";
    case 'x':
      return "exclude";
    case 'd':
      return "dependency";
    case 'C':
      return "constraint";
    case 'D':
      return "chdir";
    case 'a':
      return "array";
    default:
      return {};
  }
}

bool is_blank(char c) {
  return c == ' ' || c == '\t';
}

std::optional<std::int64_t> leading_count(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || value <= 0 || end == text.data()) return std::nullopt;
  const std::string_view rest(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (!rest.empty() && rest.front() != '-') return std::nullopt;  // `2-4`: at least two
  return value;
}

/// `2-4`; `4-4` is no choice.
bool is_range(std::string_view text, std::int64_t least) {
  const std::size_t dash = text.find('-');
  return dash != std::string_view::npos && text.substr(dash + 1) != std::to_string(least);
}

class LineReader {
 public:
  LineReader(SourceId source, std::string_view text, std::size_t begin, std::size_t end)
      : source_(source), text_(text.substr(0, end)), at_(begin) {}

  /// Next blank-separated word with its place; quotes around a value are removed. Empty at the end or at a
  /// comment.
  std::string_view next(Span& span) {
    while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
    if (at_ >= text_.size() || text_[at_] == '#') return {};
    const std::size_t begin = at_;
    char quote = 0;
    while (at_ < text_.size() && (quote != 0 || !is_blank(text_[at_]))) {
      if (quote != 0) {
        if (text_[at_] == quote) quote = 0;
      } else if (text_[at_] == '"' || text_[at_] == '\'') {
        quote = text_[at_];
      }
      ++at_;
    }
    span = {source_, static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(at_)};
    return text_.substr(begin, at_ - begin);
  }
  std::size_t at() const { return at_; }
  void back_to(std::size_t at) { at_ = at; }

 private:
  SourceId source_;
  std::string_view text_;
  std::size_t at_;
};

std::string_view without_quotes(std::string_view value) {
  if (value.size() >= 2 && (value.front() == '"' || value.front() == '\'') && value.back() == value.front()) {
    return value.substr(1, value.size() - 2);
  }
  return value;
}

Span part(Span whole, std::size_t begin, std::size_t end) {
  return {whole.source, whole.begin + static_cast<std::uint32_t>(begin),
          whole.begin + static_cast<std::uint32_t>(end)};
}

void read_options(SourceId source, std::string_view text, std::size_t begin, std::size_t end,
                  SbatchScript& script, std::vector<SyntaxProblem>& problems) {
  LineReader reader(source, text, begin, end);
  Span span;
  for (std::string_view word = reader.next(span); !word.empty(); word = reader.next(span)) {
    SbatchOption option;
    if (word.starts_with("--") && word.size() > 2) {
      const std::size_t equal = word.find('=');
      option.name = std::string(word.substr(2, equal == std::string_view::npos ? equal : equal - 2));
      option.name_span = part(span, 0, std::min(equal, word.size()));
      if (equal != std::string_view::npos) {
        option.value = std::string(without_quotes(word.substr(equal + 1)));
        option.value_span = part(span, equal + 1, word.size());
        script.options.push_back(std::move(option));
        continue;
      }
    } else if (word.size() >= 2 && word[0] == '-' && !long_name(word[1]).empty()) {
      option.name = std::string(long_name(word[1]));
      option.name_span = part(span, 0, 2);
      if (word.size() > 2) {
        const std::size_t skip = word[2] == '=' ? 3 : 2;
        option.value = std::string(without_quotes(word.substr(skip)));
        option.value_span = part(span, skip, word.size());
        script.options.push_back(std::move(option));
        continue;
      }
    } else {
      if (!word.starts_with('-')) {
        problems.push_back({fmt::format("`{}` is no option of sbatch", word), span, {}});
      }
      continue;
    }
    // `--nodes 4`: the next word is the value unless it is an option.
    const std::size_t before = reader.at();
    Span value_span;
    const std::string_view value = reader.next(value_span);
    if (!value.empty() && !value.starts_with('-')) {
      option.value = std::string(without_quotes(value));
      option.value_span = value_span;
    } else {
      reader.back_to(before);
    }
    script.options.push_back(std::move(option));
  }
}

/// `gpu:h100:8`, `gpu:8`, `h100:8`, `8`: type and count; the count is 1 when none is given.
std::optional<std::int64_t> gpu_count(std::string_view value, bool generic, std::string& type) {
  for (std::size_t begin = 0; begin <= value.size();) {  // gres lists several resources
    const std::size_t end = std::min(value.find(',', begin), value.size());
    std::string_view entry = value.substr(begin, end - begin);
    begin = end + 1;
    if (generic) {
      if (entry != "gpu" && !entry.starts_with("gpu:")) continue;
      entry.remove_prefix(std::min<std::size_t>(4, entry.size()));
    }
    if (entry.empty()) return 1;
    const std::size_t colon = entry.rfind(':');
    const std::string_view last = colon == std::string_view::npos ? entry : entry.substr(colon + 1);
    std::int64_t count = 0;
    const auto [stop, error] = std::from_chars(last.data(), last.data() + last.size(), count);
    const bool is_count =
        error == std::errc() && count > 0 && (stop == last.data() + last.size() || *stop == '(');
    if (is_count) {
      if (colon != std::string_view::npos) type = std::string(entry.substr(0, colon));
      return count;
    }
    if (colon == std::string_view::npos && generic) {
      type = std::string(entry);
      return 1;
    }
    return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

bool is_sbatch(std::string_view text) {
  return text.starts_with("#SBATCH") || text.find("\n#SBATCH") != std::string_view::npos;
}

SbatchScript parse_sbatch(SourceId source, const SourceMap& sources, std::vector<SyntaxProblem>& problems) {
  SbatchScript script;
  const std::string_view text = sources[source].bytes();
  const ShellScript shell = parse_shell(source, sources, problems);
  const std::uint32_t first_command =
      shell.commands.empty() ? static_cast<std::uint32_t>(text.size()) : shell.commands.front().span.begin;
  for (const Comment& comment : shell.comments) {
    const std::string_view line = sources.text(comment.span);
    if (!line.starts_with("#SBATCH") || (line.size() > 7 && !is_blank(line[7]))) continue;
    if (comment.span.begin > first_command) {
      problems.push_back(
          {"this `#SBATCH` line stands behind the first command, where sbatch ignores it", comment.span, {}});
      continue;
    }
    read_options(source, text, comment.span.begin + 7, comment.span.end, script, problems);
  }
  std::optional<CountWithPlace> per_task;
  for (const SbatchOption& option : script.options) {
    const auto place = [&](std::optional<std::int64_t> count, std::optional<CountWithPlace>& out) {
      if (count)
        out = CountWithPlace{*count, option.name_span, option.value_span, is_range(option.value, *count)};
      else
        problems.push_back({fmt::format("`{}` is no count that `{}` takes", option.value, option.name),
                            option.value_span.exists() ? option.value_span : option.name_span,
                            {}});
    };
    if (option.name == "nodes")
      place(leading_count(option.value), script.nodes);
    else if (option.name == "ntasks-per-node")
      place(leading_count(option.value), script.tasks_per_node);
    else if (option.name == "gpus-per-node")
      place(gpu_count(option.value, false, script.gpu), script.gpus_per_node);
    else if (option.name == "gpus-per-task")
      place(gpu_count(option.value, false, script.gpu), per_task);
    else if (option.name == "gres") {
      if (const auto count = gpu_count(option.value, true, script.gpu)) {
        script.gpus_per_node = CountWithPlace{*count, option.name_span, option.value_span, false};
      }
    }
  }
  if (!script.gpus_per_node && per_task && script.tasks_per_node && per_task->count <= 1024 &&
      script.tasks_per_node->count <= 1024) {
    script.gpus_per_node =
        CountWithPlace{per_task->count * script.tasks_per_node->count, per_task->key, per_task->value, false};
  }
  for (const ShellCommand& command : shell.commands) {
    if (!command.exports || command.conditional) continue;
    for (const ShellAssignment& assignment : command.assignments) {
      if (assignment.is_array || assignment.append || !assignment.value.is_literal()) continue;
      script.variables.push_back(
          {assignment.name, assignment.name_span, assignment.value.text(), assignment.value.span});
    }
  }
  return script;
}

}  // namespace capstan
