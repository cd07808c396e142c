// How the bytes that the program carries spell a Version: one description for schema and rules.
#pragma once

#include "compiler/schema/version.h"
#include "grammar/source/binary_archive.h"

namespace capstan {

template <typename Archive>
void visit(Archive& archive, Version& version) {
  visit_all(archive, version.major, version.minor, version.patch, version.stage, version.stage_number);
}

}  // namespace capstan
