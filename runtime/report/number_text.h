// Numbers of a run as people read them: a NaN is `nan`, whatever sign its bits hold (a device may set it).
#pragma once

#include <cmath>
#include <string>

#include <fmt/format.h>

namespace capstan::runtime {

/// `layout` is that of fmt for one number: "{}", "{:.4f}".
inline std::string number_text(double value, const char* layout = "{}") {
  return std::isnan(value) ? "nan" : fmt::format(fmt::runtime(layout), value);
}

}  // namespace capstan::runtime
