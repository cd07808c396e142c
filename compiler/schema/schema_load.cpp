#include "compiler/schema/schema_load.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "grammar/toml/toml_document.h"

namespace capstan {
namespace {

constexpr const char* kMalformed = "RU007";

/// Reads the fields of one table; what is left over at the end is unknown.
class FieldReader {
 public:
  FieldReader(const SyntaxNode& table, std::string context, Sink& sink)
      : table_(table), context_(std::move(context)), sink_(sink) {}

  const SyntaxNode* take(std::string_view name) {
    used_.push_back(name);
    return find(table_, name);
  }

  std::string text(std::string_view name) {
    const SyntaxNode* node = take(name);
    if (node == nullptr) return {};
    if (node->kind == SyntaxNode::Kind::scalar && node->scalar.kind() == Value::Kind::string)
      return node->scalar.string();
    wrong(*node, name, "a string");
    return {};
  }

  bool flag(std::string_view name) {
    const SyntaxNode* node = take(name);
    if (node == nullptr) return false;
    if (node->kind == SyntaxNode::Kind::scalar && node->scalar.kind() == Value::Kind::boolean) {
      return node->scalar.boolean();
    }
    wrong(*node, name, "a boolean");
    return false;
  }

  std::optional<Version> version(std::string_view name) {
    const SyntaxNode* node = take(name);
    if (node == nullptr) return std::nullopt;
    if (node->kind == SyntaxNode::Kind::scalar && node->scalar.kind() == Value::Kind::string) {
      if (const auto version = parse_version(node->scalar.string())) return version;
    }
    wrong(*node, name, "a version such as \"0.16\"");
    return std::nullopt;
  }

  std::vector<std::string> texts(std::string_view name) {
    std::vector<std::string> texts;
    const SyntaxNode* node = take(name);
    if (node == nullptr) return texts;
    if (node->kind != SyntaxNode::Kind::list) wrong(*node, name, "a list of strings");
    for (const SyntaxNode& item : node->items) {
      if (item.kind == SyntaxNode::Kind::scalar && item.scalar.kind() == Value::Kind::string) {
        texts.push_back(item.scalar.string());
      } else {
        wrong(item, name, "a list of strings");
      }
    }
    return texts;
  }

  void wrong(const SyntaxNode& node, std::string_view name, std::string_view wanted) {
    sink_.problem(kMalformed, fmt::format("`{}` of {} must be {}", name, context_, wanted), node.span);
  }

  void refuse_unknown() {
    for (const SyntaxEntry& entry : table_.entries) {
      if (std::find(used_.begin(), used_.end(), entry.key) == used_.end()) {
        sink_.problem(kMalformed, fmt::format("{} has no field `{}`", context_, entry.key), entry.key_span);
      }
    }
  }

 private:
  const SyntaxNode& table_;
  std::string context_;
  Sink& sink_;
  std::vector<std::string_view> used_;
};

std::optional<KeyRange> read_range(const SyntaxNode& node, const std::string& path, Sink& sink) {
  FieldReader fields(node, fmt::format("a range of `{}`", path), sink);
  KeyRange range;
  range.component = fields.text("component");
  range.since = fields.version("since");
  range.until = fields.version("until");
  KeySpec& spec = range.spec;
  spec.type_text = fields.text("type");
  spec.values = fields.texts("values");
  spec.values_are_open = fields.flag("values_are_open");
  const SyntaxNode* default_value = fields.take("default");
  const bool default_none = fields.flag("default_none");
  spec.default_text = fields.text("default_text");
  const bool required = fields.flag("required");
  fields.refuse_unknown();

  const auto refuse = [&](std::string message) {
    sink.problem(kMalformed, std::move(message), node.span);
    return std::nullopt;
  };
  if (range.component.empty()) return refuse(fmt::format("a range of `{}` names no component", path));
  const std::optional<TypeSet> type = parse_type(spec.type_text);
  if (!type) return refuse(fmt::format("a range of `{}` has the unknown type `{}`", path, spec.type_text));
  spec.type = *type;
  if (range.since && range.until && *range.until <= *range.since) {
    return refuse(fmt::format("a range of `{}` is empty: `until` is not after `since`", path));
  }
  const int stated = (default_value != nullptr) + default_none + !spec.default_text.empty() + required;
  if (stated > 1) {
    return refuse(fmt::format(
        "a range of `{}` has more than one of default, default_none, default_text, required", path));
  }
  if (default_value != nullptr) spec.default_value = to_value(*default_value);
  spec.has_default = default_value != nullptr || default_none;
  return range;
}

bool overlap(const KeyRange& a, const KeyRange& b) {
  return a.component == b.component && (!a.until || !b.since || *b.since < *a.until) &&
         (!b.until || !a.since || *a.since < *b.until);
}

void read_key(const std::string& section, const SyntaxEntry& entry, Schema& schema, Sink& sink) {
  KeyInfo key;
  key.path = section + '.' + entry.key;
  if (entry.value.kind != SyntaxNode::Kind::table) {
    sink.problem(kMalformed, fmt::format("`{}` must be a table", key.path), entry.key_span);
    return;
  }
  FieldReader fields(entry.value, fmt::format("`{}`", key.path), sink);
  key.doc = fields.text("doc");
  key.unit = fields.text("unit");
  key.renamed_to = fields.text("renamed_to");
  key.removed_hint = fields.text("removed_hint");
  const std::string effect = fields.text("effect");
  const SyntaxNode* ranges = fields.take("ranges");
  fields.refuse_unknown();
  if (const auto parsed = parse_key_effect(effect)) {
    key.effect = *parsed;
  } else {
    sink.problem(kMalformed,
                 fmt::format("`{}` needs an `effect`: model, free, memory, speed, numerics or run", key.path),
                 entry.key_span);
  }
  if (ranges == nullptr || ranges->kind != SyntaxNode::Kind::list || ranges->items.empty()) {
    sink.problem(kMalformed, fmt::format("`{}` has no `ranges`", key.path), entry.key_span);
    return;
  }
  for (const SyntaxNode& item : ranges->items) {
    if (item.kind != SyntaxNode::Kind::table) {
      sink.problem(kMalformed, fmt::format("a range of `{}` must be a table", key.path), item.span);
      continue;
    }
    std::optional<KeyRange> range = read_range(item, key.path, sink);
    if (!range) continue;
    for (const KeyRange& other : key.ranges) {
      if (overlap(*range, other)) {
        sink.problem(kMalformed, fmt::format("two ranges of `{}` overlap for {}", key.path, range->component),
                     item.span);
      }
    }
    key.ranges.push_back(std::move(*range));
  }
  schema.keys_.push_back(std::move(key));
}

void read_stack(const SyntaxEntry& entry, Schema& schema, Sink& sink) {
  if (entry.value.kind != SyntaxNode::Kind::table) {
    sink.problem(kMalformed, fmt::format("stack `{}` must be a table", entry.key), entry.key_span);
    return;
  }
  FieldReader fields(entry.value, fmt::format("stack `{}`", entry.key), sink);
  Stack stack;
  stack.name = entry.key;
  stack.frontend = fields.text("frontend");
  stack.note = fields.text("note");
  const SyntaxNode* components = fields.take("components");
  fields.refuse_unknown();
  if (stack.frontend != "bridge" && stack.frontend != "megatron-lm" && stack.frontend != "core") {
    sink.problem(kMalformed,
                 fmt::format("stack `{}` needs a `frontend`: bridge, megatron-lm or core", entry.key),
                 entry.key_span);
    return;
  }
  if (components == nullptr || components->kind != SyntaxNode::Kind::table) {
    sink.problem(kMalformed, fmt::format("stack `{}` has no `components`", entry.key), entry.key_span);
    return;
  }
  FieldReader versions(*components, fmt::format("stack `{}`", entry.key), sink);
  for (const SyntaxEntry& component : components->entries) {
    if (const auto version = versions.version(component.key))
      stack.components.emplace_back(component.key, *version);
  }
  std::sort(stack.components.begin(), stack.components.end());
  schema.stacks_.push_back(std::move(stack));
}

/// "keys/model.toml" of any path in front.
std::string_view part_after_folder(std::string_view name) {
  const auto keys = name.rfind("keys/");
  if (keys != std::string_view::npos && (keys == 0 || name[keys - 1] == '/')) return name.substr(keys);
  const auto slash = name.rfind('/');
  return slash == std::string_view::npos ? name : name.substr(slash + 1);
}

}  // namespace

Schema load_schema(const std::vector<SchemaText>& texts, SourceMap& sources, Sink& sink) {
  Schema schema;
  for (const SchemaText& text : texts) {
    const SourceId source = sources.add(text.name, text.text, SourceKind::file);
    SyntaxProblem problem;
    const std::optional<SyntaxNode> tree = parse_toml(source, sources, problem);
    if (!tree) {
      sink.problem(kMalformed, problem.message, problem.where);
      continue;
    }
    std::string_view part = part_after_folder(text.name);
    if (part.starts_with("keys/") && part.ends_with(".toml")) {
      const std::string section(part.substr(5, part.size() - 10));
      for (const SyntaxEntry& entry : tree->entries) read_key(section, entry, schema, sink);
    } else {
      for (const SyntaxEntry& entry : tree->entries) read_stack(entry, schema, sink);
    }
  }
  schema.finish();
  for (const KeyInfo& key : schema.keys()) {
    if (!key.renamed_to.empty() && schema.find(key.renamed_to) == nullptr) {
      sink.problem(kMalformed,
                   fmt::format("`{}` was renamed to `{}`, which is no key", key.path, key.renamed_to), {});
    }
  }
  return schema;
}

std::vector<SchemaText> read_schema_folder(const std::string& folder, Sink& sink) {
  namespace fs = std::filesystem;
  std::vector<std::string> paths;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(fs::path(folder) / "keys", error)) {
    if (entry.path().extension() == ".toml") paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  if (const fs::path stacks = fs::path(folder) / "stacks.toml"; fs::exists(stacks, error)) {
    paths.push_back(stacks.string());
  }
  std::vector<SchemaText> texts;
  for (const std::string& path : paths) {
    ReadFailure failure;
    std::optional<std::string> text = read_text_file(path, failure);
    if (text)
      texts.push_back({path, std::move(*text)});
    else
      sink.problem("SY002", fmt::format("cannot read `{}`: {}", path, failure.reason), {});
  }
  return texts;
}

}  // namespace capstan
