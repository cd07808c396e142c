// Every key of the training config, release by release, from rules/keys/<section>.toml (embedded at build time).
// A Schema holds all releases; a SchemaView is what one stack knows. Immutable after loading.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "compiler/diagnostics/sink.h"
#include "compiler/schema/version.h"
#include "grammar/source/source_file.h"
#include "grammar/source/value.h"

namespace capstan {

/// What a key may hold: a union of kinds ("int | list<int> | none").
struct TypeSet {
  bool none = false, boolean = false, integer = false, floating = false, string = false, table = false, any = false;
  bool list = false;
  /// Element kinds of a list; meaningful when `list`.
  bool list_boolean = false, list_integer = false, list_floating = false, list_string = false, list_any = false;
};
/// Parses the type notation of rules/keys ("bool", "int?", "str | list<str> | none", "dict", "any", "dtype", "callable").
/// `T?` is `T | none`; dtype and callable are strings in a config.
std::optional<TypeSet> parse_type(std::string_view notation);

/// What changing a key costs; decides repair ranking. `model` keys define what is trained and are never touched.
enum class KeyEffect { model, free, memory, speed, numerics, run };

/// A key as one range of releases has it.
struct KeySpec {
  std::string type_text;
  TypeSet type;
  Value default_value;
  bool has_default = true;                  ///< false: must be given, or computed by the framework
  std::string default_text;                 ///< as the source writes it, when no Value can hold it ("F.gelu")
  std::vector<std::string> values;          ///< legal strings (also for list elements); empty: any
  bool values_are_open = false;             ///< true: the list names known values, others are legal too
};

struct KeyRange {
  std::string component;                    ///< "megatron-core", "megatron-bridge", "megatron-lm", "capstan"
  std::optional<Version> since, until;      ///< [since, until)
  KeySpec spec;
};

struct KeyInfo {
  std::string path;                         ///< "model.cuda_graph_impl"
  std::string doc;
  std::string unit;                         ///< "bytes", "tokens", "steps"; may be empty
  KeyEffect effect = KeyEffect::free;
  std::vector<KeyRange> ranges;             ///< disjoint per component, oldest first
  std::string renamed_to;                   ///< "model.cuda_graph_modules"; empty if not renamed
  std::string removed_hint;                 ///< what to do instead, when a key went away without successor
};

/// The software that a config is meant for: component -> version ("megatron-core" -> 0.17.1).
struct Stack {
  std::string name;                         ///< "bridge-0.4"
  std::string frontend;                     ///< "bridge" | "megatron-lm" | "core"
  std::vector<std::pair<std::string, Version>> components;  ///< sorted by name
  std::string note;                         ///< what the release is
  const Version* version_of(std::string_view component) const;
};

class Schema {
 public:
  const KeyInfo* find(std::string_view path) const;
  const std::vector<KeyInfo>& keys() const { return keys_; }  ///< sorted by path
  const std::vector<Stack>& stacks() const { return stacks_; }
  const Stack* find_stack(std::string_view name) const;

  std::vector<KeyInfo> keys_;
  std::vector<Stack> stacks_;
  std::unordered_map<std::string, std::size_t> index_;
};

/// What one stack knows of a key.
struct KeyView {
  const KeyInfo* info = nullptr;
  const KeySpec* spec = nullptr;  ///< null: the stack does not have the key
};

class SchemaView {
 public:
  SchemaView(const Schema& schema, const Stack& stack);
  KeyView find(std::string_view path) const;
  const Schema& schema() const { return *schema_; }
  const Stack& stack() const { return *stack_; }
  bool has_section(std::string_view section) const;
  /// Nearest known key of the same section (or the same key name in another section), for "did you mean"; empty if none is near.
  std::string nearest_key(std::string_view path) const;
  std::string nearest_section(std::string_view section) const;

 private:
  const Schema* schema_;
  const Stack* stack_;
  std::vector<const KeySpec*> specs_;  // parallel to schema_->keys()
};

/// The embedded schema, loaded once per process.
const Schema& builtin_schema();
/// Nearest string by edit distance (at most a third of its length, at least 1), or empty.
std::string nearest(std::string_view wanted, const std::vector<std::string>& candidates);

}  // namespace capstan
