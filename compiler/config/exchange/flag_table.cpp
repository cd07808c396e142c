#include "compiler/config/exchange/flag_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "compiler/embed/embedded.h"
#include "grammar/toml/toml_document.h"

namespace capstan {
namespace {

class Loader {
 public:
  explicit Loader(Sink& sink) : sink_(sink) {}

  std::optional<FlagTable> load(const SyntaxNode& root) {
    FlagTable table;
    for (const SyntaxEntry& entry : root.entries) {
      if (entry.key == "flags" && entry.value.kind == SyntaxNode::Kind::table) {
        for (const SyntaxEntry& flag : entry.value.entries) load_flag(flag, table);
      } else if (entry.key == "implied" && entry.value.kind == SyntaxNode::Kind::list) {
        for (const SyntaxNode& item : entry.value.items) load_implied(item, table);
      } else {
        report(fmt::format("`{}` is neither `flags` nor `implied`", entry.key), entry.key_span);
      }
    }
    std::sort(table.flags.begin(), table.flags.end(),
              [](const Flag& a, const Flag& b) { return a.name < b.name; });
    for (std::size_t i = 0; i < table.flags.size(); ++i) table.index.emplace(table.flags[i].name, i);
    if (failed_) return std::nullopt;
    return table;
  }

 private:
  void report(std::string message, Span where) {
    sink_.problem("RU001", std::move(message), where);
    failed_ = true;
  }

  std::string text_of(const SyntaxEntry& entry) {
    if (entry.value.kind == SyntaxNode::Kind::scalar && entry.value.scalar.kind() == Value::Kind::string)
      return entry.value.scalar.string();
    report(fmt::format("`{}` must be a string", entry.key), entry.value.span);
    return {};
  }
  std::vector<std::string> texts_of(const SyntaxEntry& entry) {
    std::vector<std::string> out;
    for (const SyntaxNode& item : entry.value.items) {
      if (item.kind == SyntaxNode::Kind::scalar && item.scalar.kind() == Value::Kind::string)
        out.push_back(item.scalar.string());
      else
        report(fmt::format("`{}` must be a list of strings", entry.key), item.span);
    }
    if (entry.value.kind != SyntaxNode::Kind::list)
      report(fmt::format("`{}` must be a list of strings", entry.key), entry.value.span);
    return out;
  }
  std::vector<std::pair<std::string, Value>> sets_of(const SyntaxEntry& entry) {
    std::vector<std::pair<std::string, Value>> out;
    if (entry.value.kind != SyntaxNode::Kind::table) report("`set` must be a table", entry.value.span);
    for (const SyntaxEntry& set : entry.value.entries) out.emplace_back(set.key, to_value(set.value));
    return out;
  }
  std::optional<Version> version_of(const SyntaxEntry& entry) {
    const auto version = parse_version(text_of(entry));
    if (!version) report(fmt::format("`{}` is no version", entry.key), entry.value.span);
    return version;
  }

  void load_takes(const SyntaxEntry& entry, Flag& flag) {
    std::string word = text_of(entry);
    if (word.starts_with("list<") && word.ends_with('>')) {
      flag.is_list = true;
      word = word.substr(5, word.size() - 6);
    }
    if (word == "none")
      flag.takes = FlagValue::none;
    else if (word == "int")
      flag.takes = FlagValue::integer;
    else if (word == "float")
      flag.takes = FlagValue::floating;
    else if (word == "str")
      flag.takes = FlagValue::string;
    else if (word == "bool")
      flag.takes = FlagValue::boolean;
    else if (word == "any")
      flag.takes = FlagValue::any;
    else
      report(fmt::format("`{}` is no kind of value", word), entry.value.span);
  }

  void load_choices(const SyntaxEntry& entry, Flag& flag) {
    if (entry.value.kind != SyntaxNode::Kind::list || flag.takes != FlagValue::string)
      report("`choices` is a list of tables, of a flag that takes `str`", entry.value.span);
    for (const SyntaxNode& item : entry.value.items) {
      FlagWords& choice = flag.choices.emplace_back();
      for (const SyntaxEntry& field : item.entries) {
        if (field.key == "values")
          choice.words = texts_of(field);
        else if (field.key == "since")
          choice.since = version_of(field);
        else if (field.key == "until")
          choice.until = version_of(field);
        else
          report(fmt::format("`{}` is no field of choices", field.key), field.key_span);
      }
      if (choice.words.empty()) report("choices need `values`", item.span);
    }
  }

  void load_flag(const SyntaxEntry& entry, FlagTable& table) {
    Flag& flag = table.flags.emplace_back();
    flag.name = entry.key;
    bool has_takes = false;
    for (const SyntaxEntry& field : entry.value.entries) {
      if (field.key == "takes")
        load_takes(field, flag), has_takes = true;
      else if (field.key == "keys")
        flag.keys = texts_of(field);
      else if (field.key == "set")
        flag.sets = sets_of(field);
      else if (field.key == "wins")
        flag.wins = true;
      else if (field.key == "irrelevant")
        flag.irrelevant = text_of(field);
      else if (field.key == "since")
        flag.since = version_of(field);
      else if (field.key == "until")
        flag.until = version_of(field);
      else if (field.key == "choices")
        load_choices(field, flag);
      else if (field.key == "list_since")
        flag.list_since = version_of(field);
      else if (field.key == "single")
        flag.single = true;
      else if (field.key == "filled")
        flag.filled = true;
      else
        report(fmt::format("`{}` is no field of a flag", field.key), field.key_span);
    }
    const bool has_key = !flag.keys.empty() || !flag.sets.empty();
    if (!has_takes || has_key == !flag.irrelevant.empty()) {
      report(fmt::format("`{}` needs `takes` and either keys or a reason why it is irrelevant", flag.name),
             entry.key_span);
    }
  }

  void load_implied(const SyntaxNode& item, FlagTable& table) {
    ImpliedSetting& implied = table.implied.emplace_back();
    for (const SyntaxEntry& field : item.entries) {
      if (field.key == "why")
        implied.why = text_of(field);
      else if (field.key == "set")
        implied.sets = sets_of(field);
      else if (field.key == "clear")
        for (std::string& key : texts_of(field)) implied.sets.emplace_back(std::move(key), Value());
      else if (field.key == "when")
        implied.when = texts_of(field);
      else if (field.key == "unless")
        implied.unless = texts_of(field);
      else
        report(fmt::format("`{}` is no field of an implied setting", field.key), field.key_span);
    }
    if (implied.why.empty() || implied.sets.empty())
      report("an implied setting needs `why` and what it sets", item.span);
  }

  Sink& sink_;
  bool failed_ = false;
};

}  // namespace

const Flag* FlagTable::find(std::string_view name) const {
  const auto found = index.find(std::string(name));
  return found == index.end() ? nullptr : &flags[found->second];
}

const std::vector<std::string>* words_of(const Flag& flag, const Version& release) {
  for (const FlagWords& choice : flag.choices) {
    if ((!choice.since || release >= *choice.since) && (!choice.until || release < *choice.until))
      return &choice.words;
  }
  return nullptr;
}

Flag as_of(Flag flag, const Version& release) {
  if (flag.list_since && release < *flag.list_since) flag.is_list = false;
  return flag;
}

std::optional<FlagTable> parse_flag_table(SourceId source, const SourceMap& sources, Sink& sink) {
  SyntaxProblem problem;
  const auto tree = parse_toml(source, sources, problem);
  if (!tree) {
    sink.problem("RU001", problem.message, problem.where);
    return std::nullopt;
  }
  return Loader(sink).load(*tree);
}

const FlagTable& builtin_flag_table() {
  static const FlagTable table = [] {
    SourceMap sources;
    Sink sink;
    const SourceId source = sources.add("flags.toml", std::string(embedded_flags()), SourceKind::builtin);
    auto parsed = parse_flag_table(source, sources, sink);
    if (!parsed)
      throw std::logic_error("the embedded flag table is damaged: " + sink.diagnostics().front().message);
    return std::move(*parsed);
  }();
  return table;
}

}  // namespace capstan
