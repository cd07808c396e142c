#include "compiler/schema/schema_binary.h"

#include <utility>

#include "compiler/schema/version_binary.h"
#include "grammar/source/binary_archive.h"

namespace capstan {
namespace {

struct SchemaWriter : BinaryWriter {};
struct SchemaReader : BinaryReader {
  using BinaryReader::BinaryReader;
};

template <typename Archive>
void visit(Archive& archive, KeySpec& spec) {
  visit(archive, spec.type_text);
  if constexpr (Archive::kReads) {
    if (std::optional<TypeSet> type = parse_type(spec.type_text))
      spec.type = *type;
    else
      return archive.fail();
  }
  visit_all(archive, spec.has_default, spec.default_value, spec.default_text, spec.values,
            spec.values_are_open);
}
template <typename Archive>
void visit(Archive& archive, KeyRange& range) {
  visit_all(archive, range.component, range.since, range.until, range.spec);
}
template <typename Archive>
void visit(Archive& archive, KeyInfo& key) {
  visit_all(archive, key.path, key.doc, key.unit);
  visit_enum(archive, key.effect, KeyEffect::run);
  visit_all(archive, key.renamed_to, key.removed_hint, key.ranges);
}
template <typename Archive>
void visit(Archive& archive, Stack& stack) {
  visit_all(archive, stack.name, stack.frontend, stack.note, stack.components);
}

}  // namespace

std::string encode_schema(const Schema& schema) {
  SchemaWriter writer;
  auto keys = schema.keys();  // the description names parts as they are read: not const
  auto stacks = schema.stacks();
  visit_all(writer, keys, stacks);
  return std::move(writer.bytes);
}

std::optional<Schema> decode_schema(std::string_view bytes) {
  SchemaReader reader(bytes);
  Schema schema;
  visit_all(reader, schema.keys_, schema.stacks_);
  if (!reader.complete()) return std::nullopt;
  schema.finish();
  return schema;
}

}  // namespace capstan
