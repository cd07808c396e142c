#include "compiler/fixes/edit.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "compiler/config/exchange/say_argument.h"
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

/// TOML text of a value; strings follow the quotes of `model` (the text that stands there now) where they
/// can.
std::string write_value(const Value& value, std::string_view model) {
  if (model.starts_with('[') && value.kind() == Value::Kind::string)
    model.remove_prefix(std::min(model.find_first_of("'\""), model.size()));
  if (value.kind() == Value::Kind::string && model.starts_with('\'') && !model.starts_with("'''")) {
    const std::string& text = value.string();
    const bool plain = std::all_of(text.begin(), text.end(), [](char c) {
      return c != '\'' && (c == '\t' || static_cast<unsigned char>(c) >= 0x20);
    });
    if (plain) return "'" + text + "'";
  }
  if (value.kind() == Value::Kind::list) {
    const std::size_t quote = model.find_first_of("'\"");
    const std::string_view element_model =
        quote == std::string_view::npos ? std::string_view() : model.substr(quote);
    std::string out = "[";
    for (const Value& item : value.list()) {
      if (out.size() > 1) out += ", ";
      out += write_value(item, element_model);
    }
    return out + "]";
  }
  return to_text(value);
}

struct Line {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;       // past the line ending
  std::uint32_t text_end = 0;  // before the line ending
};

Line line_at(std::string_view text, std::uint32_t offset) {
  Line line;
  const std::size_t before = offset == 0 ? std::string_view::npos : text.rfind('\n', offset - 1);
  line.begin = before == std::string_view::npos ? 0 : static_cast<std::uint32_t>(before + 1);
  const std::size_t after = text.find('\n', offset);
  line.end = static_cast<std::uint32_t>(after == std::string_view::npos ? text.size() : after + 1);
  line.text_end = after == std::string_view::npos ? line.end : line.end - 1;
  if (line.text_end > line.begin && text[line.text_end - 1] == '\r') --line.text_end;
  return line;
}

std::string_view line_ending(std::string_view text) {
  const std::size_t at = text.find('\n');
  return at != std::string_view::npos && at > 0 && text[at - 1] == '\r' ? "\r\n" : "\n";
}

std::string_view indent_of(std::string_view text, const Line& line) {
  std::uint32_t end = line.begin;
  while (end < line.text_end && (text[end] == ' ' || text[end] == '\t')) ++end;
  return text.substr(line.begin, end - line.begin);
}

/// Whether the key begins a statement of its own line; else it stands in an inline table.
bool is_statement(std::string_view text, const Span& key) {
  const Line line = line_at(text, key.begin);
  return text.substr(line.begin, key.begin - line.begin).find_first_of("{,=") == std::string_view::npos;
}

std::uint32_t skip_blanks(std::string_view text, std::uint32_t at) {
  while (at < text.size() && (text[at] == ' ' || text[at] == '\t')) ++at;
  return at;
}

Edit replacement(const Span& place, std::string text) {
  return {place, std::move(text)};
}

Edit removal_of_entry(std::string_view text, const Span& key, const Span& value) {
  if (is_statement(text, key)) {
    const Line first = line_at(text, key.begin);
    const Line last = line_at(text, value.end > value.begin ? value.end - 1 : value.end);
    return {{key.source, first.begin, last.end}, ""};
  }
  // In an inline table the comma after the entry goes with it, or for the last entry the one before.
  std::uint32_t begin = key.begin;
  while (begin > 0 && text[begin - 1] != '{' && text[begin - 1] != ',') --begin;
  const std::uint32_t after = skip_blanks(text, value.end);
  if (after < text.size() && text[after] == ',')
    return {{key.source, skip_blanks(text, begin), skip_blanks(text, after + 1)}, ""};
  const bool has_previous = begin > 0 && text[begin - 1] == ',';
  return {{key.source, has_previous ? begin - 1 : begin, value.end}, ""};
}

bool any_equal(const Value::List& a, const Value::List& b) {
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i) {
    if (a[i] == b[i]) return true;
  }
  return false;
}

/// Edits that turn one written list into another by writing elements in place of others, or by taking
/// elements away and appending; nothing when order changes.
std::optional<std::vector<Edit>> list_edits(std::string_view text, const Setting& setting,
                                            const Value::List& wanted) {
  const Value::List& current = setting.value.list();
  const std::vector<Span>& items = setting.items;
  if (items.size() != current.size()) return std::nullopt;
  std::vector<bool> kept(current.size(), false);
  std::size_t next = 0;
  for (std::size_t i = 0; i < current.size() && next < wanted.size(); ++i) {
    if (current[i] == wanted[next]) {
      kept[i] = true;
      ++next;
    }
  }
  // Words written in place of others.
  if (next < wanted.size() && wanted.size() == current.size() && any_equal(current, wanted)) {
    std::vector<Edit> edits;
    for (std::size_t i = 0; i < current.size(); ++i) {
      if (current[i] == wanted[i]) continue;
      const std::string_view model = text.substr(items[i].begin, items[i].end - items[i].begin);
      edits.push_back({items[i], write_value(wanted[i], model)});
    }
    return edits;
  }
  const std::vector<Value> added(wanted.begin() + static_cast<std::ptrdiff_t>(next), wanted.end());
  const bool any_kept = std::find(kept.begin(), kept.end(), true) != kept.end();
  if (!current.empty() && !any_kept) return std::nullopt;
  const Span whole = setting.origin.value;
  const std::string_view model = items.empty() ? std::string_view() : text.substr(items[0].begin, 1);
  std::vector<Edit> edits;
  if (current.empty()) {
    std::string inserted;
    for (const Value& value : added) inserted += (inserted.empty() ? "" : ", ") + write_value(value, model);
    if (!inserted.empty()) edits.push_back({{whole.source, whole.begin + 1, whole.begin + 1}, inserted});
    return edits;
  }
  const auto alone_on_line = [&](const Span& item) {
    const Line line = line_at(text, item.begin);
    if (text.substr(line.begin, item.begin - line.begin).find_first_not_of(" \t") != std::string_view::npos)
      return false;
    std::uint32_t after = skip_blanks(text, item.end);
    if (after < text.size() && text[after] == ',') after = skip_blanks(text, after + 1);
    return after >= line.text_end || text[after] == '#';
  };
  const bool by_lines = std::all_of(items.begin(), items.end(), alone_on_line);
  std::size_t last_kept = items.size();
  while (!kept[last_kept - 1]) --last_kept;
  --last_kept;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (kept[i]) continue;
    if (by_lines) {
      const Line line = line_at(text, items[i].begin);
      edits.push_back({{whole.source, line.begin, line.end}, ""});
    } else if (i < last_kept) {
      edits.push_back({{whole.source, items[i].begin, items[i + 1].begin}, ""});
    }
  }
  if (!by_lines && last_kept + 1 < items.size() && added.empty()) {
    edits.push_back({{whole.source, items[last_kept].end, items.back().end}, ""});
  }
  if (added.empty()) return edits;
  const Span& anchor = items[last_kept];
  const std::uint32_t after = skip_blanks(text, anchor.end);
  const bool comma = after < text.size() && text[after] == ',';
  if (by_lines) {
    const Line line = line_at(text, anchor.begin);
    const std::string lead = std::string(line_ending(text)) + std::string(indent_of(text, line));
    std::string inserted;
    // The layout with a trailing comma is kept as it is: each added line ends with one, too.
    for (const Value& value : added) inserted += lead + write_value(value, model) + ",";
    const bool was_last = last_kept + 1 == items.size();
    if (was_last && !comma) {
      inserted.pop_back();
      edits.push_back({{whole.source, anchor.end, anchor.end}, ","});
    }
    edits.push_back({{whole.source, line.text_end, line.text_end}, inserted});
    return edits;
  }
  std::string inserted;
  for (const Value& value : added) inserted += ", " + write_value(value, model);
  // What is taken away behind the anchor goes in the same edit.
  edits.push_back({{whole.source, anchor.end, items.back().end}, inserted});
  return edits;
}

class Planner {
 public:
  Planner(const Config& config, const SourceMap& sources) : config_(config), sources_(sources) {}

  EditPlan run(const std::vector<KeyChange>& changes) {
    // Fold to one wanted state per key, in order of first mention.
    std::vector<std::pair<std::string, std::optional<Value>>> wanted;
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
          rename(change);
          break;
        case KeyChange::Kind::set: {
          std::optional<Value>& state = state_of(change.path);
          state = change.value.is_none() ? std::nullopt : std::optional<Value>(change.value);
          break;
        }
        case KeyChange::Kind::unset:
          state_of(change.path) = std::nullopt;
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
    for (const auto& [path, value] : wanted) {
      if (value)
        set(path, *value);
      else
        unset(path);
    }
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
      if (setting == nullptr || setting->value != value) insertions_.emplace_back(path, value);
      return;
    }
    if (setting->value == value) return;
    if (!editable(setting->origin)) {
      by_hand(path, setting->origin, value);
      return;
    }
    const std::string_view text = text_of(setting->origin.value.source);
    if (value.kind() == Value::Kind::list && setting->value.kind() == Value::Kind::list) {
      if (auto edits = list_edits(text, *setting, value.list())) {
        plan_.edits.insert(plan_.edits.end(), edits->begin(), edits->end());
        return;
      }
    }
    plan_.edits.push_back(
        replacement(setting->origin.value, write_value(value, sources_.text(setting->origin.value))));
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
        plan_.edits.push_back(removal_of_entry(text_of(origin.key.source), origin.key, origin.value));
      else
        by_hand(path, origin, std::nullopt);
    }
  }

  void rename(const KeyChange& change) {
    const Setting* setting = config_.find(change.path);
    if (setting == nullptr) return;
    if (!editable(setting->origin)) {
      by_hand(change.new_path, setting->origin, setting->value);
      return;
    }
    if (table_of(change.path) == table_of(change.new_path)) {
      plan_.edits.push_back(replacement(setting->origin.key, as_key(last_part(change.new_path))));
      return;
    }
    const Origin& origin = setting->origin;
    plan_.edits.push_back(removal_of_entry(text_of(origin.key.source), origin.key, origin.value));
    insertions_.emplace_back(change.new_path, setting->value);
  }

  void flush_insertions() {
    std::map<std::string, std::vector<std::pair<std::string, Value>>> by_section;
    std::vector<std::string> order;
    for (auto& [path, value] : insertions_) {
      const std::string section = table_of(path);
      if (!by_section.contains(section)) order.push_back(section);
      by_section[section].emplace_back(last_part(path), std::move(value));
    }
    std::string appended;
    for (const std::string& section : order) insert(section, by_section[section], appended);
    if (appended.empty()) return;
    const SourceId file = config_.files.back();
    const std::string_view text = text_of(file);
    const auto end = static_cast<std::uint32_t>(text.size());
    const std::string_view newline = line_ending(text);
    std::string lead;
    if (!text.empty() && text.back() != '\n') lead += newline;
    if (text.empty()) appended.erase(0, newline.size());
    plan_.edits.push_back({{file, end, end}, lead + appended});
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

  void insert(const std::string& section, const std::vector<std::pair<std::string, Value>>& keys,
              std::string& appended) {
    if (config_.files.empty()) {
      for (const auto& [key, value] : keys) {
        plan_.by_hand.push_back(fmt::format("set `{}.{}` to `{}`", section, key, to_text(value)));
      }
      return;
    }
    const SourceId file = config_.files.back();
    if (is_foreign(file)) {
      for (const auto& [key, value] : keys) {
        const std::string path = section.empty() ? key : section + "." + key;
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
        for (const auto& [name, wanted] : keys)
          inserted += fmt::format(", {} = {}", as_key(name), write_value(wanted, model));
        plan_.edits.push_back({{file, value.end, value.end}, inserted});
        return;
      }
      const Line line = line_at(text, key.begin);
      const std::string_view lead =
          text.substr(line.begin, key.begin - line.begin);  // indentation and dotted prefix
      const Line end = line_at(text, value.end > value.begin ? value.end - 1 : value.end);
      for (const auto& [name, wanted] : keys)
        inserted += fmt::format("{}{} = {}{}", lead, as_key(name), write_value(wanted, model), newline);
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
    for (const auto& [name, wanted] : keys)
      lines += fmt::format("{} = {}{}", as_key(name), to_text(wanted), newline);
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
      for (const auto& [name, wanted] : keys) {
        if (!inserted.empty() || content > node->span.begin + 1) inserted += ",";
        inserted += fmt::format(" {} = {}", as_key(name), to_text(wanted));
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

  /// A table that exists only through `[a.b]` has no header of its own: the span then shows another one's.
  static bool header_names(std::string_view text, const Span& span, const std::string& section) {
    const Line line = line_at(text, span.begin);
    std::string name;
    for (const char c : text.substr(span.begin, line.text_end - span.begin)) {
      if (c == '[' || c == ' ' || c == '\t' || c == '"' || c == '\'') continue;
      if (c == ']') break;
      name += c;
    }
    return name == section;
  }

  const Config& config_;
  const SourceMap& sources_;
  EditPlan plan_;
  std::vector<std::pair<std::string, Value>> insertions_;
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
