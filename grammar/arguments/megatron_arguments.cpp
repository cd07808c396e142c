#include "grammar/arguments/megatron_arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "grammar/arguments/launcher_words.h"
#include "grammar/arguments/shell_expansion.h"
#include "grammar/environment/shell_script.h"
#include "grammar/environment/shell_text.h"

namespace capstan {
namespace {

constexpr std::size_t kMaxWords = 100000;
constexpr int kMaxScripts = 8;  // `sh -c` inside `sh -c`

bool is_flag(const ExpandedWord& word) {
  return word.text.size() > 2 && word.text.starts_with("--");
}

/// `-x`, but no negative number.
bool is_option(const ExpandedWord& word) {
  return word.text.size() > 1 && word.text[0] == '-' && (word.text[1] < '0' || word.text[1] > '9') &&
         word.text[1] != '.';
}

ArgumentValue to_value(ExpandedWord word) {
  return {std::move(word.text), word.span, word.literal, std::move(word.default_of), word.several};
}

/// Groups words into arguments. Words before the first flag go to `loose`.
std::vector<Argument> group(const std::vector<ExpandedWord>& words, std::vector<ArgumentValue>& loose) {
  std::vector<Argument> arguments;
  for (const ExpandedWord& word : words) {
    if (is_flag(word)) {
      Argument argument;
      const std::size_t equal = word.text.find('=');
      argument.flag = word.text.substr(0, equal);
      argument.flag_span = word.span;
      argument.conditional = word.conditional;
      const bool exact = word.span.end - word.span.begin == word.text.size();
      if (equal != std::string::npos) {
        ArgumentValue value{word.text.substr(equal + 1), word.span, word.literal, word.default_of,
                            word.several};
        if (exact) {
          value.span.begin = word.span.begin + static_cast<std::uint32_t>(equal + 1);
          argument.flag_span.end = word.span.begin + static_cast<std::uint32_t>(equal);
        }
        argument.values.push_back(std::move(value));
      }
      arguments.push_back(std::move(argument));
      continue;
    }
    ArgumentValue value = to_value(word);
    if (arguments.empty()) {
      loose.push_back(std::move(value));
      continue;
    }
    // A value that may be missing makes the whole argument unknown.
    if (word.conditional && !arguments.back().conditional) value.literal = false;
    arguments.back().values.push_back(std::move(value));
  }
  return arguments;
}

bool is_starter(const ExpandedWord& word) {
  const std::string_view name = std::string_view(word.text).substr(word.text.rfind('/') + 1);
  return word.literal && (name == "torchrun" || name == "python" || name == "python3");
}

/// `python $SCRIPT --x`, `$PROFILER torchrun --nnodes 2 $SCRIPT --x`: behind the word that can only be the
/// program.
std::size_t behind_unknown_program(const std::vector<ExpandedWord>& words) {
  const auto starter = std::find_if(words.begin(), words.end(), is_starter);
  if (starter == words.end()) return 0;
  for (auto i = static_cast<std::size_t>(starter - words.begin()) + 1; i < words.size(); ++i) {
    if (is_option(words[i])) {  // with its value
      const bool has_value = is_flag(words[i]) && words[i].text.find('=') == std::string::npos &&
                             i + 1 < words.size() && words[i + 1].literal && !is_option(words[i + 1]);
      i += has_value ? 1 : 0;
    } else if (words[i].literal) {
      return 0;
    } else if (words[i].text.find('@') ==
               std::string::npos) {  // no list, which holds the starter's own words
      return i + 1;
    }
  }
  return 0;
}

/// Where the words of the Python program begin: behind `x.py`, or behind `-m module`. None of these: 0.
std::size_t behind_program(const std::vector<ExpandedWord>& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i].text.ends_with(".py") && !is_flag(words[i])) {
      // `launcher.py train.py`: the last of them up to the first argument.
      std::size_t behind = i + 1;
      for (std::size_t j = i + 1; j < words.size() && !is_option(words[j]); ++j) {
        if (words[j].text.ends_with(".py")) behind = j + 1;
      }
      return behind;
    }
    if (words[i].text == "-m" && i + 1 < words.size() && i > 0) {
      // `python -m torch.distributed.run x.py`: the launcher's own arguments follow.
      const std::string& module = words[i + 1].text;
      if (module.find("torch.distributed") == std::string::npos && module != "torchrun") return i + 2;
    }
  }
  return words.empty() ? 0 : behind_unknown_program(words);
}

/// The text behind `bash -c`, `bash -x -c`, `sh -euo pipefail -c`, `bash --login -c` at that place.
const ShellWord* script_word(const std::vector<ShellWord>& words, std::size_t at) {
  const std::string shell = words[at].text();
  const std::string name = shell.substr(shell.rfind('/') + 1);
  if (name != "sh" && name != "bash" && name != "zsh") return nullptr;
  bool is_command = false;
  for (std::size_t i = at + 1; i < words.size(); ++i) {
    const std::string option = words[i].text();
    if (option.size() < 2 || (option[0] != '-' && option[0] != '+')) return is_command ? &words[i] : nullptr;
    if (option.starts_with("--")) {
      if (option == "--rcfile" || option == "--init-file") ++i;
      continue;
    }
    is_command = is_command || (option[0] == '-' && option.find('c') != std::string::npos);
    if (option.find_first_of("oO") != std::string::npos) ++i;  // its value, the name of a shell option
  }
  return nullptr;
}

constexpr int kTrains = 2;

/// How likely a command is the one that trains.
int rank_of(const std::vector<ExpandedWord>& words) {
  const std::size_t behind = behind_program(words);
  if (behind == 0) return 0;
  const std::string& program = words[behind - 1].text;
  for (const char* word : {"train", "finetune", "sft", "run_"}) {
    if (program.find(word) != std::string::npos) return kTrains;
  }
  return 1;
}

class CommandFinder {
 public:
  CommandFinder(const SourceMap& sources, std::vector<SyntaxProblem>& problems)
      : sources_(sources), problems_(problems), variables_(problems) {}

  void read(const ShellScript& script, int depth, bool conditional) {
    std::vector<const ShellCommand*> with_documents;
    const std::size_t around = serials_.size();
    for (const ShellCommand& command : script.commands) {
      while (serials_.size() > around + command.kept_subshells) leave();
      while (serials_.size() < around + command.subshells) enter();
      take(command, depth, conditional || command.conditional);
      if (!command.documents.empty()) with_documents.push_back(&command);
    }
    while (serials_.size() > around) leave();
    for (const ShellCommand* command : with_documents) read_documents(*command, depth, false);
    // Only a script that is written to a file and started later holds the command.
    if (best_flags_ > 0) return;
    for (const ShellCommand* command : with_documents) read_documents(*command, depth, true);
  }

  bool found() const { return best_flags_ > 0; }
  /// Words of the command; of a plain list of arguments, of all lines.
  std::vector<ExpandedWord> words() { return plain_list_ ? std::move(lines_) : std::move(best_); }
  void move_rest(ArgumentList& list) {
    list.variables = std::move(variables_known_);
    list.open_variables = std::move(variables_open_);
    list.absent = std::move(plain_list_ ? lines_absent_ : best_absent_);
    if (plain_list_) return;
    list.further_commands = std::move(further_);
    for (StatedVariable& stated : best_variables_)
      state(std::move(stated), list.variables, list.open_variables);
  }

 private:
  struct StatedVariable {
    EnvironmentVariable variable;
    bool known = false;  ///< false: only a shell can know the value
  };

  /// A shell of its own: a subshell, `sh -c`, a here-document.
  void enter() {
    serials_.push_back(best_serial_);
    variables_.enter();
  }
  void leave() {
    const bool trains = best_serial_ != serials_.back();  // its exports are those of the command
    serials_.pop_back();
    for (const std::string& name : variables_.leave()) {
      if (!trains) open_export(name);
    }
  }

  void forget(const std::string& name) {
    variables_.forget(name);
    open_export(name);
  }
  void forget_all() {
    for (const std::string& name : variables_.forget_all()) open_export(name);
  }

  /// What a process gets under the name is not known.
  void open_export(const std::string& name) {
    if (!exported_.contains(name)) return;
    const auto known =
        std::find_if(variables_known_.begin(), variables_known_.end(),
                     [&](const EnvironmentVariable& variable) { return variable.name == name; });
    if (known == variables_known_.end()) return;
    const EnvironmentVariable last = *known;
    state({last, false}, variables_known_, variables_open_);
  }

  void take(const ShellCommand& command, int depth, bool conditional) {
    take_arithmetic(command);
    if (command.words.empty()) {
      for (const ShellAssignment& assignment : command.assignments) {
        if (command.exports) exported_.insert(assignment.name);
        if (exported_.contains(assignment.name)) {
          if (auto stated = stated_by(assignment, conditional || command.isolated))
            state(std::move(*stated), variables_known_, variables_open_);
        }
        // Whether the rest of its list or the script reads the name: what it holds differs.
        if (command.isolated)
          forget(assignment.name);
        else
          variables_.assign(assignment, conditional);
      }
      return;
    }
    if (take_names(command)) {
      any_command_ = true;
      return;
    }
    std::vector<ExpandedWord> words;
    for (const ShellWord& word : command.words) variables_.expand(word, words);
    // Variables that hold nothing where the environment does not say otherwise.
    std::vector<ArgumentValue> absent;
    std::erase_if(words, [&](const ExpandedWord& word) {
      const bool is_absent = word.text.empty() && !word.default_of.empty();
      if (is_absent) absent.push_back(to_value(word));
      return is_absent;
    });
    if (words.empty()) return;
    if (words.front().text == ":") {
      for (const ShellWord& word : command.words) variables_.take_defaults(word);
      return;
    }
    if (words.front().text == "echo") return;
    if (words.front().text == "unset") return unset(words, conditional);
    const bool is_first = !any_command_;
    any_command_ = true;
    if (is_first && depth == 0 && is_flag(words.front())) plain_list_ = true;
    const bool holds_script = depth < kMaxScripts && read_script_words(command, words, depth, conditional);
    if (plain_list_ && depth == 0) {
      lines_.insert(lines_.end(), words.begin(), words.end());
      lines_absent_.insert(lines_absent_.end(), absent.begin(), absent.end());
    }
    const auto flags = static_cast<std::size_t>(std::count_if(words.begin(), words.end(), is_flag));
    const int rank = rank_of(words);
    if (flags == 0) return;
    const bool better = std::pair(rank, flags) > std::pair(best_rank_, best_flags_);
    // The commands of `sh -c "..."` were read for themselves.
    if (!holds_script && (better ? best_rank_ == kTrains : rank == kTrains))
      further_.push_back(better ? best_span_ : command.span);
    if (!better) return;
    best_span_ = command.span;
    ++best_serial_;
    best_rank_ = rank;
    best_flags_ = flags;
    best_ = std::move(words);
    best_absent_ = std::move(absent);
    best_variables_.clear();
    for (const ShellAssignment& assignment : command.assignments) {
      // Where the command runs, its variables are set: the command's own condition is none of theirs.
      if (auto stated = stated_by(assignment, false)) best_variables_.push_back(std::move(*stated));
    }
    for (PassedVariable& passed : variables_passed_by(best_, behind_program(best_)))
      best_variables_.push_back({std::move(passed.variable), passed.known});
  }

  /// `$((L++))` inside any word.
  void take_arithmetic(const ShellCommand& command) {
    const auto take_word = [&](const ShellWord& word) {
      for (const ShellPart& part : word.parts) {
        if (part.kind != ShellPart::Kind::opaque || !part.text.starts_with("$((")) continue;
        for (const std::string& name : names_set_by_arithmetic(part.text)) forget(name);
      }
    };
    for (const ShellWord& word : command.words) take_word(word);
    for (const ShellAssignment& assignment : command.assignments) {
      take_word(assignment.value);
      for (const ShellWord& item : assignment.items) take_word(item);
    }
  }

  /// Commands that set variables to what is not known here. True if it is one.
  bool take_names(const ShellCommand& command) {
    auto word = command.words.begin();
    const auto end = command.words.end();
    while (word + 1 != end && (word->text() == "command" || word->text() == "builtin")) ++word;
    const std::string name = word->text();
    if (name == "let") {
      for (++word; word != end; ++word) {
        for (const std::string& set : names_set_by_arithmetic(word->text())) forget(set);
      }
      return true;
    }
    if (name == "printf") {
      for (++word; word != end && word->text().starts_with("-v"); ++word) {
        if (word->text() != "-v")
          forget_named(*word, 2);
        else if (word + 1 != end)
          forget_named(*++word, 0);
      }
      return true;
    }
    if (name == "read" || name == "mapfile" || name == "readarray" || name == "getopts") {
      for (const char* own : {"REPLY", "MAPFILE", "OPTARG", "OPTIND"}) forget(own);
      bool is_value = name == "getopts";  // its first word lists the options
      for (++word; word != end; ++word) {
        const std::string text = word->text();
        const bool is_option = text.size() > 1 && text.front() == '-';
        if (!is_option && !is_value) forget_named(*word, 0);
        const std::string_view with_value = name == "read" ? "dinNptu" : "dnOsuCc";
        is_value = is_option && with_value.find(text.back()) != std::string_view::npos;
      }
      return true;
    }
    return false;
  }

  /// `L`, `A[1]`, and `"$NAME"`, which may be any.
  void forget_named(const ShellWord& word, std::size_t begin) {
    const std::string text = word.text().substr(begin);
    const std::size_t size = std::min(text.find('['), text.size());
    if (text.substr(0, size).find_first_of("$`") != std::string::npos) return forget_all();
    if (size > 0) forget(text.substr(0, size));
  }

  /// Behind it a variable holds nothing, and no process gets it.
  void unset(const std::vector<ExpandedWord>& words, bool conditional) {
    for (auto word = words.begin() + 1; word != words.end(); ++word) {
      if (!word->literal || word->text.starts_with('-')) continue;
      if (const std::size_t bracket = word->text.find('['); bracket != std::string::npos) {
        forget(word->text.substr(0, bracket));
        continue;
      }
      ShellAssignment nothing;
      nothing.name = word->text;
      nothing.name_span = word->span;
      nothing.value.span = word->span;
      variables_.assign(nothing, conditional);
      const auto is_this = [&](const EnvironmentVariable& variable) { return variable.name == word->text; };
      const auto known = std::find_if(variables_known_.begin(), variables_known_.end(), is_this);
      if (conditional && known != variables_known_.end()) variables_open_.push_back(*known);
      std::erase_if(variables_known_, is_this);
      if (!conditional) {
        std::erase_if(variables_open_, is_this);
        exported_.erase(word->text);
      }
    }
  }

  /// What a process gets by an export, or by a variable in front of its command; nothing for arrays.
  std::optional<StatedVariable> stated_by(const ShellAssignment& assignment, bool conditional) {
    if (assignment.open)
      return StatedVariable{
          {assignment.name, assignment.name_span, assignment.value.text(), assignment.value.span}, false};
    if (assignment.is_array || assignment.append) return std::nullopt;
    ExpandedWord value = join(variables_.pieces(assignment.value), assignment.value.span);
    const bool known = value.literal && !conditional && value.default_of.empty();
    return StatedVariable{{assignment.name, assignment.name_span, std::move(value.text), value.span}, known};
  }

  /// The later statement about a variable counts.
  static void state(StatedVariable stated, std::vector<EnvironmentVariable>& known,
                    std::vector<EnvironmentVariable>& open) {
    std::erase_if(stated.known ? open : known,
                  [&](const EnvironmentVariable& earlier) { return earlier.name == stated.variable.name; });
    (stated.known ? known : open).push_back(std::move(stated.variable));
  }

  /// `sh -c "..."` and `eval ...` run a text that is read here. True if there is one.
  bool read_script_words(const ShellCommand& command, const std::vector<ExpandedWord>& words, int depth,
                         bool conditional) {
    ShellText text;
    const auto add = [&](const ShellWord& word) {
      for (const ExpandedPiece& piece : variables_.pieces(word))
        text.add(piece.text, piece.span, variables_.mark(piece));
    };
    if (words.front().text == "eval") {
      for (std::size_t i = 1; i < command.words.size(); ++i) {
        if (!text.text.empty()) text.add(" ", command.words[i].span);
        add(command.words[i]);
      }
    } else {
      for (std::size_t i = 0; i + 2 < command.words.size() && text.text.empty(); ++i) {
        if (const ShellWord* script = script_word(command.words, i)) add(*script);
      }
    }
    if (text.text.empty()) return false;
    const bool is_own = words.front().text != "eval";
    if (is_own) enter();
    read(parse_shell(text, problems_), depth + 1, conditional);
    if (is_own) leave();
    return true;
  }

  /// Here-documents that a shell or sbatch reads; with `all`, those that go elsewhere too.
  void read_documents(const ShellCommand& command, int depth, bool all) {
    if (depth >= kMaxScripts) return;
    const bool runs = std::any_of(command.words.begin(), command.words.end(), [](const ShellWord& word) {
      const std::string text = word.text();
      return text == "bash" || text == "sh" || text == "sbatch" || text == "zsh";
    });
    if (runs == all) return;
    for (const ShellHereDocument& document : command.documents) {
      if (!document.body.exists()) continue;
      ShellText text;
      text.add(std::string(sources_.text(document.body)), document.body);
      std::vector<SyntaxProblem> unheard;  // what goes elsewhere need not be a script
      enter();
      read(parse_shell(text, all ? unheard : problems_), depth + 1, false);
      leave();
    }
  }

  const SourceMap& sources_;
  std::vector<SyntaxProblem>& problems_;
  ShellVariables variables_;
  std::vector<ExpandedWord> best_, lines_;
  std::vector<ArgumentValue> best_absent_, lines_absent_;
  std::size_t best_flags_ = 0;
  int best_rank_ = -1;
  Span best_span_;
  std::vector<Span> further_;  ///< commands that train, too
  std::size_t best_serial_ = 0;
  std::vector<std::size_t> serials_;  ///< best_serial_ when each open shell began
  std::set<std::string> exported_;
  bool any_command_ = false, plain_list_ = false;
  std::vector<EnvironmentVariable> variables_known_, variables_open_;
  std::vector<StatedVariable> best_variables_;
};

}  // namespace

std::optional<ArgumentList> parse_megatron_arguments(SourceId source, const SourceMap& sources,
                                                     std::vector<SyntaxProblem>& problems) {
  if (const std::size_t nul = sources[source].bytes().find('\0'); nul != std::string_view::npos) {
    const auto at = static_cast<std::uint32_t>(nul);
    problems.push_back(
        {"a NUL byte stands in the text; this looks like a binary file", {source, at, at + 1}, {}});
    return std::nullopt;
  }
  ShellScript script = parse_shell(source, sources, problems);
  ArgumentList list;
  list.comments = std::move(script.comments);
  CommandFinder finder(sources, problems);
  finder.read(script, 0, false);
  if (!finder.found()) {
    if (problems.empty())
      problems.push_back({"no command with arguments (`--name value`) is found", Span{source, 0, 0}, {}});
    return std::nullopt;
  }
  finder.move_rest(list);
  std::vector<ExpandedWord> words = finder.words();
  if (words.size() > kMaxWords) {
    problems.push_back(
        {fmt::format("the command has more than {} words", kMaxWords), words.front().span, {}});
    return std::nullopt;
  }
  const auto own = words.begin() + static_cast<std::ptrdiff_t>(behind_program(words));
  std::vector<ArgumentValue> behind;
  if (own != words.begin()) {
    for (auto word = words.begin(); word != own - 1; ++word) list.launcher.push_back(to_value(*word));
  }
  list.arguments = group(std::vector<ExpandedWord>(own, words.end()), behind);
  // Without a program word, the words before the first argument are the program and its launcher.
  for (ArgumentValue& value : behind) {
    if (own != words.begin() || !value.literal) list.loose.push_back(std::move(value));
  }
  return list;
}

}  // namespace capstan
