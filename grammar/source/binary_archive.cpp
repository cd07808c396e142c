#include "grammar/source/binary_archive.h"

namespace capstan {
namespace {

template <typename Part, typename Archive>
void visit_as(Archive& archive, Part part, Value& value) {
  visit(archive, part);
  if constexpr (Archive::kReads) value = Value(std::move(part));
}

template <typename Archive>
void visit_value(Archive& archive, Value& value) {
  Value::Kind kind = value.kind();
  visit_enum(archive, kind, Value::Kind::table);
  constexpr bool reads = Archive::kReads;
  switch (kind) {
    case Value::Kind::none:
      if constexpr (reads) value = Value();
      return;
    case Value::Kind::boolean:
      return visit_as<bool>(archive, reads ? false : value.boolean(), value);
    case Value::Kind::integer:
      return visit_as<std::int64_t>(archive, reads ? 0 : value.integer(), value);
    case Value::Kind::floating:
      return visit_as<double>(archive, reads ? 0.0 : value.floating(), value);
    case Value::Kind::string:
      return visit_as<std::string>(archive, reads ? std::string() : value.string(), value);
    case Value::Kind::list:
      return visit_as<Value::List>(archive, reads ? Value::List() : value.list(), value);
    case Value::Kind::table:
      return visit_as<Value::Table>(archive, reads ? Value::Table() : value.table(), value);
  }
}

}  // namespace

void BinaryWriter::number(std::uint64_t& value) {
  std::uint64_t rest = value;
  while (rest >= 0x80) {
    bytes += static_cast<char>(0x80 | (rest & 0x7F));
    rest >>= 7;
  }
  bytes += static_cast<char>(rest);
}

void BinaryWriter::text(std::string& value) {
  std::uint64_t size = value.size();
  number(size);
  bytes += value;
}

void BinaryReader::number(std::uint64_t& value) {
  value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (bytes.empty()) break;
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return;
  }
  fail();
  value = 0;
}

void BinaryReader::text(std::string& value) {
  std::uint64_t size = 0;
  number(size);
  if (size > bytes.size()) return fail();
  value.assign(bytes.substr(0, size));
  bytes.remove_prefix(size);
}

void BinaryReader::fail() {
  good = false;
  bytes = {};
}

void visit(BinaryWriter& archive, Value& value) {
  visit_value(archive, value);
}

void visit(BinaryReader& archive, Value& value) {
  if (++archive.value_depth > kMaxArchivedDepth) return archive.fail();
  visit_value(archive, value);
  --archive.value_depth;
}

}  // namespace capstan
