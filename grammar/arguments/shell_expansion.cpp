#include "grammar/arguments/shell_expansion.h"

#include <algorithm>
#include <utility>

#include "grammar/environment/shell_word_reader.h"

namespace capstan {
namespace {

constexpr std::size_t kMaxWords = 100000;
constexpr std::size_t kMaxWordBytes = 1u << 20;
constexpr std::size_t kLongestSubscript = 256;

/// The array or variable that alone makes up the word (`$X`, `"${X[@]}"`), or null.
const ShellPart* only_expansion(const ShellWord& word) {
  const ShellPart* found = nullptr;
  for (const ShellPart& part : word.parts) {
    if (part.kind == ShellPart::Kind::literal && part.text.empty()) continue;
    if (found != nullptr || part.kind == ShellPart::Kind::literal) return nullptr;
    found = &part;
  }
  return found;
}

bool mentions(const ShellWord& word, const std::string& name) {
  return std::any_of(word.parts.begin(), word.parts.end(), [&](const ShellPart& part) {
    return part.kind != ShellPart::Kind::literal && part.kind != ShellPart::Kind::opaque && part.text == name;
  });
}

bool has_flag(const std::vector<ExpandedPiece>& pieces) {
  std::string text;
  for (const ExpandedPiece& piece : pieces) text += piece.text;
  return text.starts_with("--") || text.find(" --") != std::string::npos ||
         text.find("\t--") != std::string::npos || text.find("\n--") != std::string::npos;
}

bool has_flag(const std::vector<ExpandedWord>& words) {
  return std::any_of(words.begin(), words.end(),
                     [](const ExpandedWord& word) { return word.text.starts_with("--"); });
}

void put(ExpandedWord& word, const ExpandedPiece& piece, bool started) {
  word.text += piece.text;
  word.literal = word.literal && piece.literal;
  word.conditional = word.conditional || piece.conditional;
  word.several = word.several || piece.several;
  if (!piece.default_of.empty()) word.default_of = piece.default_of;
  if (!started) {
    word.span = piece.span;
  } else if (piece.span.source == word.span.source && piece.span.begin >= word.span.end) {
    word.span.end = piece.span.end;
  }
}

/// Splits unquoted expansions at blanks.
void split(const std::vector<ExpandedPiece>& pieces, std::vector<ExpandedWord>& out) {
  ExpandedWord current;
  bool started = false;
  std::vector<ExpandedWord> absent;
  const auto finish = [&] {
    if (started) out.push_back(std::exchange(current, {}));
    started = false;
  };
  for (const ExpandedPiece& piece : pieces) {
    if (piece.text.empty() && !piece.default_of.empty())
      absent.push_back({{}, piece.span, true, piece.conditional, piece.default_of});
    if (piece.quoted || !piece.expanded || !piece.literal) {
      put(current, piece, started);
      started = true;
      continue;
    }
    for (std::size_t at = 0; at < piece.text.size();) {
      const std::size_t blank = std::min(piece.text.find_first_of(" \t\r\n", at), piece.text.size());
      if (blank > at) {
        ExpandedPiece part = piece;
        part.text = piece.text.substr(at, blank - at);
        if (piece.exact()) {
          part.span = {piece.span.source, piece.span.begin + static_cast<std::uint32_t>(at),
                       piece.span.begin + static_cast<std::uint32_t>(blank)};
        }
        put(current, part, started);
        started = true;
      }
      if (blank < piece.text.size()) finish();
      at = blank + 1;
      if (out.size() > kMaxWords) return;
    }
  }
  finish();
  out.insert(out.end(), absent.begin(), absent.end());
}

/// Behind the expansion that begins at `at`; what stands in its braces or parentheses belongs to it.
std::size_t behind_expansion(std::string_view text, std::size_t at) {
  if (text[at] == '`') return std::min(text.find('`', at + 1), text.size() - 1) + 1;
  int depth = 0;
  for (std::size_t i = at + 1; i < text.size(); ++i) {
    if (text[i] == '(' || text[i] == '{') ++depth;
    if ((text[i] == ')' || text[i] == '}') && --depth <= 0) return i + 1;
    if (depth == 0) return i;
  }
  return text.size();
}

/// `"--x $Y"` of an array that is used without quotes: blanks outside of its expansions part the words.
void split_unknown(const ExpandedWord& item, std::vector<ExpandedWord>& out) {
  const std::string_view text = item.text;
  std::size_t begin = std::string_view::npos;
  bool literal = true;
  const auto finish = [&](std::size_t end) {
    if (begin == std::string_view::npos) return;
    ExpandedWord word = item;
    word.text = std::string(text.substr(begin, end - begin));
    word.literal = literal;
    word.several = !literal;
    out.push_back(std::move(word));
    begin = std::string_view::npos;
    literal = true;
  };
  for (std::size_t at = 0; at < text.size() && out.size() <= kMaxWords;) {
    const char c = text[at];
    if (std::string_view(" \t\r\n").find(c) != std::string_view::npos) {
      finish(at++);
      continue;
    }
    if (begin == std::string_view::npos) begin = at;
    const bool expands = c == '$' || c == '`';
    literal = literal && !expands && c != '{';
    at = expands ? behind_expansion(text, at) : at + 1;
  }
  finish(text.size());
}

}  // namespace

ExpandedWord join(const std::vector<ExpandedPiece>& pieces, Span whole) {
  ExpandedWord word;
  word.span = whole;
  bool started = false;
  for (const ExpandedPiece& piece : pieces) {
    if (piece.text.empty()) continue;
    put(word, piece, started);
    started = true;
  }
  return word;
}

std::vector<std::string> names_set_by_arithmetic(std::string_view text) {
  std::vector<std::string> names;
  const auto blanks = [&](std::size_t at) {
    return std::min(text.find_first_not_of(" \t\r\n", at), text.size());
  };
  const auto is_doubled = [&](std::string_view at) { return at.starts_with("++") || at.starts_with("--"); };
  bool changed = false;  // a `++` or `--` stands in front
  for (std::size_t at = 0; at < text.size();) {
    if (!is_shell_name_start(text[at])) {
      const bool doubled = is_doubled(text.substr(at));
      if (doubled || std::string_view(" \t\r\n").find(text[at]) == std::string_view::npos) changed = doubled;
      // Digits and letters of one number (`0x1F`) are no name.
      if (is_shell_name(text[at]))
        while (at < text.size() && is_shell_name(text[at])) ++at;
      else
        at += doubled ? 2 : 1;
      continue;
    }
    const std::size_t begin = at;
    while (at < text.size() && is_shell_name(text[at])) ++at;
    const std::string_view name = text.substr(begin, at - begin);
    std::size_t behind = blanks(at);
    if (behind < text.size() && text[behind] == '[') {  // `A[i] = 8`; what is in it is read, too
      const std::size_t closing = text.substr(behind, kLongestSubscript).find(']');
      behind = closing == std::string_view::npos ? behind : blanks(behind + closing + 1);
    }
    const std::string_view rest = text.substr(behind);
    const std::size_t sign = rest.find_first_not_of("+-*/%&^|<>");
    const std::string_view operation = rest.substr(0, std::min(sign, rest.size()));
    const bool compares = operation == "<" || operation == ">";
    const bool assigns = sign != std::string_view::npos && rest[sign] == '=' && !compares &&
                         (!operation.empty() || !rest.starts_with("==")) && operation.size() <= 2;
    if (changed || assigns || is_doubled(rest)) names.emplace_back(name);
    changed = false;
  }
  return names;
}

void ShellVariables::forget(const std::string& name) {
  Binding unknown;
  unknown.known = false;
  bindings_[name] = std::move(unknown);
  note(name);
}

std::vector<std::string> ShellVariables::forget_all() {
  std::vector<std::string> names;
  for (const auto& [name, binding] : bindings_) {
    if (binding.known) names.push_back(name);
  }
  for (const std::string& name : names) forget(name);
  return names;
}

std::set<std::string> ShellVariables::leave() {
  std::set<std::string> names = std::move(set_inside_.back());
  set_inside_.pop_back();
  for (const std::string& name : names) forget(name);  // and known as set by the shell around
  return names;
}

void ShellVariables::assign(const ShellAssignment& assignment, bool conditional) {
  if (assignment.open) return forget(assignment.name);
  note(assignment.name);
  Binding fresh;
  fresh.is_array = assignment.is_array;
  // `X="$X more"` keeps what X holds; only the rest is new.
  bool keeps_old = assignment.append;
  if (assignment.is_array) {
    for (const ShellWord& item : assignment.items) {
      const std::size_t before = fresh.items.size();
      expand(item, fresh.items);
      const bool own = mentions(item, assignment.name);
      keeps_old = keeps_old || own;
      for (std::size_t i = before; conditional && !own && i < fresh.items.size(); ++i)
        fresh.items[i].conditional = true;
    }
  } else {
    for (const ShellPart& part : assignment.value.parts) {
      const ShellWord one{{part}, part.span};
      std::vector<ExpandedPiece> more = pieces(one);
      const bool own = mentions(one, assignment.name);
      keeps_old = keeps_old || own;
      for (ExpandedPiece& piece : more) {
        if (conditional && !own) piece.conditional = true;
        fresh.scalar.push_back(std::move(piece));
      }
    }
  }
  Binding& stored = bindings_[assignment.name];
  const bool is_list = fresh.is_array ? has_flag(fresh.items) : has_flag(fresh.scalar);
  if (conditional && !is_list && !(stored.is_array && fresh.is_array)) {
    stored = std::move(fresh);
    stored.known = false;
    return;
  }
  if (conditional && !keeps_old) {  // one of several: what stood there before may hold instead
    for (ExpandedPiece& piece : stored.scalar) piece.conditional = true;
    for (ExpandedWord& word : stored.items) word.conditional = true;
  }
  const bool join_old = stored.known && (assignment.append || (conditional && !keeps_old));
  if (!join_old) {
    stored = std::move(fresh);
    return;
  }
  if (stored.is_array || fresh.is_array) {
    if (!stored.is_array && !stored.scalar.empty())
      stored.items.push_back(join(stored.scalar, stored.scalar[0].span));
    if (!fresh.is_array && !fresh.scalar.empty()) {
      if (assignment.append && !stored.items.empty()) {  // `A+=x` lengthens the first element
        stored.items.front().text += join(fresh.scalar, fresh.scalar[0].span).text;
        stored.items.front().literal = stored.items.front().literal && !conditional;
      } else {
        fresh.items.push_back(join(fresh.scalar, fresh.scalar[0].span));
      }
    }
    stored.is_array = true;
    stored.scalar.clear();
    stored.items.insert(stored.items.end(), fresh.items.begin(), fresh.items.end());
    return;
  }
  if (!assignment.append && !stored.scalar.empty() && !fresh.scalar.empty())
    stored.scalar.push_back({" ", stored.scalar.back().span, true, false, false, false, {}});
  stored.scalar.insert(stored.scalar.end(), fresh.scalar.begin(), fresh.scalar.end());
}

void ShellVariables::take_defaults(const ShellWord& word) {
  for (const ShellPart& part : word.parts) {
    if (part.kind != ShellPart::Kind::defaulted || bindings_.contains(part.text)) continue;
    Binding binding;
    binding.scalar = pieces({{part}, part.span});
    note(part.text);
    bindings_.emplace(part.text, std::move(binding));
  }
}

void ShellVariables::expand(const ShellWord& word, std::vector<ExpandedWord>& out) {
  if (out.size() > kMaxWords) return;
  if (const ShellPart* only = only_expansion(word); only != nullptr && only->kind == ShellPart::Kind::array) {
    const auto found = bindings_.find(only->text);
    if (found == bindings_.end() || !found->second.known) {
      out.push_back({word.text(), word.span, false, false, {}, true});
      return;
    }
    if (found->second.is_array) {
      const std::vector<ExpandedWord> items = found->second.items;
      for (const ExpandedWord& item : items) {
        if (out.size() > kMaxWords) return;
        ExpandedPiece piece{item.text, item.span,        item.literal,   only->quoted,
                            true,      item.conditional, item.default_of};
        if (!within_bounds(piece)) return;
        if (only->quoted)
          out.push_back(item);
        else if (item.literal)
          split({piece}, out);
        else
          split_unknown(item, out);
      }
      return;
    }
  }
  split(pieces(word), out);
}

int ShellVariables::mark(const ExpandedPiece& piece) {
  if (!piece.conditional && piece.default_of.empty()) return -1;
  ExpandedPiece known;
  known.conditional = piece.conditional;
  known.default_of = piece.default_of;
  marks_.push_back(std::move(known));
  return static_cast<int>(marks_.size() - 1);
}

std::vector<ExpandedPiece> ShellVariables::pieces(const ShellWord& word) {
  std::vector<ExpandedPiece> out;
  for (const ShellPart& part : word.parts) {
    ExpandedPiece piece{part.text, part.span, true, part.quoted, false, false, {}};
    if (part.kind == ShellPart::Kind::literal) {
      if (part.mark >= 0) {
        const ExpandedPiece& known = marks_[static_cast<std::size_t>(part.mark)];
        piece.conditional = known.conditional;
        piece.default_of = known.default_of;
      }
      within_bounds(piece);
      out.push_back(std::move(piece));
      continue;
    }
    piece.literal = false;
    if (part.kind != ShellPart::Kind::opaque) {
      piece.expanded = true;
      const auto found = bindings_.find(part.text);
      if (found != bindings_.end() && found->second.known) {
        append_known(found->second, part, out);
        continue;
      }
      if (part.kind == ShellPart::Kind::defaulted && found == bindings_.end()) {
        piece.text = part.fallback;
        piece.literal = true;
        piece.quoted = part.quoted || part.fallback_quoted;
        piece.default_of = part.text;
        const auto size = static_cast<std::uint32_t>(part.fallback.size());
        const std::uint32_t quote = part.fallback_quoted ? 1 : 0;
        if (part.span.end > part.span.begin + size + quote) {
          piece.span.end = part.span.end - 1 - quote;
          piece.span.begin = piece.span.end - size;
        }
      } else {
        piece.text = ShellWord{{part}, part.span}.text();
      }
    }
    // `"$@"` and `"${X[@]:1}"` are several words in spite of the quotes.
    const bool is_list = part.kind == ShellPart::Kind::array || part.text.starts_with("${@") ||
                         part.text.find("[@]") != std::string::npos;
    piece.several = !piece.literal && (!part.quoted || is_list);
    within_bounds(piece);
    out.push_back(std::move(piece));
  }
  return out;
}

void ShellVariables::append_known(const Binding& binding, const ShellPart& part,
                                  std::vector<ExpandedPiece>& out) {
  std::vector<ExpandedPiece> held = binding.scalar;
  if (binding.is_array) {
    held.clear();
    for (const ExpandedWord& item : binding.items) {
      if (!held.empty()) held.push_back({" ", held.back().span, true, false, false, false, {}});
      held.push_back({item.text, item.span, item.literal, false, false, item.conditional, item.default_of});
      if (part.kind != ShellPart::Kind::array) break;  // `$A` is its first element
    }
  }
  for (ExpandedPiece& piece : held) {
    piece.quoted = part.quoted;
    piece.expanded = true;
    piece.several = !piece.literal && !part.quoted;
    if (!within_bounds(piece)) return;
    out.push_back(std::move(piece));
  }
}

bool ShellVariables::within_bounds(ExpandedPiece& piece) {
  bytes_ += piece.text.size() + 256;  // a piece costs more than its text
  if (bytes_ <= 64 * kMaxWordBytes && piece.text.size() <= kMaxWordBytes) return true;
  if (!reported_) problems_.push_back({"the variables expand to more text than is read", piece.span, {}});
  reported_ = true;
  piece.text.clear();
  piece.literal = false;
  return false;
}

}  // namespace capstan
