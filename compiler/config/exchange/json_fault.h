// Where a text stops being JSON as Python's json module reads it (NaN and Infinity are numbers to it). Takes
// any text, gives the first fault with its place; nothing for JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace capstan {

struct JsonFault {
  std::uint32_t begin = 0, end = 0;  ///< offsets into the text
  std::string message;
};

std::optional<JsonFault> find_json_fault(std::string_view text);

}  // namespace capstan
