#include "compiler/schema/schema_binary.h"

#include <bit>
#include <cstring>
#include <utility>

namespace capstan {
namespace {

constexpr int kMaxValueDepth = 32;

class Writer {
 public:
  void number(std::uint64_t value) {  // seven bits a byte, low first
    while (value >= 0x80) {
      bytes += static_cast<char>(value | 0x80);
      value >>= 7;
    }
    bytes += static_cast<char>(value);
  }
  void signed_number(std::int64_t value) {
    number((static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63));
  }
  void text(std::string_view value) {
    number(value.size());
    bytes += value;
  }
  void texts(const std::vector<std::string>& values) {
    number(values.size());
    for (const std::string& value : values) text(value);
  }
  void version(const Version& value) {
    for (const std::int32_t part : {value.major, value.minor, value.patch, value.stage, value.stage_number}) {
      signed_number(part);
    }
  }
  void value(const Value& value) {
    number(static_cast<std::uint64_t>(value.kind()));
    switch (value.kind()) {
      case Value::Kind::none:
        break;
      case Value::Kind::boolean:
        number(value.boolean());
        break;
      case Value::Kind::integer:
        signed_number(value.integer());
        break;
      case Value::Kind::floating:
        number(std::bit_cast<std::uint64_t>(value.floating()));
        break;
      case Value::Kind::string:
        text(value.string());
        break;
      case Value::Kind::list:
        number(value.list().size());
        for (const Value& item : value.list()) this->value(item);
        break;
      case Value::Kind::table:
        number(value.table().size());
        for (const auto& [key, item] : value.table()) {
          text(key);
          this->value(item);
        }
        break;
    }
  }

  std::string bytes;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  std::uint64_t number() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) break;
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    ok_ = false;
    return 0;
  }
  std::int64_t signed_number() {
    const std::uint64_t value = number();
    return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
  }
  /// A count of things that take at least one byte each.
  std::size_t count() {
    const std::uint64_t value = number();
    if (value <= rest_.size()) return static_cast<std::size_t>(value);
    ok_ = false;
    return 0;
  }
  std::string text() {
    const std::size_t size = count();
    std::string value(rest_.substr(0, size));
    rest_.remove_prefix(size);
    return value;
  }
  std::vector<std::string> texts() {
    std::vector<std::string> values(count());
    for (std::string& value : values) value = text();
    return values;
  }
  Version version() {
    Version value;
    for (std::int32_t* part : {&value.major, &value.minor, &value.patch, &value.stage, &value.stage_number}) {
      *part = static_cast<std::int32_t>(signed_number());
    }
    return value;
  }
  Value value(int depth = 0) {
    if (depth > kMaxValueDepth) ok_ = false;
    if (!ok_) return {};
    switch (number()) {
      case 0:
        return {};
      case 1:
        return Value(number() != 0);
      case 2:
        return Value(signed_number());
      case 3:
        return Value(std::bit_cast<double>(number()));
      case 4:
        return Value(text());
      case 5: {
        Value::List list(count());
        for (Value& item : list) item = value(depth + 1);
        return Value(std::move(list));
      }
      case 6: {
        Value::Table table(count());
        for (auto& [key, item] : table) {
          key = text();
          item = value(depth + 1);
        }
        return Value(std::move(table));
      }
      default:
        ok_ = false;
        return {};
    }
  }
  bool complete() const { return ok_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace

std::string encode_schema(const Schema& schema) {
  Writer out;
  out.number(schema.keys().size());
  for (const KeyInfo& key : schema.keys()) {
    out.text(key.path);
    out.text(key.doc);
    out.text(key.unit);
    out.number(static_cast<std::uint64_t>(key.effect));
    out.text(key.renamed_to);
    out.text(key.removed_hint);
    out.number(key.ranges.size());
    for (const KeyRange& range : key.ranges) {
      out.text(range.component);
      out.number((range.since ? 1u : 0u) | (range.until ? 2u : 0u) | (range.spec.has_default ? 4u : 0u) |
                 (range.spec.values_are_open ? 8u : 0u));
      if (range.since) out.version(*range.since);
      if (range.until) out.version(*range.until);
      out.text(range.spec.type_text);
      out.value(range.spec.default_value);
      out.text(range.spec.default_text);
      out.texts(range.spec.values);
    }
  }
  out.number(schema.stacks().size());
  for (const Stack& stack : schema.stacks()) {
    out.text(stack.name);
    out.text(stack.frontend);
    out.text(stack.note);
    out.number(stack.components.size());
    for (const auto& [component, version] : stack.components) {
      out.text(component);
      out.version(version);
    }
  }
  return std::move(out.bytes);
}

std::optional<Schema> decode_schema(std::string_view bytes) {
  Reader in(bytes);
  Schema schema;
  schema.keys_.resize(in.count());
  for (KeyInfo& key : schema.keys_) {
    key.path = in.text();
    key.doc = in.text();
    key.unit = in.text();
    const std::uint64_t effect = in.number();
    if (effect > static_cast<std::uint64_t>(KeyEffect::run)) return std::nullopt;
    key.effect = static_cast<KeyEffect>(effect);
    key.renamed_to = in.text();
    key.removed_hint = in.text();
    key.ranges.resize(in.count());
    for (KeyRange& range : key.ranges) {
      range.component = in.text();
      const std::uint64_t flags = in.number();
      if (flags & 1) range.since = in.version();
      if (flags & 2) range.until = in.version();
      range.spec.has_default = (flags & 4) != 0;
      range.spec.values_are_open = (flags & 8) != 0;
      range.spec.type_text = in.text();
      const std::optional<TypeSet> type = parse_type(range.spec.type_text);
      if (!type) return std::nullopt;
      range.spec.type = *type;
      range.spec.default_value = in.value();
      range.spec.default_text = in.text();
      range.spec.values = in.texts();
    }
  }
  schema.stacks_.resize(in.count());
  for (Stack& stack : schema.stacks_) {
    stack.name = in.text();
    stack.frontend = in.text();
    stack.note = in.text();
    stack.components.resize(in.count());
    for (auto& [component, version] : stack.components) {
      component = in.text();
      version = in.version();
    }
  }
  if (!in.complete()) return std::nullopt;
  schema.finish();
  return schema;
}

}  // namespace capstan
