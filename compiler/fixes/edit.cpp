#include "compiler/fixes/edit.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "compiler/config/exchange/say_argument.h"
#include "compiler/fixes/emptied_table.h"
#include "compiler/fixes/toml_layout.h"
#include "grammar/source/comma_words.h"
#include "grammar/source/syntax_tree.h"
#include "grammar/toml/toml_document.h"

namespace capstan {
namespace {

bool in_file(const Origin& origin) {
  return (origin.kind == OriginKind::file || origin.kind == OriginKind::extended_file) &&
         origin.key.exists() && origin.value.exists();
}

std::string table_of(const std::string& path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string::npos ? "" : path.substr(0, dot);
}

std::string last_part(const std::string& path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string::npos ? path : path.substr(dot + 1);
}

std::string as_key(const std::string& part) {
  const bool bare = !part.empty() && std::all_of(part.begin(), part.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
  return bare ? part : to_text(Value(part));
}

Edit replacement(const Span& place, std::string text) {
  return {place, std::move(text)};
}

class Planner {
 public:
  Planner(const Config& config, const SourceMap& sources) : config_(config), sources_(sources) {}

  EditPlan run(const std::vector<KeyChange>& changes) {
    // Fold to one wanted state per key, in order of first mention.
    std::vector<std::pair<std::string, std::optional<Value>>> wanted;
    std::vector<KeyChange> renames;
    std::vector<std::string> dropped;
    const auto state_of = [&](const std::string& path) -> std::optional<Value>& {
      for (auto& [known, value] : wanted) {
        if (known == path) return value;
      }
      const Setting* setting = config_.find(path);
      wanted.emplace_back(path, setting ? std::optional<Value>(setting->value) : std::nullopt);
      return wanted.back().second;
    };
    for (const KeyChange& change : changes) {
      switch (change.kind) {
        case KeyChange::Kind::rename:
          renames.push_back(change);
          break;
        case KeyChange::Kind::drop_table:
          dropped.push_back(change.path);
          break;
        case KeyChange::Kind::set: {
          std::optional<Value>& state = state_of(change.path);
          state = change.value.is_none() ? std::nullopt : std::optional<Value>(change.value);
          break;
        }
        case KeyChange::Kind::unset:
          state_of(change.path) = std::nullopt;
          if (change.keep_comment) comments_kept_.insert(change.path);
          break;
        case KeyChange::Kind::add: {
          std::optional<Value>& state = state_of(change.path);
          state = with_element(state.value_or(Value()), change.value);
          break;
        }
        case KeyChange::Kind::remove: {
          std::optional<Value>& state = state_of(change.path);
          if (state) state = without_element(*state, change.value);
          break;
        }
      }
    }
    for (const KeyChange& change : renames) {
      // A new value under the new name is written where the old one stands.
      const auto other = std::find_if(wanted.begin(), wanted.end(),
                                      [&](const auto& entry) { return entry.first == change.new_path; });
      const Setting* renamed = config_.find(change.path);
      const bool valued = other != wanted.end() && other->second && renamed != nullptr;
      const bool same = valued && *other->second == renamed->value;
      rename(change, valued && !same ? other->second : std::nullopt);
      if (valued) wanted.erase(other);
      std::erase_if(wanted, [&](const auto& entry) { return entry.first == change.path && !entry.second; });
    }
    for (const auto& [path, value] : wanted) {
      if (value)
        set(path, *value);
      else
        unset(path);
    }
    for (const std::string& section : dropped) drop_table(section);
    flush_inline_removals();
    flush_insertions();
    std::stable_sort(plan_.edits.begin(), plan_.edits.end(), [](const Edit& a, const Edit& b) {
      return std::pair(a.span.source, a.span.begin) < std::pair(b.span.source, b.span.begin);
    });
    return std::move(plan_);
  }

 private:
  std::string_view text_of(SourceId source) const { return sources_[source].bytes(); }

  bool is_foreign(SourceId source) const {
    return std::find(config_.foreign.begin(), config_.foreign.end(), source) != config_.foreign.end();
  }
  bool editable(const Origin& origin) const { return in_file(origin) && !is_foreign(origin.key.source); }

  /// A change of a Megatron-LM argument list in its own words; empty for other formats, and where no single
  /// argument says it.
  std::string as_argument(const std::string& path, const Origin* origin,
                          const std::optional<Value>& value) const {
    const bool implied = origin != nullptr && origin->kind == OriginKind::imported && !origin->key.exists();
    if (origin == nullptr || implied) {
      const Setting* frontend = config_.find("target.frontend");
      if (frontend == nullptr || frontend->value != Value("megatron-lm") ||
          frontend->origin.kind != OriginKind::imported)
        return {};
      const auto said = value ? say_argument(path, *value) : std::nullopt;
      return said ? fmt::format("add `{}`", *said) : "";
    }
    if (!origin->key.exists() || !sources_.text(origin->key).starts_with("--")) return {};
    if (value) {
      const Flag* own = builtin_flag_table().find(sources_.text(origin->key));
      const bool takes = own != nullptr && own->takes != FlagValue::none && own->keys.size() == 1;
      if (const auto said = takes ? flag_with_value(*own, *value) : std::nullopt)
        return fmt::format("write `{}` at {}", *said, place(origin->key));
      if (const auto said = say_argument(path, *value))
        return fmt::format("write `{}` at {}", *said, place(origin->key));
    }
    const bool is_switch = origin->key == origin->value;
    if (!value || is_switch)
      return fmt::format("take `{}` out at {}", sources_.text(origin->key), place(origin->key));
    return {};
  }

  void by_hand(const std::string& path, const Origin& origin, const std::optional<Value>& value) {
    const std::string written = value ? to_text(*value) : "";
    const std::string name = path.starts_with("env.") ? path.substr(4) : path;
    const std::string plain = value && value->kind() == Value::Kind::string ? value->string() : written;
    if (const std::string words = as_argument(path, &origin, value); !words.empty()) return say(words);
    switch (origin.kind) {
      case OriginKind::override_argument:
        plan_.by_hand.push_back(value ? fmt::format("pass `{}={}` to `--set`", path, written)
                                      : fmt::format("drop `{}` from `--set`", path));
        return;
      case OriginKind::environment:
        plan_.by_hand.push_back(value ? fmt::format("set `{}={}` in the environment", name, plain)
                                      : fmt::format("unset `{}` in the environment", name));
        return;
      case OriginKind::environment_file: {
        const std::string where = origin.key.exists() ? place(origin.key) : "the environment file";
        plan_.by_hand.push_back(value ? fmt::format("set `{}={}` at {}", name, plain, where)
                                      : fmt::format("take `{}` out at {}", name, where));
        return;
      }
      default: {
        const std::string where = origin.key.exists() ? place(origin.key) : "where it comes from";
        plan_.by_hand.push_back(value ? fmt::format("set `{}` to `{}` at {}", path, written, where)
                                      : fmt::format("take `{}` out at {}", path, where));
      }
    }
  }

  void rename_by_hand(const KeyChange& change, const Origin& origin, const Value& value) {
    if (origin.kind == OriginKind::override_argument)
      return say(fmt::format("pass `{}={}` to `--set` in place of `{}`", change.new_path, to_text(value),
                             change.path));
    if (origin.key.exists() && sources_.text(origin.key).starts_with("--")) {
      if (const auto said = say_argument(change.new_path, value))
        return say(fmt::format("write `{}` in place of `{}` at {}", *said, sources_.text(origin.key),
                               place(origin.key)));
      by_hand(change.path, origin, std::nullopt);
      return say(fmt::format("set `{}` to `{}`", change.new_path, to_text(value)));
    }
    by_hand(change.new_path, origin, value);
  }

  /// One argument may stand for several keys.
  void say(const std::string& clause) {
    if (std::find(plan_.by_hand.begin(), plan_.by_hand.end(), clause) == plan_.by_hand.end())
      plan_.by_hand.push_back(clause);
  }

  std::string place(const Span& span) const {
    const SourceFile& file = sources_[span.source];
    return fmt::format("{}:{}", file.name(), file.locate(span.begin).line);
  }

  void set(const std::string& path, const Value& value) {
    const Setting* setting = config_.find(path);
    if (setting == nullptr || setting->origin.kind == OriginKind::default_value ||
        setting->origin.kind == OriginKind::derived || setting->origin.kind == OriginKind::assumed) {
      if (setting == nullptr || setting->value != value) insert_later({path, value, {}, ""}, main_file());
      return;
    }
    if (setting->value == value) return;
    if (!editable(setting->origin)) {
      by_hand(path, setting->origin, value);
      return;
    }
    write_over(*setting, value);
  }

  /// The new value where the old one stands; of a list, the elements that stay keep their bytes.
  void write_over(const Setting& setting, const Value& value) {
    const std::string_view text = text_of(setting.origin.value.source);
    if (value.kind() == Value::Kind::list && setting.value.kind() == Value::Kind::list) {
      if (auto edits = list_edits(text, setting, value.list())) {
        plan_.edits.insert(plan_.edits.end(), edits->begin(), edits->end());
        return;
      }
    }
    plan_.edits.push_back(
        replacement(setting.origin.value, write_value(value, sources_.text(setting.origin.value))));
  }

  void unset(const std::string& path) {
    const Setting* setting = config_.find(path);
    if (setting == nullptr) return;
    std::vector<Origin> origins = setting->history;
    origins.push_back(setting->origin);
    for (const Origin& origin : origins) {
      if (origin.kind == OriginKind::default_value || origin.kind == OriginKind::derived ||
          origin.kind == OriginKind::assumed)
        continue;
      if (editable(origin))
        remove(origin, removal_of_entry(text_of(origin.key.source), origin.key, origin.value,
                                        comments_kept_.contains(path)));
      else
        by_hand(path, origin, std::nullopt);
    }
  }

  /// In every layer that says it.
  void rename(const KeyChange& change, const std::optional<Value>& value) {
    const Setting* setting = config_.find(change.path);
    if (setting == nullptr) return;
    std::vector<Origin> origins = setting->history;
    origins.push_back(setting->origin);
    for (std::size_t layer = 0; layer < origins.size(); ++layer) {
      const Origin& origin = origins[layer];
      const bool is_last = layer + 1 == origins.size();
      if (origin.kind == OriginKind::default_value || origin.kind == OriginKind::derived ||
          origin.kind == OriginKind::assumed)
        continue;
      if (!editable(origin)) {
        if (is_last)
          rename_by_hand(change, origin, value ? *value : setting->value);
        else
          by_hand(change.path, origin, std::nullopt);
        continue;
      }
      const std::string_view text = text_of(origin.key.source);
      std::string written(sources_.text(origin.value));
      if (table_of(change.path) == table_of(change.new_path)) {
        plan_.edits.push_back(replacement(origin.key, as_key(last_part(change.new_path))));
        if (value && is_last) write_over(*setting, *value);
        continue;
      }
      if (value && is_last) written = write_value(*value, written);
      MovedStatement moved =
          take_statement(text, origin.key, origin.value, is_comment_line(origin.key.source));
      moved.value = std::move(written);
      remove(origin, std::move(moved.removal));
      insert_later({change.new_path, {}, std::move(moved), table_of(change.path)}, origin.key.source);
    }
  }

  /// Entries of inline tables go together at the end: those beside each other share commas.
  void remove(const Origin& origin, Edit edit) {
    removed_.insert({origin.key.source, origin.key.begin});
    if (is_statement(text_of(origin.key.source), origin.key))
      plan_.edits.push_back(std::move(edit));
    else
      inline_removals_[{origin.key.source, origin.key.begin}] = origin;
  }

  void flush_inline_removals() {
    for (auto first = inline_removals_.begin(); first != inline_removals_.end();) {
      const SourceId source = first->first.first;
      const std::string_view text = text_of(source);
      auto last = first;
      auto next = std::next(first);
      while (next != inline_removals_.end() && next->first.first == source) {
        const std::uint32_t comma = skip_blanks(text, last->second.value.end);
        std::uint32_t begin = next->first.second;
        while (begin > 0 && text[begin - 1] != '{' && text[begin - 1] != ',') --begin;
        if (comma >= text.size() || text[comma] != ',' || begin != comma + 1) break;
        last = next++;
      }
      plan_.edits.push_back(removal_of_entry(text, first->second.key, last->second.value));
      first = next;
    }
  }

  void drop_table(const std::string& section) {
    for (const SourceId file : config_.files) {
      if (is_foreign(file)) continue;
      Insertion* taker = nullptr;  // the first key that moves out of the table
      bool gains = false;
      for (auto& [source, insertions] : insertions_) {
        if (source != file) continue;
        for (Insertion& insertion : insertions) {
          gains = gains || table_of(insertion.path) == section;
          if (taker == nullptr && insertion.from == section) taker = &insertion;
        }
      }
      if (gains) continue;
      const auto is_removed = [&](const Span& key) { return removed_.contains({file, key.begin}); };
      std::optional<EmptiedTable> emptied =
          find_emptied_table(file, sources_, section, taker != nullptr, is_removed, is_comment_line(file));
      if (!emptied) continue;
      const Span gone = emptied->removal.span;
      std::erase_if(inline_removals_, [&](const auto& removal) {
        return removal.first.first == file && gone.begin <= removal.first.second &&
               removal.first.second < gone.end;
      });
      if (taker != nullptr)
        taker->moved->above.insert(taker->moved->above.begin(), emptied->comments.begin(),
                                   emptied->comments.end());
      plan_.edits.push_back(std::move(emptied->removal));
    }
  }

  /// Lines that begin like a comment may be the end of a string of several lines.
  std::function<bool(std::uint32_t)> is_comment_line(SourceId source) const {
    return [this, source](std::uint32_t offset) {
      return std::none_of(config_.settings.begin(), config_.settings.end(), [&](const auto& entry) {
        const Span& value = entry.second.origin.value;
        return value.source == source && value.begin < offset && offset < value.end;
      });
    };
  }

  struct Insertion {
    std::string path;
    Value value;
    std::optional<MovedStatement> moved;  ///< else `value` is written
    std::string from;                     ///< the table that a moved statement leaves
  };

  SourceId main_file() const { return config_.files.empty() ? kNoSource : config_.files.back(); }

  void insert_later(Insertion insertion, SourceId file) {
    for (auto& [known, insertions] : insertions_) {
      if (known == file) return insertions.push_back(std::move(insertion));
    }
    insertions_.emplace_back(file, std::vector<Insertion>()).second.push_back(std::move(insertion));
  }

  void flush_insertions() {
    for (const auto& [file, insertions] : insertions_) flush_insertions(file, insertions);
  }

  void flush_insertions(SourceId file, const std::vector<Insertion>& insertions) {
    std::map<std::string, std::vector<Insertion>> by_section;
    std::vector<std::string> order;
    for (const Insertion& insertion : insertions) {
      const std::string section = table_of(insertion.path);
      if (!by_section.contains(section)) order.push_back(section);
      by_section[section].push_back(insertion);
    }
    std::string appended;
    for (const std::string& section : order) insert(file, section, by_section[section], appended);
    if (appended.empty()) return;
    const std::string_view text = text_of(file);
    const auto end = static_cast<std::uint32_t>(text.size());
    const std::string_view newline = line_ending(text);
    std::string lead;
    if (!text.empty() && text.back() != '\n') lead += newline;
    if (text.empty()) appended.erase(0, newline.size());
    plan_.edits.push_back({{file, end, end}, lead + appended});
  }

  /// The lines of a new statement, `lead` (indentation and dotted prefix) before its key.
  static std::string statement(const Insertion& insertion, std::string_view lead, std::string_view model,
                               std::string_view newline) {
    const std::string key = as_key(last_part(insertion.path));
    if (!insertion.moved)
      return fmt::format("{}{} = {}{}", lead, key, write_value(insertion.value, model), newline);
    const std::string_view indent = lead.substr(0, std::min(lead.find_first_not_of(" \t"), lead.size()));
    std::string out;
    for (const std::string& comment : insertion.moved->above)
      out += fmt::format("{}{}{}", indent, comment, newline);
    return out + fmt::format("{}{}{}{}{}{}", lead, key, insertion.moved->equals, insertion.moved->value,
                             insertion.moved->behind, newline);
  }

  /// The entry of an inline table; what stands beside the statement goes to the line above it, `line`.
  std::string entry(const Insertion& insertion, std::string_view model, const Line& line, SourceId file) {
    const std::string key = as_key(last_part(insertion.path));
    if (!insertion.moved) return fmt::format("{} = {}", key, write_value(insertion.value, model));
    const std::string_view text = text_of(file);
    std::string comments;
    for (const std::string& comment : insertion.moved->above)
      comments += comment + std::string(line_ending(text));
    if (const std::size_t begin = insertion.moved->behind.find('#'); begin != std::string::npos)
      comments += insertion.moved->behind.substr(begin) + std::string(line_ending(text));
    if (!comments.empty()) plan_.edits.push_back({{file, line.begin, line.begin}, std::move(comments)});
    return fmt::format("{} = {}", key, insertion.moved->value);
  }

  /// The last key that the checked file itself sets directly in the section.
  const Setting* last_in_section(const std::string& section, SourceId file) const {
    const Setting* last = nullptr;
    const std::string prefix = section.empty() ? "" : section + ".";
    for (auto entry = config_.settings.lower_bound(prefix);
         entry != config_.settings.end() && entry->first.starts_with(prefix); ++entry) {
      const Setting& setting = entry->second;
      if (setting.origin.key.source != file || !editable(setting.origin)) continue;
      if (table_of(setting.path) != section) continue;
      if (last == nullptr || setting.origin.key.begin > last->origin.key.begin) last = &setting;
    }
    return last;
  }

  void insert(SourceId file, const std::string& section, const std::vector<Insertion>& keys,
              std::string& appended) {
    if (file == kNoSource) {
      for (const Insertion& key : keys)
        plan_.by_hand.push_back(fmt::format("set `{}` to `{}`", key.path, to_text(key.value)));
      return;
    }
    if (is_foreign(file)) {
      for (const auto& [path, value, moved, from] : keys) {
        const std::string words = as_argument(path, nullptr, value);
        say(words.empty() ? fmt::format("set `{}` to `{}` in {}", path, to_text(value), sources_[file].name())
                          : words);
      }
      return;
    }
    const std::string_view text = text_of(file);
    const std::string newline(line_ending(text));
    if (const Setting* last = last_in_section(section, file)) {
      const Span& key = last->origin.key;
      const Span& value = last->origin.value;
      std::string inserted;
      const std::string_view model = sources_.text(value);
      if (!is_statement(text, key)) {
        const Line line = line_at(text, key.begin);
        for (const Insertion& wanted : keys) inserted += ", " + entry(wanted, model, line, file);
        plan_.edits.push_back({{file, value.end, value.end}, inserted});
        return;
      }
      const Line line = line_at(text, key.begin);
      const std::string_view lead =
          text.substr(line.begin, key.begin - line.begin);  // indentation and dotted prefix
      const Line end = line_at(text, value.end > value.begin ? value.end - 1 : value.end);
      for (const Insertion& wanted : keys) inserted += statement(wanted, lead, model, newline);
      if (end.end == end.text_end) {  // the last line of a file without line ending
        inserted.resize(inserted.size() - newline.size());
        inserted = newline + inserted;
      }
      plan_.edits.push_back({{file, end.end, end.end}, inserted});
      return;
    }
    // A section that no file names has no table; else the table is looked for in the text.
    const bool named =
        config_.sections.empty() || config_.sections.contains(section.substr(0, section.find('.')));
    SyntaxProblem problem;
    const std::optional<SyntaxNode> tree = named ? parse_toml(file, sources_, problem) : std::nullopt;
    const SyntaxNode* node = tree ? &*tree : nullptr;
    for (std::size_t start = 0; node != nullptr && start < section.size();) {
      const std::size_t dot = std::min(section.find('.', start), section.size());
      node = find(*node, section.substr(start, dot - start));
      start = dot + 1;
    }
    const bool has_header = node != nullptr && node->kind == SyntaxNode::Kind::table && node->span.exists() &&
                            node->span.begin < text.size() && text[node->span.begin] == '[';
    std::string lines;
    for (const Insertion& wanted : keys) lines += statement(wanted, "", "", newline);
    if (has_header && header_names(text, node->span, section)) {
      const Line line = line_at(text, node->span.begin);
      if (line.end == line.text_end) {
        lines.resize(lines.size() - newline.size());
        lines = newline + lines;
      }
      plan_.edits.push_back({{file, line.end, line.end}, lines});
      return;
    }
    if (node != nullptr && node->kind == SyntaxNode::Kind::table && node->span.exists() &&
        text[node->span.begin] == '{') {
      // An inline table whose entries are all another layer's, or none: before the closing brace.
      std::uint32_t brace = node->span.end - 1;
      std::uint32_t content = brace;
      while (content > node->span.begin + 1 && (text[content - 1] == ' ' || text[content - 1] == '\t'))
        --content;
      std::string inserted;
      const Line line = line_at(text, node->span.begin);
      for (const Insertion& wanted : keys) {
        if (!inserted.empty() || content > node->span.begin + 1) inserted += ",";
        inserted += " " + entry(wanted, "", line, file);
      }
      if (content == brace) inserted += " ";
      plan_.edits.push_back({{file, content, content}, inserted});
      return;
    }
    if (section.empty()) {  // a key of the top level must stand before the first header
      plan_.edits.push_back({{file, 0, 0}, lines});
      return;
    }
    appended += fmt::format("{}[{}]{}{}", newline, section, newline, lines);
  }

  const Config& config_;
  const SourceMap& sources_;
  EditPlan plan_;
  std::set<std::string> comments_kept_;
  std::set<std::pair<SourceId, std::uint32_t>> removed_;  ///< places of keys
  std::map<std::pair<SourceId, std::uint32_t>, Origin> inline_removals_;
  std::vector<std::pair<SourceId, std::vector<Insertion>>> insertions_;  ///< by file
};

}  // namespace

Value with_element(const Value& list, const Value& element) {
  if (list.kind() == Value::Kind::string && element.kind() == Value::Kind::string && !list.string().empty()) {
    const std::vector<std::string> parts = comma_words(list.string());
    if (std::find(parts.begin(), parts.end(), element.string()) != parts.end()) return list;
    return Value(list.string() + "," + element.string());
  }
  Value::List items = list.kind() == Value::Kind::list ? list.list() : Value::List{};
  if (std::find(items.begin(), items.end(), element) == items.end()) items.push_back(element);
  return Value(std::move(items));
}

Value without_element(const Value& list, const Value& element) {
  if (list.kind() == Value::Kind::string && element.kind() == Value::Kind::string) {
    std::string joined;
    for (const std::string& part : comma_words(list.string())) {
      if (part == element.string()) continue;
      joined += (joined.empty() ? "" : ",") + part;
    }
    return joined.empty() ? Value(Value::List{}) : Value(joined);
  }
  if (list.kind() != Value::Kind::list) return list;
  Value::List items = list.list();
  items.erase(std::remove(items.begin(), items.end(), element), items.end());
  return Value(std::move(items));
}

EditPlan plan_edits(const std::vector<KeyChange>& changes, const Config& config, const SourceMap& sources) {
  return Planner(config, sources).run(changes);
}

}  // namespace capstan
