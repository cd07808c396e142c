// What a key may hold, in words for messages ("an integer or a list of integers").
#pragma once

#include <string>

#include "compiler/schema/schema.h"

namespace capstan {

std::string type_words(const TypeSet& type);

}  // namespace capstan
