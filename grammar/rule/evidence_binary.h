// How the bytes that the program carries spell texts with places, sources and evidence: the same for parsed
// and for resolved rules.
#pragma once

#include "grammar/rule/rule_syntax.h"
#include "grammar/source/binary_archive.h"

namespace capstan {

template <typename Archive>
void visit(Archive& archive, TextWithSpan& text) {
  visit_all(archive, text.text, text.span);
}
template <typename Archive>
void visit(Archive& archive, SourceSyntax& source) {
  visit_all(archive, source.repository, source.path, source.symbol, source.seen);
}
template <typename Archive>
void visit(Archive& archive, EvidenceSyntax& evidence) {
  visit_all(archive, evidence.kind, evidence.date, evidence.text);
}

}  // namespace capstan
