#include "compiler/solve/conflict_memo.h"

#include <cstring>
#include <utility>

#include "compiler/solve/domain.h"

namespace capstan {
namespace {

// Bounds the memory: an entry takes about a kilobyte.
constexpr std::size_t kMostEntries = 4096;
constexpr std::size_t kLongestKey = 4096;

template <typename T>
void append_bytes(std::string& key, T number) {
  char bytes[sizeof number];
  std::memcpy(bytes, &number, sizeof number);
  key.append(bytes, sizeof number);
}

void append_text(std::string& key, const std::string& text) {
  append_bytes(key, text.size());
  key += text;
}

/// Different values give different bytes.
void append_value(std::string& key, const Value& value) {
  key += static_cast<char>(value.kind());
  switch (value.kind()) {
    case Value::Kind::none:
      break;
    case Value::Kind::boolean:
      key += value.boolean() ? '\1' : '\0';
      break;
    case Value::Kind::integer:
      append_bytes(key, value.integer());
      break;
    case Value::Kind::floating:
      append_bytes(key, value.floating());
      break;
    case Value::Kind::string:
      append_text(key, value.string());
      break;
    case Value::Kind::list:
      append_bytes(key, value.list().size());
      for (const Value& element : value.list()) append_value(key, element);
      break;
    case Value::Kind::table:
      append_bytes(key, value.table().size());
      for (const auto& [name, element] : value.table()) {
        append_text(key, name);
        append_value(key, element);
      }
      break;
  }
}

std::string key_of(const Subject& subject, std::uint32_t position, const SmtOptions& options) {
  std::string key;
  append_bytes(key, position);
  append_bytes(key, options.timeout_ms);
  for (const FactId id : subject.index().inputs(position)) {
    const Fact& fact = subject.facts.values[id];
    key += static_cast<char>((fact.state == Fact::State::known ? 1 : 0) | (fact.set ? 2 : 0) |
                             (fact.is_version ? 4 : 0) | (fact.is_set ? 8 : 0) |
                             (subject.is_broken(id) ? 16 : 0));
    append_value(key, fact.value);
    if (key.size() > kLongestKey) break;
  }
  return key;
}

Conflict explain_alone(const Subject& subject, std::uint32_t position, const SmtOptions& options) {
  Conflict conflict = Explainer(subject, {position}, options).explain(position);
  for (Participant& participant : conflict.participants) {
    if (participant.elements.empty() && is_changeable(subject, participant.fact))
      participant.elements = elements_at_fault(subject, position, participant.fact);
  }
  return conflict;
}

}  // namespace

Conflict ConflictMemo::explain(const Subject& subject, std::uint32_t position, const SmtOptions& options) {
  std::string key = key_of(subject, position, options);
  if (key.size() > kLongestKey) return explain_alone(subject, position, options);
  if (const auto found = known_.find(key); found != known_.end()) return found->second;
  if (known_.size() >= kMostEntries) known_.clear();
  return known_.emplace(std::move(key), explain_alone(subject, position, options)).first->second;
}

}  // namespace capstan
