// How a config asks for CUDA graph capture -> the changes with which it asks for the same in another release.
// The keys were switches (Core 0.14), then an implementation with one scope (0.15), with a list of scopes
// (0.16), and with a list of modules, an implementation `full_iteration` and a scope of inference (0.18).
// What a release has no words for is said.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/config/config.h"
#include "compiler/fixes/migration.h"
#include "compiler/schema/schema.h"

namespace capstan {

struct CaptureRespelling {
  std::vector<MigrationStep> steps;
  std::vector<std::string> lost;
};

/// Empty when both releases read the config alike, and when `from` does not accept what it asks for: then
/// there is no meaning to keep. A config that uses keys of 0.18 is read as that release reads them.
CaptureRespelling respell_capture(const Config& config, const Stack& from, const Stack& to);

/// Whether the key is one of those that ask for capture.
bool asks_for_capture(std::string_view path);

}  // namespace capstan
