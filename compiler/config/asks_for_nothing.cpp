#include "compiler/config/asks_for_nothing.h"

namespace capstan {

bool asks_for_nothing(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::none:
      return true;
    case Value::Kind::boolean:
      return !value.boolean();
    case Value::Kind::integer:
    case Value::Kind::floating:
      return value.number() == 0;
    case Value::Kind::string:
      return value.string().empty();
    case Value::Kind::list:
      return value.list().empty();
    case Value::Kind::table:
      return value.table().empty();
  }
  return false;
}

}  // namespace capstan
