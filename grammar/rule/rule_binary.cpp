#include "grammar/rule/rule_binary.h"

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "grammar/rule/rule_parser.h"

namespace capstan {
namespace {

// One description of the layout serves both directions: `visit(archive, x)` names the parts of x in order,
// and the archive writes or reads them. Integers are LEB128, so small offsets take one byte.

class Writer {
 public:
  static constexpr bool kReads = false;
  std::string bytes;

  void number(std::uint64_t& value) {
    std::uint64_t rest = value;
    while (rest >= 0x80) {
      bytes += static_cast<char>(0x80 | (rest & 0x7F));
      rest >>= 7;
    }
    bytes += static_cast<char>(rest);
  }
  void text(std::string& value) {
    std::uint64_t size = value.size();
    number(size);
    bytes += value;
  }
};

class Reader {
 public:
  static constexpr bool kReads = true;
  std::string_view bytes;
  bool good = true;
  int depth = 0;

  void number(std::uint64_t& value) {
    value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (bytes.empty()) break;
      const auto byte = static_cast<unsigned char>(bytes.front());
      bytes.remove_prefix(1);
      value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return;
    }
    fail();
    value = 0;
  }
  void text(std::string& value) {
    std::uint64_t size = 0;
    number(size);
    if (size > bytes.size()) return fail();
    value.assign(bytes.substr(0, size));
    bytes.remove_prefix(size);
  }
  void fail() {
    good = false;
    bytes = {};
  }
};

template <typename Archive>
void visit(Archive& archive, std::string& text) {
  archive.text(text);
}
template <typename Archive>
void visit(Archive& archive, bool& flag) {
  std::uint64_t number = flag ? 1 : 0;
  archive.number(number);
  flag = number != 0;
}
template <typename Archive>
void visit(Archive& archive, std::int64_t& integer) {
  auto number = static_cast<std::uint64_t>(integer);
  archive.number(number);
  integer = static_cast<std::int64_t>(number);
}
template <typename Archive>
void visit(Archive& archive, double& floating) {
  auto number = std::bit_cast<std::uint64_t>(floating);
  archive.number(number);
  floating = std::bit_cast<double>(number);
}
template <typename Archive, typename Enum>
requires std::is_enum_v<Enum>
void visit_enum(Archive& archive, Enum& value, Enum last) {
  auto number = static_cast<std::uint64_t>(value);
  archive.number(number);
  if constexpr (Archive::kReads) {
    if (number > static_cast<std::uint64_t>(last)) return archive.fail();
  }
  value = static_cast<Enum>(number);
}
template <typename Archive>
void visit(Archive& archive, Span& span) {
  // The source is given anew when the bytes are read: texts of the build do not travel.
  std::uint64_t begin = span.begin, length = span.end - span.begin;
  archive.number(begin);
  archive.number(length);
  span.begin = static_cast<std::uint32_t>(begin);
  span.end = static_cast<std::uint32_t>(begin + length);
}

template <typename Archive, typename Part>
void visit(Archive& archive, std::vector<Part>& parts) {
  std::uint64_t count = parts.size();
  archive.number(count);
  if constexpr (Archive::kReads) {
    if (count > archive.bytes.size()) return archive.fail();  // every part takes a byte at least
    parts.resize(count);
  }
  for (Part& part : parts) {
    visit(archive, part);
    if constexpr (Archive::kReads) {
      if (!archive.good) return;
    }
  }
}
template <typename Archive, typename Part>
void visit(Archive& archive, std::optional<Part>& part) {
  bool present = part.has_value();
  visit(archive, present);
  if constexpr (Archive::kReads) {
    if (present) part.emplace();
  }
  if (present) visit(archive, *part);
}

template <typename Archive>
void visit(Archive& archive, Value& value) {
  Value::Kind kind = value.kind();
  visit_enum(archive, kind, Value::Kind::table);
  const auto part = [&](auto sample) {
    visit(archive, sample);
    if constexpr (Archive::kReads) value = Value(sample);
  };
  switch (kind) {
    case Value::Kind::none:
      return;
    case Value::Kind::boolean:
      return part(Archive::kReads ? false : value.boolean());
    case Value::Kind::integer:
      return part(Archive::kReads ? std::int64_t{0} : value.integer());
    case Value::Kind::floating:
      return part(Archive::kReads ? 0.0 : value.floating());
    case Value::Kind::string:
      return part(Archive::kReads ? std::string() : value.string());
    case Value::Kind::list:
    case Value::Kind::table:
      break;  // no literal of the language
  }
  if constexpr (Archive::kReads) archive.fail();
}

/// Later stages index children without looking, so the count must fit the operator.
bool has_fitting_children(const Expr& expr) {
  const std::size_t count = expr.children.size();
  switch (expr.op) {
    case ExprOp::literal:
    case ExprOp::version:
    case ExprOp::name:
      return count == 0;
    case ExprOp::set:
    case ExprOp::call:
      return true;
    case ExprOp::and_:
    case ExprOp::or_:
      return count >= 2;
    case ExprOp::not_:
    case ExprOp::negate:
    case ExprOp::is:
    case ExprOp::is_not:
      return count == 1;
    case ExprOp::conditional:
      return count == 3;
    default:
      return count == 2;
  }
}

template <typename Archive>
void visit(Archive& archive, Expr& expr) {
  if constexpr (Archive::kReads) {
    if (++archive.depth > kMaxExpressionDepth + 1) return archive.fail();
  }
  visit_enum(archive, expr.op, ExprOp::call);
  visit(archive, expr.span);
  if (expr.op == ExprOp::literal)
    visit(archive, expr.literal);
  else
    visit(archive, expr.name);
  visit(archive, expr.children);
  if constexpr (Archive::kReads) {
    --archive.depth;
    if (archive.good && !has_fitting_children(expr)) archive.fail();
  }
}

template <typename Archive, typename... Parts>
void visit_all(Archive& archive, Parts&... parts) {
  (visit(archive, parts), ...);
}

template <typename Archive>
void visit(Archive& archive, TextWithSpan& text) {
  visit_all(archive, text.text, text.span);
}
template <typename Archive>
void visit(Archive& archive, VersionRange::Bound& bound) {
  visit_enum(archive, bound.comparison, Comparison::not_equal);
  visit_all(archive, bound.version, bound.span);
}
template <typename Archive>
void visit(Archive& archive, VersionRange& range) {
  visit_all(archive, range.component, range.bounds, range.span);
}
template <typename Archive>
void visit(Archive& archive, FixAction& action) {
  visit_enum(archive, action.kind, FixAction::Kind::remove);
  visit_all(archive, action.key, action.value, action.span);
  if constexpr (Archive::kReads) {
    if (action.value.has_value() == (action.kind == FixAction::Kind::unset)) archive.fail();
  }
}
template <typename Archive>
void visit(Archive& archive, FixSyntax& fix) {
  visit_all(archive, fix.applicability, fix.cost, fix.title, fix.actions, fix.span);
}
template <typename Archive>
void visit(Archive& archive, SourceSyntax& source) {
  visit_all(archive, source.repository, source.path, source.symbol, source.seen);
}
template <typename Archive>
void visit(Archive& archive, EvidenceSyntax& evidence) {
  visit_all(archive, evidence.kind, evidence.date, evidence.text);
}
template <typename Archive>
void visit(Archive& archive, RuleSyntax& rule) {
  visit_all(archive, rule.code, rule.name, rule.kind, rule.severity, rule.enforcer, rule.frontends,
            rule.applies, rule.phase, rule.step, rule.when, rule.require, rule.blame, rule.message, rule.why,
            rule.raises, rule.fixes, rule.sources, rule.evidence, rule.span);
}
template <typename Archive>
void visit(Archive& archive, RewriteSyntax& rewrite) {
  visit_all(archive, rewrite.code, rewrite.name, rewrite.severity, rewrite.silent, rewrite.enforcer,
            rewrite.frontends, rewrite.applies, rewrite.phase, rewrite.step, rewrite.when,
            rewrite.assignments, rewrite.message, rewrite.why, rewrite.fixes, rewrite.sources,
            rewrite.evidence, rewrite.span);
}
template <typename Archive>
void visit(Archive& archive, DefineSyntax& define) {
  visit_all(archive, define.name, define.frontends, define.applies, define.phase, define.step, define.value,
            define.doc, define.span);
}

}  // namespace

std::string encode_binary(const RuleFileSyntax& file) {
  RuleFileSyntax copy = file;  // the description names parts as they are read: not const
  Writer writer;
  visit_all(writer, copy.rules, copy.rewrites, copy.defines);
  return std::move(writer.bytes);
}

std::optional<RuleFileSyntax> decode_binary(std::string_view bytes) {
  RuleFileSyntax file;
  Reader reader{bytes};
  visit_all(reader, file.rules, file.rewrites, file.defines);
  if (!reader.good || !reader.bytes.empty()) return std::nullopt;
  return file;
}

}  // namespace capstan
