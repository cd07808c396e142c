#include "grammar/arguments/megatron_arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "grammar/environment/shell_script.h"

namespace capstan {
namespace {

constexpr std::size_t kMaxWords = 100000;
constexpr std::size_t kMaxWordBytes = 1u << 20;

/// A word after expansion.
struct Word {
  std::string text;
  Span span;
  bool literal = true;
};

/// What a shell variable is known to hold.
struct Binding {
  bool known = true;
  bool is_array = false;
  std::vector<Word> words;  ///< one for a scalar
};

class Expander {
 public:
  explicit Expander(std::vector<SyntaxProblem>& problems) : problems_(problems) {}

  void assign(const ShellAssignment& assignment, bool conditional) {
    Binding binding;
    binding.is_array = assignment.is_array;
    if (assignment.is_array) {
      for (const ShellWord& item : assignment.items) expand(item, binding.words);
    } else {
      std::vector<Word> words;
      Word joined;
      joined.span = assignment.value.span;
      for (const Piece& piece : pieces(assignment.value)) {
        joined.text += piece.text;
        joined.literal = joined.literal && piece.literal;
        if (assignment.value.parts.size() == 1) joined.span = piece.span;
      }
      binding.words.push_back(std::move(joined));
    }
    Binding& stored = bindings_[assignment.name];
    if (assignment.append && stored.known) {
      if (stored.is_array || assignment.is_array) {
        stored.is_array = true;
        stored.words.insert(stored.words.end(), binding.words.begin(), binding.words.end());
      } else if (stored.words.empty()) {
        stored.words = std::move(binding.words);
      } else {
        stored.words.front().text += binding.words.front().text;
        stored.words.front().literal = stored.words.front().literal && binding.words.front().literal;
        stored.words.front().span = binding.words.front().span;
      }
      if (conditional) stored.known = false;
      return;
    }
    stored = std::move(binding);
    stored.known = !conditional;
  }

  void expand(const ShellWord& word, std::vector<Word>& out) {
    if (out.size() > kMaxWords) return;
    // A word that is one array expansion gives the array's words.
    if (word.parts.size() == 1 ||
        (word.parts.size() == 3 && word.parts[0].text.empty() && word.parts[2].text.empty())) {
      const ShellPart& part = word.parts[word.parts.size() / 2];
      const auto found = bindings_.find(part.text);
      const bool is_list = part.kind == ShellPart::Kind::array;
      if (is_list && found != bindings_.end() && found->second.known) {
        for (const Word& item : found->second.words) {
          if (found->second.is_array)
            out.push_back(item);
          else
            split(item, out);
        }
        return;
      }
      if (is_list) {
        out.push_back({word.text(), word.span, false});
        return;
      }
    }
    Word current;
    bool started = false;
    const auto finish = [&] {
      if (started) out.push_back(std::exchange(current, {}));
      started = false;
    };
    for (const Piece& piece : pieces(word)) {
      if (piece.quoted || !piece.expanded || !piece.literal) {
        append(current, piece, started, word.span);
        started = true;
        continue;
      }
      // Unquoted expansions are split at blanks.
      std::size_t at = 0;
      while (at < piece.text.size()) {
        const std::size_t blank = std::min(piece.text.find_first_of(" \t\n", at), piece.text.size());
        if (blank > at) {
          Piece part = piece;
          part.text = piece.text.substr(at, blank - at);
          if (piece.exact) {
            part.span = {piece.span.source, piece.span.begin + static_cast<std::uint32_t>(at),
                         piece.span.begin + static_cast<std::uint32_t>(blank)};
          }
          append(current, part, started, word.span);
          started = true;
        }
        if (blank < piece.text.size()) finish();
        at = blank + 1;
      }
    }
    finish();
  }

 private:
  struct Piece {
    std::string text;
    Span span;
    bool literal = true, quoted = false, expanded = false;
    bool exact = false;  ///< span and text have the same bytes
  };

  static void split(const Word& word, std::vector<Word>& out) {
    const bool exact = word.span.end - word.span.begin == word.text.size();
    for (std::size_t at = 0; at < word.text.size();) {
      const std::size_t begin = std::min(word.text.find_first_not_of(" \t\n", at), word.text.size());
      const std::size_t end = std::min(word.text.find_first_of(" \t\n", begin), word.text.size());
      if (end > begin) {
        Span span = word.span;
        if (exact) {
          span.begin = word.span.begin + static_cast<std::uint32_t>(begin);
          span.end = word.span.begin + static_cast<std::uint32_t>(end);
        }
        out.push_back({word.text.substr(begin, end - begin), span, word.literal});
      }
      at = end;
    }
  }

  static void append(Word& word, const Piece& piece, bool started, Span whole) {
    word.text += piece.text;
    word.literal = word.literal && piece.literal;
    word.span = started ? whole : piece.span;
  }

  std::vector<Piece> pieces(const ShellWord& word) {
    std::vector<Piece> out;
    for (const ShellPart& part : word.parts) {
      Piece piece{part.text, part.span, true, part.quoted, false, false};
      piece.exact = part.span.end - part.span.begin == part.text.size();
      switch (part.kind) {
        case ShellPart::Kind::literal:
          break;
        case ShellPart::Kind::opaque:
          piece.literal = false;
          break;
        case ShellPart::Kind::defaulted:
        case ShellPart::Kind::array:
        case ShellPart::Kind::variable: {
          const auto found = bindings_.find(part.text);
          piece.expanded = true;
          if (found != bindings_.end() && found->second.known && found->second.words.size() == 1) {
            const Word& value = found->second.words.front();
            piece.text = value.text;
            piece.span = value.span;
            piece.literal = value.literal;
            piece.exact = value.span.end - value.span.begin == value.text.size();
          } else {
            // `${X:-8}` may be given by the environment, so its default is no known value.
            piece.text = single(part).text();
            piece.literal = false;
          }
          break;
        }
      }
      bytes_ += piece.text.size();
      if (bytes_ > 64 * kMaxWordBytes || piece.text.size() > kMaxWordBytes) {
        if (!reported_)
          problems_.push_back({"the variables expand to more text than is read", part.span, {}});
        reported_ = true;
        piece.text.clear();
        piece.literal = false;
      }
      out.push_back(std::move(piece));
    }
    return out;
  }
  static ShellWord single(const ShellPart& part) { return {{part}, part.span}; }

  std::vector<SyntaxProblem>& problems_;
  std::map<std::string, Binding, std::less<>> bindings_;
  std::size_t bytes_ = 0;
  bool reported_ = false;
};

bool is_flag(const Word& word) {
  return word.text.size() > 2 && word.text.starts_with("--");
}

/// Groups words into arguments. Words before the first flag are left out; `loose` gets those that stand
/// there.
std::vector<Argument> group(const std::vector<Word>& words, std::vector<Word>* loose) {
  std::vector<Argument> arguments;
  for (const Word& word : words) {
    if (is_flag(word)) {
      Argument argument;
      const std::size_t equal = word.text.find('=');
      argument.flag = word.text.substr(0, equal);
      argument.flag_span = word.span;
      const bool exact = word.span.end - word.span.begin == word.text.size();
      if (equal != std::string::npos) {
        ArgumentValue value{word.text.substr(equal + 1), word.span, word.literal};
        if (exact) {
          value.span.begin = word.span.begin + static_cast<std::uint32_t>(equal + 1);
          argument.flag_span.end = word.span.begin + static_cast<std::uint32_t>(equal);
        }
        argument.values.push_back(std::move(value));
      }
      arguments.push_back(std::move(argument));
    } else if (!arguments.empty()) {
      arguments.back().values.push_back({word.text, word.span, word.literal});
    } else if (loose != nullptr) {
      loose->push_back(word);
    }
  }
  return arguments;
}

bool is_script(const Word& word) {
  return word.text.ends_with(".py");
}

}  // namespace

std::optional<ArgumentList> parse_megatron_arguments(SourceId source, const SourceMap& sources,
                                                     std::vector<SyntaxProblem>& problems) {
  ShellScript script = parse_shell(source, sources, problems);
  ArgumentList list;
  list.comments = std::move(script.comments);
  Expander expander(problems);
  std::vector<Word> best;
  std::size_t best_flags = 0;
  std::vector<Word> lines;  // of a plain list: every line is a command that begins with a flag
  bool only_flags = true;
  for (const ShellCommand& command : script.commands) {
    std::vector<Word> words;
    for (const ShellWord& word : command.words) expander.expand(word, words);
    if (command.words.empty()) {
      for (const ShellAssignment& assignment : command.assignments)
        expander.assign(assignment, command.conditional);
    }
    if ((command.exports && !command.conditional) || !command.words.empty()) {
      for (const ShellAssignment& assignment : command.assignments) {
        if (assignment.is_array || assignment.append || !assignment.value.is_literal()) continue;
        list.variables.push_back(
            {assignment.name, assignment.name_span, assignment.value.text(), assignment.value.span});
      }
    }
    const auto flags = static_cast<std::size_t>(std::count_if(words.begin(), words.end(), is_flag));
    if (!words.empty() && !is_flag(words.front()) && flags > 0) only_flags = false;
    lines.insert(lines.end(), words.begin(), words.end());
    if (flags > best_flags) {
      best_flags = flags;
      best = std::move(words);
    }
  }
  if (only_flags && !lines.empty() && is_flag(lines.front())) best = std::move(lines);
  if (best_flags == 0) {
    problems.push_back({"no command with arguments (`--name value`) is found", Span{source, 0, 0}, {}});
    return std::nullopt;
  }
  if (best.size() > kMaxWords) {
    problems.push_back({fmt::format("the command has more than {} words", kMaxWords), best.front().span, {}});
    return std::nullopt;
  }
  const auto script_word = std::find_if(best.rbegin(), best.rend(), is_script);
  std::vector<Word> own(script_word.base(), best.end());
  if (script_word != best.rend()) {
    list.launcher = group(std::vector<Word>(best.begin(), script_word.base() - 1), nullptr);
  } else {
    own = best;
  }
  std::vector<Word> loose;
  list.arguments = group(own, &loose);
  for (const Word& word : loose) {
    // Before the first argument: a program name, or something that a shell would have to expand.
    if (!word.literal)
      problems.push_back({fmt::format("the arguments in `{}` are not known here", word.text), word.span, {}});
  }
  return list;
}

}  // namespace capstan
