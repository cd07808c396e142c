// A float as every YAML loader of Python reads it as one: with a point, and with a sign in the exponent.
// Pure.
#pragma once

#include <string>

namespace capstan {

/// "1.0e-05", ".inf", ".nan", "0.1".
std::string yaml_float(double value);

}  // namespace capstan
