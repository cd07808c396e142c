// Every key of the training config, release by release, from rules/keys/<section>.toml (embedded at build
// time). A Schema holds all releases; a SchemaView is what one stack knows. Immutable after loading.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/diagnostics/sink.h"
#include "compiler/schema/version.h"
#include "grammar/source/source_file.h"
#include "grammar/source/value.h"

namespace capstan {

/// What a key may hold: a union of kinds ("int | list<int> | none").
struct TypeSet {
  bool none = false, boolean = false, integer = false, floating = false, string = false, table = false,
       any = false;
  bool list = false;
  /// Element kinds of a list; meaningful when `list`.
  bool list_boolean = false, list_integer = false, list_floating = false, list_string = false,
       list_any = false;
  /// Strings that name a number type ("bf16"), a function ("gelu") or a version ("2.10"); `string` is set as
  /// well.
  bool dtype = false, callable = false, version = false;
  /// Strings that spell an integer or a list of integers ("[0]*3+[1]*58"), read as that; `string` is set as
  /// well.
  bool pattern = false;
};
/// Parses the type notation of rules/keys ("bool", "int?", "str | list<str> | none", "dict", "any", "dtype",
/// "callable", "version", "pattern"). `T?` is `T | none`; the last four are strings in a config.
std::optional<TypeSet> parse_type(std::string_view notation);

/// Environment variables of a job: any name is a key of this section, with a string value.
inline constexpr std::string_view kEnvironmentSection = "env";
/// The same as Bridge's config container has it (0.6 and later): defaults that the job's environment
/// overrules.
inline constexpr std::string_view kBridgeEnvironmentSection = "env_vars";

/// What changing a key costs; decides repair ranking. `model` keys define what is trained and are never
/// touched.
enum class KeyEffect { model, free, memory, speed, numerics, run };
const char* key_effect_name(KeyEffect effect);
std::optional<KeyEffect> parse_key_effect(std::string_view name);

/// A key as one range of releases has it.
struct KeySpec {
  std::string type_text;
  TypeSet type;
  Value default_value;
  bool has_default = true;          ///< false: must be given, or computed by the framework
  std::string default_text;         ///< as the source writes it, when no Value can hold it ("F.gelu")
  std::vector<std::string> values;  ///< legal strings (also for list elements); empty: any
  bool values_are_open = false;     ///< true: the list names known values, others are legal too
};

struct KeyRange {
  std::string component;                ///< "megatron-core", "megatron-bridge", "megatron-lm", "capstan"
  std::optional<Version> since, until;  ///< [since, until)
  KeySpec spec;
};

struct KeyInfo {
  std::string path;  ///< "model.cuda_graph_impl"
  std::string doc;
  std::string unit;  ///< "bytes", "tokens", "steps"; may be empty
  KeyEffect effect = KeyEffect::free;
  std::vector<KeyRange> ranges;  ///< disjoint per component, oldest first
  std::string renamed_to;        ///< "model.cuda_graph_modules"; empty if not renamed
  std::string removed_hint;      ///< what to do instead, when a key went away without successor
};

/// The software that a config is meant for: component -> version ("megatron-core" -> 0.17.1).
struct Stack {
  std::string name;                                         ///< "bridge-0.4"
  std::string frontend;                                     ///< "bridge" | "megatron-lm" | "core"
  std::vector<std::pair<std::string, Version>> components;  ///< sorted by name
  std::string note;                                         ///< what the release is
  const Version* version_of(std::string_view component) const;
};

class Schema {
 public:
  /// A key that a section's `*` stands for (any name) is found under that: path "section.*".
  const KeyInfo* find(std::string_view path) const;
  const std::vector<KeyInfo>& keys() const { return keys_; }  ///< sorted by path
  const std::vector<Stack>& stacks() const { return stacks_; }
  const Stack* find_stack(std::string_view name) const;

  /// Every section that some release has, sorted.
  const std::vector<std::string>& sections() const { return sections_; }
  /// Every component that a stack, a key's range or a version key of section `target` names, sorted
  /// ("capstan" among them).
  const std::vector<std::string>& components() const { return components_; }

  /// Filled by load_schema() and decode_schema(); call finish() after changing them.
  std::vector<KeyInfo> keys_;
  std::vector<Stack> stacks_;
  /// Sorts the keys and collects sections and components. Two keys with the same path must not exist.
  void finish();

 private:
  const KeyInfo* find_exactly(std::string_view path) const;

  std::vector<std::string> sections_;
  std::vector<std::string> open_sections_;  ///< those that have a key `*`
  std::vector<std::string> components_;
};

/// What a stack knows of a key; null if the stack does not have it. The front-end's own range wins over the
/// core's.
const KeySpec* spec_for(const KeyInfo& key, const Stack& stack);
/// Whether a key is spelt as the stack wants it: known there, and its successor (if it was renamed) is not.
bool is_native(const KeyInfo& key, const Stack& stack, const Schema& schema);
/// "model" of "model.x"; the whole path if it has no dot.
std::string_view section_of(std::string_view path);

/// What one stack knows of a key.
struct KeyView {
  const KeyInfo* info = nullptr;
  const KeySpec* spec = nullptr;  ///< null: the stack does not have the key
};

/// What a stack knows. A stack of front-end `core` has no training loop of its own: keys that only front-ends
/// have are accepted there as the newest front-end has them, since whoever drives Core may have them too.
class SchemaView {
 public:
  SchemaView(const Schema& schema, const Stack& stack);
  KeyView find(std::string_view path) const;
  const Schema& schema() const { return *schema_; }
  const Stack& stack() const { return *stack_; }
  bool has_section(std::string_view section) const;
  /// All keys that the stack has, as indices into schema().keys(), sorted.
  std::vector<std::size_t> known_keys() const;
  /// Nearest known key of the same section (or the same key name in another section), for "did you mean";
  /// empty if none is near.
  std::string nearest_key(std::string_view path) const;
  std::string nearest_section(std::string_view section) const;

 private:
  const Schema* schema_;
  const Stack* stack_;
  std::vector<const KeySpec*> specs_;       // parallel to schema_->keys()
  std::vector<std::string_view> sections_;  // of known keys, sorted
};

/// The embedded schema, loaded once per process.
const Schema& builtin_schema();
/// Nearest string by edit distance (at most a third of its length, at least 1), or empty.
std::string nearest(std::string_view wanted, const std::vector<std::string>& candidates);

}  // namespace capstan
