#include <boost/spirit/home/x3.hpp>

#include <algorithm>
#include <utility>

#include "grammar/rule/rule_scan.h"

namespace capstan {
namespace {

namespace x3 = boost::spirit::x3;

/// What the tokens write into: the item in work, and the parts of it that repeat.
struct ItemBuilder {
  RuleScan& scan;
  std::vector<ItemFields>& done;
  ItemFields item{};
  const char* item_begin = nullptr;
  const char* part_begin = nullptr;
  const char* action_begin = nullptr;
  FixAction action{};
};

struct builder_tag;

template <typename Scan>
struct Token : x3::parser<Token<Scan>> {
  using attribute_type = x3::unused_type;
  static constexpr bool has_attribute = false;
  Scan scan;
  explicit Token(Scan function) : scan(function) {}
  template <typename Context, typename RuleContext, typename Attribute>
  bool parse(const char*& first, const char* const&, const Context& context, RuleContext&, Attribute&) const {
    return scan(first, x3::get<builder_tag>(context));
  }
};

auto symbol(std::string_view text) {
  return Token(
      [text](const char*& at, ItemBuilder& builder) { return scan_symbol(at, builder.scan, text, text); });
}
auto keyword(std::string_view word) {
  return Token(
      [word](const char*& at, ItemBuilder& builder) { return scan_keyword(at, builder.scan, word); });
}
/// `rule`, `rewrite`, `define`: starts an item.
auto item(std::string_view word, ItemKind kind) {
  return Token([word, kind](const char*& at, ItemBuilder& builder) {
    const char* const first = skip_blanks(at, builder.scan.end);
    if (!scan_keyword(at, builder.scan, word)) return false;
    builder.item = ItemFields();
    builder.item.kind = kind;
    builder.item_begin = first;
    return true;
  });
}
const Token item_end([](const char*& at, ItemBuilder& builder) {
  if (!scan_symbol(at, builder.scan, "}", "}")) return false;
  builder.item.span = builder.scan.span(builder.item_begin, at);
  builder.done.push_back(std::move(builder.item));
  return true;
});
/// The keyword of a field.
auto field(std::string_view name) {
  return Token([name](const char*& at, ItemBuilder& builder) {
    const char* const first = skip_blanks(at, builder.scan.end);
    if (!scan_keyword(at, builder.scan, name)) return false;
    builder.part_begin = first;
    builder.item.written.push_back({name, builder.scan.span(first, at)});
    return true;
  });
}

template <typename Scan, typename Target>
auto scanned(Scan scan, Target target) {
  return Token([scan, target](const char*& at, ItemBuilder& builder) {
    return scan(at, builder.scan, target(builder));
  });
}

auto choice(std::initializer_list<std::string_view> words, TextWithSpan ItemFields::*target) {
  return Token([list = std::vector<std::string_view>(words), target](const char*& at, ItemBuilder& builder) {
    return scan_choice(at, builder.scan, list, builder.item.*target);
  });
}
auto string_of(TextWithSpan ItemFields::*target) {
  return scanned(scan_string,
                 [target](ItemBuilder& builder) -> TextWithSpan& { return builder.item.*target; });
}
auto expression_of(Expr ItemFields::*target) {
  return scanned(scan_expression, [target](ItemBuilder& builder) -> Expr& { return builder.item.*target; });
}
/// One more element of a list, filled by `scan`.
template <typename Scan>
auto element_of(Scan scan, std::vector<TextWithSpan> ItemFields::*target) {
  return Token([scan, target](const char*& at, ItemBuilder& builder) {
    TextWithSpan text;
    if (!scan(at, builder.scan, text)) return false;
    (builder.item.*target).push_back(std::move(text));
    return true;
  });
}

bool scan_frontend(const char*& at, RuleScan& scan, TextWithSpan& out) {
  return scan_choice(at, scan, {"bridge", "core", "megatron-lm"}, out);
}
bool scan_key(const char*& at, RuleScan& scan, TextWithSpan& out) {
  return scan_path(at, scan, out, "a key or fact");
}
bool scan_component(const char*& at, RuleScan& scan, TextWithSpan& out) {
  return scan_path(at, scan, out, "a component such as `megatron-core`");
}
bool scan_phase(const char*& at, RuleScan& scan, TextWithSpan& out) {
  return scan_path(at, scan, out, "a phase");
}

// --- applies
const Token range_component([](const char*& at, ItemBuilder& builder) {
  TextWithSpan component;
  if (!scan_component(at, builder.scan, component)) return false;
  builder.item.applies.push_back({std::move(component.text), {}, component.span});
  return true;
});
const Token range_bound([](const char*& at, ItemBuilder& builder) {
  static constexpr std::pair<std::string_view, Comparison> kComparisons[] = {
      {"<=", Comparison::less_equal}, {">=", Comparison::greater_equal}, {"!=", Comparison::not_equal},
      {"<", Comparison::less},        {">", Comparison::greater},        {"=", Comparison::equal}};
  for (const auto& [spelling, comparison] : kComparisons) {
    const char* last = at;
    if (!scan_symbol(last, builder.scan, spelling, "a version bound")) continue;
    TextWithSpan version;
    if (!scan_version(last, builder.scan, version)) {
      if (!builder.scan.fatal) builder.scan.fatal = builder.scan.problem();
      return false;
    }
    at = last;
    VersionRange& range = builder.item.applies.back();
    range.bounds.push_back({comparison, std::move(version.text), version.span});
    range.span.end = version.span.end;
    return true;
  }
  return false;
});

// --- actions of fixes and rewrites
auto action(std::string_view word, FixAction::Kind kind) {
  return Token([word, kind](const char*& at, ItemBuilder& builder) {
    const char* const first = skip_blanks(at, builder.scan.end);
    if (!scan_keyword(at, builder.scan, word)) return false;
    builder.action = FixAction();
    builder.action.kind = kind;
    builder.action_begin = first;
    return true;
  });
}
const Token action_key =
    scanned(scan_key, [](ItemBuilder& builder) -> TextWithSpan& { return builder.action.key; });
const Token action_value =
    scanned(scan_expression, [](ItemBuilder& builder) -> Expr& { return builder.action.value.emplace(); });
const Token fix_action_end([](const char*& at, ItemBuilder& builder) {
  builder.action.span = builder.scan.span(builder.action_begin, at);
  builder.item.fixes.back().actions.push_back(std::move(builder.action));
  return true;
});
const Token assignment_begin([](const char*&, ItemBuilder& builder) {
  builder.action = FixAction();
  builder.action_begin = builder.part_begin;
  return true;
});
const Token assignment_end([](const char*& at, ItemBuilder& builder) {
  builder.action.span = builder.scan.span(builder.action_begin, at);
  builder.item.assignments.push_back(std::move(builder.action));
  return true;
});

// --- fix
const Token fix_begin([](const char*&, ItemBuilder& builder) {
  builder.item.fixes.emplace_back();
  return true;
});
const Token fix_applicability([](const char*& at, ItemBuilder& builder) {
  return scan_choice(at, builder.scan, {"safe", "unsafe"}, builder.item.fixes.back().applicability);
});
const Token fix_cost([](const char*& at, ItemBuilder& builder) {
  return scan_choice(at, builder.scan, {"free", "memory", "speed", "numerics"},
                     builder.item.fixes.back().cost);
});
const Token fix_title([](const char*& at, ItemBuilder& builder) {
  return scan_string(at, builder.scan, builder.item.fixes.back().title);
});
const Token fix_end([](const char*& at, ItemBuilder& builder) {
  if (!scan_symbol(at, builder.scan, "}", "}")) return false;
  builder.item.fixes.back().span = builder.scan.span(builder.part_begin, at);
  return true;
});

// --- source and evidence
const Token source_begin([](const char*&, ItemBuilder& builder) {
  builder.item.sources.emplace_back();
  return true;
});
auto source_part(TextWithSpan SourceSyntax::*part) {
  return scanned(scan_single_string,
                 [part](ItemBuilder& builder) -> TextWithSpan& { return builder.item.sources.back().*part; });
}
const Token evidence_begin([](const char*&, ItemBuilder& builder) {
  builder.item.evidence.emplace_back();
  return true;
});
const Token evidence_kind([](const char*& at, ItemBuilder& builder) {
  return scan_choice(at, builder.scan, {"code", "measured", "documented", "inferred"},
                     builder.item.evidence.back().kind);
});
const Token evidence_date = scanned(
    scan_date, [](ItemBuilder& builder) -> TextWithSpan& { return builder.item.evidence.back().date; });
const Token evidence_text = scanned(
    scan_string, [](ItemBuilder& builder) -> TextWithSpan& { return builder.item.evidence.back().text; });

// --- the fields
const auto applies = field("applies") > (keyword("any") | (range_component >> *range_bound) % symbol(","));
const auto frontends = field("frontends") > element_of(scan_frontend, &ItemFields::frontends) % symbol(",");
const auto phase = field("phase") > scanned(scan_phase, [](ItemBuilder& builder) -> TextWithSpan& {
                     return builder.item.phase;
                   }) > scanned(scan_integer, [](ItemBuilder& builder) -> std::int64_t& {
                     return builder.item.step;
                   });
const auto fix_action =
    (action("set", FixAction::Kind::set) > action_key > symbol("=") > action_value) |
    (action("unset", FixAction::Kind::unset) > action_key) |
    (action("add", FixAction::Kind::add) > action_value > keyword("to") > action_key) |
    (action("remove", FixAction::Kind::remove) > action_value > keyword("from") > action_key);
const auto fix = field("fix") > fix_begin > fix_applicability > fix_cost > fix_title > symbol("{") >
                 ((fix_action > fix_action_end) % symbol(";")) > -symbol(";") > fix_end;
const auto source = field("source") > source_begin > source_part(&SourceSyntax::repository) >
                    source_part(&SourceSyntax::path) > source_part(&SourceSyntax::symbol) > keyword("seen") >
                    source_part(&SourceSyntax::seen);
const auto evidence = field("evidence") > evidence_begin > evidence_kind > evidence_date > -evidence_text;
const auto enforcer = field("enforcer") > choice({"core", "bridge", "megatron-lm", "transformer-engine",
                                                  "torch", "nccl", "capstan"},
                                                 &ItemFields::enforcer);
const auto severity = field("severity") > choice({"error", "warning", "hint"}, &ItemFields::severity);
const auto when = field("when") > expression_of(&ItemFields::when);
const auto message = field("message") > string_of(&ItemFields::message);
const auto why = field("why") > string_of(&ItemFields::why);

const x3::rule<class rule_field_rule> rule_field = "field of a rule";
const x3::rule<class rewrite_field_rule> rewrite_field = "field of a rewrite";
const x3::rule<class define_field_rule> define_field = "field of a define";

const auto rule_field_def =
    (field("kind") > choice({"rejects", "breaks", "advice"}, &ItemFields::finding)) | severity | enforcer |
    frontends | applies | phase | when | (field("require") > expression_of(&ItemFields::require)) |
    (field("blame") > element_of(scan_key, &ItemFields::blame) % symbol(",")) | message | why |
    (field("raises") > element_of(scan_string, &ItemFields::raises)) | fix | source | evidence;
const auto rewrite_field_def =
    severity | (field("silent") > choice({"yes", "no"}, &ItemFields::silent)) | enforcer | frontends |
    applies | phase | when |
    (field("set") > assignment_begin > action_key > symbol("=") > action_value > assignment_end) | message |
    why | fix | source | evidence;
const auto define_field_def = frontends | applies | phase |
                              (field("value") > expression_of(&ItemFields::value)) |
                              (field("doc") > string_of(&ItemFields::doc));

const Token code =
    scanned(scan_code, [](ItemBuilder& builder) -> TextWithSpan& { return builder.item.code; });
const Token kebab_name =
    scanned(scan_kebab_name, [](ItemBuilder& builder) -> TextWithSpan& { return builder.item.name; });
const Token fact_name =
    scanned(scan_key, [](ItemBuilder& builder) -> TextWithSpan& { return builder.item.name; });
const auto file =
    *((item("rule", ItemKind::rule) > code > kebab_name > symbol("{") > *rule_field > item_end) |
      (item("rewrite", ItemKind::rewrite) > code > kebab_name > symbol("{") > *rewrite_field > item_end) |
      (item("define", ItemKind::define) > fact_name > symbol("{") > *define_field > item_end));

BOOST_SPIRIT_DEFINE(rule_field, rewrite_field, define_field)

}  // namespace

bool ItemFields::has(std::string_view field_name) const {
  return std::any_of(written.begin(), written.end(),
                     [&](const Field& one) { return one.name == field_name; });
}

bool scan_items(RuleScan& scan, std::vector<ItemFields>& out) {
  ItemBuilder builder{scan, out};
  const auto grammar = x3::with<builder_tag>(builder)[file];
  const char* at = scan.begin;
  try {
    return x3::parse(at, scan.end, grammar) && scan_end(at, scan);
  } catch (const x3::expectation_failure<const char*>&) {
    return false;  // `scan` knows what was expected
  }
}

}  // namespace capstan
