#include "grammar/rule/rule_parser.h"

#include <algorithm>
#include <utility>

#include "grammar/rule/rule_scan.h"

namespace capstan {
namespace {

/// Length of the valid UTF-8 sequence at `at`, or 0.
std::size_t sequence_length(const char* at, const char* end) {
  const auto byte = [&](std::ptrdiff_t index) { return static_cast<unsigned char>(at[index]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || static_cast<std::size_t>(end - at) < length) return 0;
  for (std::size_t index = 1; index < length; ++index) {
    if ((byte(static_cast<std::ptrdiff_t>(index)) & 0xC0) != 0x80) return 0;
  }
  // Overlong forms, surrogates and what lies above U+10FFFF.
  if ((lead == 0xE0 && byte(1) < 0xA0) || (lead == 0xED && byte(1) > 0x9F)) return 0;
  if ((lead == 0xF0 && byte(1) < 0x90) || (lead == 0xF4 && byte(1) > 0x8F)) return 0;
  return length;
}

/// Fails at the first byte that is no text.
bool is_text(RuleScan& scan) {
  for (const char* at = scan.begin; at != scan.end;) {
    const std::size_t length = sequence_length(at, scan.end);
    if (length == 0) {
      scan.fail(at, at + 1, "the text is not valid UTF-8");
      return false;
    }
    const auto byte = static_cast<unsigned char>(*at);
    if ((byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r') || byte == 0x7F) {
      scan.fail(at, at + 1, "the text holds a control character");
      return false;
    }
    at += length;
  }
  return true;
}

constexpr std::string_view kRepeatable[] = {"fix", "source", "evidence", "raises", "set"};

std::string join_quoted(const std::vector<std::string_view>& words) {
  std::string text;
  for (std::size_t index = 0; index < words.size(); ++index) {
    if (index > 0) text += index + 1 == words.size() ? " and " : ", ";
    text += '`';
    text += words[index];
    text += '`';
  }
  return text;
}

/// Reports what the item repeats or lacks. True when it is complete.
bool is_complete(const ItemFields& item, std::vector<RuleProblem>& problems) {
  bool complete = true;
  const std::string title =
      item.kind == ItemKind::define ? "define `" + item.name.text + "`" : "`" + item.code.text + "`";
  for (std::size_t index = 0; index < item.written.size(); ++index) {
    const ItemFields::Field& field = item.written[index];
    if (std::find(std::begin(kRepeatable), std::end(kRepeatable), field.name) != std::end(kRepeatable))
      continue;
    const bool again =
        std::any_of(item.written.begin(), item.written.begin() + static_cast<std::ptrdiff_t>(index),
                    [&](const ItemFields::Field& other) { return other.name == field.name; });
    if (!again) continue;
    complete = false;
    problems.push_back(
        {{"field `" + std::string(field.name) + "` of " + title + " is given twice", field.span, {}}, false});
  }
  std::vector<std::string_view> wanted;
  switch (item.kind) {
    case ItemKind::rule:
      wanted = {"kind",  "enforcer", "applies", "phase",  "require",
                "blame", "message",  "why",     "source", "evidence"};
      if (item.finding.text == "rejects") wanted.push_back("raises");
      break;
    case ItemKind::rewrite:
      wanted = {"enforcer", "applies", "phase", "set", "source", "evidence"};
      if (item.silent.text != "yes") wanted.insert(wanted.end(), {"message", "why"});
      break;
    case ItemKind::define:
      wanted = {"applies", "phase", "value"};
      break;
  }
  std::erase_if(wanted, [&](std::string_view field) { return item.has(field); });
  if (!wanted.empty()) {
    complete = false;
    const Span place = item.kind == ItemKind::define ? item.name.span : item.code.span;
    problems.push_back(
        {{title + " lacks " + (wanted.size() == 1 ? "the field " : "the fields ") + join_quoted(wanted),
          place,
          {}},
         true});
  }
  return complete;
}

std::optional<TextWithSpan> optional_text(const ItemFields& item, std::string_view field, TextWithSpan text) {
  if (!item.has(field)) return std::nullopt;
  return text;
}
std::optional<Expr> optional_expression(const ItemFields& item, std::string_view field, Expr expr) {
  if (!item.has(field)) return std::nullopt;
  return expr;
}

/// What a rule and a rewrite have in the same way.
template <typename Item>
void move_shared(ItemFields& item, Item& out) {
  out.code = std::move(item.code);
  out.name = std::move(item.name);
  out.severity = optional_text(item, "severity", std::move(item.severity));
  out.enforcer = std::move(item.enforcer);
  out.frontends = std::move(item.frontends);
  out.applies = std::move(item.applies);
  out.phase = std::move(item.phase);
  out.step = item.step;
  out.when = optional_expression(item, "when", std::move(item.when));
  out.fixes = std::move(item.fixes);
  out.sources = std::move(item.sources);
  out.evidence = std::move(item.evidence);
  out.span = item.span;
}

void add_item(ItemFields& item, RuleFileSyntax& file) {
  switch (item.kind) {
    case ItemKind::rule: {
      RuleSyntax& rule = file.rules.emplace_back();
      move_shared(item, rule);
      rule.kind = std::move(item.finding);
      rule.require = std::move(item.require);
      rule.blame = std::move(item.blame);
      rule.message = std::move(item.message);
      rule.why = std::move(item.why);
      rule.raises = std::move(item.raises);
      return;
    }
    case ItemKind::rewrite: {
      RewriteSyntax& rewrite = file.rewrites.emplace_back();
      move_shared(item, rewrite);
      rewrite.silent = item.silent.text == "yes";
      rewrite.assignments = std::move(item.assignments);
      rewrite.message = optional_text(item, "message", std::move(item.message));
      rewrite.why = optional_text(item, "why", std::move(item.why));
      return;
    }
    case ItemKind::define: {
      DefineSyntax& define = file.defines.emplace_back();
      define.name = std::move(item.name);
      define.frontends = std::move(item.frontends);
      define.applies = std::move(item.applies);
      define.phase = std::move(item.phase);
      define.step = item.step;
      define.value = std::move(item.value);
      define.doc = optional_text(item, "doc", std::move(item.doc));
      define.span = item.span;
      return;
    }
  }
}

}  // namespace

std::string describe(const SyntaxProblem& problem) {
  std::string text = problem.message;
  for (std::size_t index = 0; index < problem.expected.size(); ++index) {
    text += index == 0 ? ", expected " : index + 1 == problem.expected.size() ? " or " : ", ";
    text += problem.expected[index];
  }
  return text;
}

std::optional<RuleFileSyntax> parse_rule_file(SourceId source, const SourceMap& sources,
                                              std::vector<RuleProblem>& problems) {
  RuleScan scan(source, sources[source].bytes());
  std::vector<ItemFields> items;
  if (!is_text(scan) || !scan_items(scan, items)) {
    problems.push_back({scan.problem(), false});
    return std::nullopt;
  }
  RuleFileSyntax file;
  for (ItemFields& item : items) {
    if (is_complete(item, problems)) add_item(item, file);
  }
  return file;
}

std::optional<Expr> parse_rule_expression(SourceId source, const SourceMap& sources, SyntaxProblem& problem) {
  RuleScan scan(source, sources[source].bytes());
  Expr expr;
  const char* at = scan.begin;
  if (!is_text(scan) || !scan_expression(at, scan, expr) || !scan_end(at, scan)) {
    problem = scan.problem();
    return std::nullopt;
  }
  return expr;
}

}  // namespace capstan
