#include "grammar/arguments/launcher_words.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <utility>

namespace capstan {
namespace {

bool is_capital(char c) {
  return (c >= 'A' && c <= 'Z') || c == '_';
}

/// Length of the name of capitals and digits at the beginning; 0 if there is none.
std::size_t variable_name_size(std::string_view text) {
  std::size_t size = 0;
  while (size < text.size() &&
         (is_capital(text[size]) || (size > 0 && text[size] >= '0' && text[size] <= '9')))
    ++size;
  return size;
}

class PassedVariables {
 public:
  void take_assignment(const ExpandedWord& word, std::size_t begin, std::size_t end) {
    const std::string_view text = std::string_view(word.text).substr(begin, end - begin);
    const std::size_t size = variable_name_size(text);
    if (size == 0 || size >= text.size() || text[size] != '=') return;
    add(word, {begin, begin + size}, {begin + size + 1, end}, word.literal && word.default_of.empty());
  }

  /// `"NAME": "value"` anywhere in the text.
  void take_json(const ExpandedWord& word) {
    const std::string_view text = word.text;
    for (std::size_t at = text.find('"'); at != std::string_view::npos; at = text.find('"', at + 1)) {
      const std::size_t begin = at + 1, size = variable_name_size(text.substr(begin));
      std::size_t behind = begin + size;
      if (size == 0 || behind >= text.size() || text[behind] != '"') continue;
      behind = text.find_first_not_of(" \t\n", behind + 1);
      if (behind == std::string_view::npos || text[behind] != ':') continue;
      const std::size_t value = text.find_first_not_of(" \t\n", behind + 1);
      if (value == std::string_view::npos) return;
      std::size_t end = value;
      const bool is_text = text[value] == '"';
      if (is_text) end = std::min(text.find('"', value + 1), text.size());
      const Part place = is_text ? Part{value + 1, end} : Part{value, value};
      const bool plain =
          text.substr(place.begin, place.end - place.begin).find('\\') == std::string_view::npos;
      add(word, {begin, begin + size}, place, is_text && plain && word.literal && word.default_of.empty());
      at = std::max(at, end);
    }
  }

  std::vector<PassedVariable> take() { return std::move(passed_); }

 private:
  struct Part {
    std::size_t begin, end;
  };

  void add(const ExpandedWord& word, Part name, Part value, bool known) {
    const bool exact = word.span.end - word.span.begin == word.text.size();
    const auto place = [&](Part part) {
      if (!exact) return word.span;
      return Span{word.span.source, word.span.begin + static_cast<std::uint32_t>(part.begin),
                  word.span.begin + static_cast<std::uint32_t>(part.end)};
    };
    const auto text = [&](Part part) { return word.text.substr(part.begin, part.end - part.begin); };
    passed_.push_back({{text(name), place(name), text(value), place(value)}, known && !word.conditional});
  }

  std::vector<PassedVariable> passed_;
};

std::optional<std::int64_t> to_count(std::string_view text) {
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size() || count <= 0) return std::nullopt;
  return count;
}

std::string_view file_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

/// The value of an option that is one of these, `--name=4`, `--name 4` or `-N4`; `_` counts as `-`.
class OptionReader {
 public:
  OptionReader(const std::vector<ArgumentValue>& words, std::size_t begin, std::size_t end)
      : words_(words), begin_(begin), end_(end) {}

  /// The last one that is given. `said`: whether one is given at all, with whatever value.
  std::optional<LauncherCount> count(std::initializer_list<std::string_view> names, bool& said) const {
    std::optional<LauncherCount> found;
    for (std::size_t i = begin_; i < end_; ++i) {
      for (const std::string_view name : names) {
        const auto value = value_at(i, name);
        if (!value) continue;
        said = true;
        found.reset();
        if (const auto number = to_count(value->text); number && value->literal)
          found = LauncherCount{*number, words_[i].span, *value};
      }
    }
    return found;
  }

  bool has(std::string_view word) const {
    return std::any_of(words_.begin() + static_cast<std::ptrdiff_t>(begin_),
                       words_.begin() + static_cast<std::ptrdiff_t>(end_),
                       [&](const ArgumentValue& value) { return value.text == word; });
  }

  /// A word that may stand for any options.
  bool is_open() const {
    return std::any_of(words_.begin() + static_cast<std::ptrdiff_t>(begin_),
                       words_.begin() + static_cast<std::ptrdiff_t>(end_), [](const ArgumentValue& value) {
                         return value.several || (!value.literal && value.text.starts_with('$'));
                       });
  }

 private:
  std::optional<ArgumentValue> value_at(std::size_t i, std::string_view name) const {
    std::string text = words_[i].text;
    const std::size_t equal = std::min(text.find('='), text.size());
    if (text.starts_with("--"))
      std::replace(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(equal), '_', '-');
    if (text == name) {
      if (i + 1 >= end_) return std::nullopt;
      return words_[i + 1];
    }
    const bool is_long = name.starts_with("--");
    if (!text.starts_with(name) || (is_long && equal != name.size())) return std::nullopt;
    // `-N4`; `-np` is another option than `-n`.
    if (!is_long && text[name.size()] != '=' && (text[name.size()] < '0' || text[name.size()] > '9'))
      return std::nullopt;
    const std::size_t begin = name.size() + ((is_long || text[name.size()] == '=') ? 1 : 0);
    ArgumentValue value = words_[i];
    if (value.span.end - value.span.begin == text.size())
      value.span.begin += static_cast<std::uint32_t>(begin);
    value.text = text.substr(begin);
    return value;
  }

  const std::vector<ArgumentValue>& words_;
  std::size_t begin_, end_;
};

}  // namespace

std::vector<PassedVariable> variables_passed_by(const std::vector<ExpandedWord>& words, std::size_t behind) {
  PassedVariables passed;
  bool is_export = false;
  for (std::size_t i = 0; i + 1 < behind && i < words.size(); ++i) {
    const ExpandedWord& word = words[i];
    const std::string_view text = word.text;
    if (text.find('{') != std::string_view::npos) {
      passed.take_json(word);
      continue;
    }
    constexpr std::string_view kExport = "--export=", kEnvironment = "--env=";
    const bool lists = std::exchange(is_export, text == "--export") || text.starts_with(kExport);
    std::size_t at = text.starts_with(kExport)        ? kExport.size()
                     : text.starts_with(kEnvironment) ? kEnvironment.size()
                                                      : 0;
    while (at < text.size()) {
      const std::size_t end = lists ? std::min(text.find(',', at), text.size()) : text.size();
      passed.take_assignment(word, at, end);
      at = end + 1;
    }
  }
  return passed.take();
}

LauncherShape launcher_shape(const std::vector<ArgumentValue>& words) {
  LauncherShape shape;
  std::size_t torchrun = words.size(), srun = words.size(), mpirun = words.size();
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view name = file_name(words[i].text);
    const bool is_module = i > 0 && words[i - 1].text == "-m" && name.starts_with("torch.distributed.");
    if (name == "torchrun" || is_module) torchrun = std::min(torchrun, i);
    if (name == "srun") srun = std::min(srun, i);
    if (name == "mpirun" || name == "mpiexec") mpirun = std::min(mpirun, i);
  }
  bool says_nodes = false, says_ranks = false;
  if (torchrun < words.size()) {
    const OptionReader options(words, torchrun + 1, words.size());
    shape.ranks_per_node = options.count({"--nproc-per-node"}, says_ranks);
    shape.nodes = options.count({"--nnodes"}, says_nodes);
    if (!says_nodes && shape.ranks_per_node && !options.is_open())
      shape.nodes = LauncherCount{1, words[torchrun].span, words[torchrun]};
    return shape;
  }
  if (mpirun < words.size()) {
    shape.ranks = OptionReader(words, mpirun + 1, words.size()).count({"-np", "--np", "-n"}, says_ranks);
    return shape;
  }
  if (srun == words.size()) return shape;
  const OptionReader options(words, srun + 1, words.size());
  shape.nodes = options.count({"-N", "--nodes"}, says_nodes);
  shape.ranks_per_node = options.count({"--ntasks-per-node"}, says_ranks);
  shape.ranks = options.count({"-n", "--ntasks"}, says_ranks);
  shape.one_rank_per_task = !says_ranks && !options.is_open();
  return shape;
}

}  // namespace capstan
