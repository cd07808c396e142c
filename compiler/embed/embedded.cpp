#include "compiler/embed/embedded.h"

#include <cstddef>
#include <optional>
#include <stdexcept>
#include <utility>

#include "compiler/schema/schema.h"
#include "compiler/schema/schema_binary.h"

// Symbols of the generated assembler file.
extern "C" {
extern const char capstan_embedded_schema[];
extern const char capstan_embedded_schema_end[];
extern const char capstan_embedded_flags[];
extern const char capstan_embedded_flags_end[];
extern const char capstan_embedded_rules[];
extern const char capstan_embedded_rules_end[];
extern const char capstan_embedded_rule_set[];
extern const char capstan_embedded_rule_set_end[];
extern const char capstan_embedded_documents[];
extern const char capstan_embedded_documents_end[];
extern const char capstan_embedded_phases[];
extern const char capstan_embedded_phases_end[];
}

namespace capstan {
namespace {

std::string_view between(const char* begin, const char* end) {
  return {begin, static_cast<std::size_t>(end - begin)};
}

}  // namespace

std::string_view embedded_schema() {
  return between(capstan_embedded_schema, capstan_embedded_schema_end);
}

std::string_view embedded_flags() {
  return between(capstan_embedded_flags, capstan_embedded_flags_end);
}

std::string_view embedded_rules() {
  return between(capstan_embedded_rules, capstan_embedded_rules_end);
}

std::string_view embedded_rule_set() {
  return between(capstan_embedded_rule_set, capstan_embedded_rule_set_end);
}

std::string_view embedded_documents() {
  return between(capstan_embedded_documents, capstan_embedded_documents_end);
}

std::string_view embedded_phases() {
  return between(capstan_embedded_phases, capstan_embedded_phases_end);
}

const Schema& builtin_schema() {
  static const Schema schema = [] {
    std::optional<Schema> decoded = decode_schema(embedded_schema());
    if (!decoded) throw std::logic_error("the embedded schema is damaged");
    return std::move(*decoded);
  }();
  return schema;
}

}  // namespace capstan
