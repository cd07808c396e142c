#include "compiler/config/exchange/yaml_float.h"

#include <cmath>

#include "grammar/source/value.h"

namespace capstan {

std::string yaml_float(double value) {
  if (std::isnan(value)) return ".nan";
  if (std::isinf(value)) return value > 0 ? ".inf" : "-.inf";
  std::string text = to_text(Value(value));
  const std::size_t exponent = text.find('e');
  if (exponent == std::string::npos) return text;
  if (text[exponent + 1] != '-' && text[exponent + 1] != '+') text.insert(exponent + 1, "+");
  if (text.find('.') == std::string::npos) text.insert(exponent, ".0");
  return text;
}

}  // namespace capstan
