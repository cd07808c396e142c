#include "compiler/config/config.h"

namespace capstan {

const char* origin_kind_name(OriginKind kind) {
  switch (kind) {
    case OriginKind::file:
      return "file";
    case OriginKind::extended_file:
      return "extended file";
    case OriginKind::override_argument:
      return "override";
    case OriginKind::environment:
      return "environment";
    case OriginKind::environment_file:
      return "environment file";
    case OriginKind::imported:
      return "imported";
    case OriginKind::default_value:
      return "default";
    case OriginKind::derived:
      return "derived";
    case OriginKind::assumed:
      return "assumed";
  }
  return "?";
}

}  // namespace capstan
