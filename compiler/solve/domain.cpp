#include "compiler/solve/domain.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "compiler/config/conform.h"
#include "compiler/ruleset/rule_values.h"

namespace capstan {
namespace {

constexpr std::size_t kMostNumbers = 14;
constexpr std::size_t kMostTokens = 48;

/// What a rule looks for within a value ("(" of a call) is no value that anybody would set.
bool has_letter_or_digit(const std::string& word) {
  return std::any_of(word.begin(), word.end(), [](unsigned char c) { return std::isalnum(c) != 0; });
}

bool same_choice(const Choice& a, const Choice& b) {
  return a.set == b.set && a.unknown == b.unknown && a.value == b.value;
}

void add(std::vector<Choice>& choices, Choice choice) {
  for (const Choice& known : choices) {
    if (same_choice(known, choice)) return;
  }
  choices.push_back(std::move(choice));
}

Choice current_choice(const Subject& subject, FactId fact) {
  const Fact& now = subject.facts.values[fact];
  return {now.set, now.state == Fact::State::unknown, now.value};
}

bool is_plain_list(const TypeSet& type) {
  return type.list && type.list_string && !type.list_boolean && !type.list_integer && !type.list_floating &&
         !type.list_any && !type.any && !type.table && !type.integer && !type.floating;
}

bool is_enumeration(const KeySpec& spec) {
  return spec.type.string && !spec.values.empty() && !spec.values_are_open && !spec.type.list &&
         !spec.type.any && !spec.type.table && !spec.type.integer && !spec.type.floating;
}

bool is_switch(const TypeSet& type) {
  return type.boolean && !type.integer && !type.floating && !type.string && !type.table && !type.any &&
         !type.list;
}

void add_tokens(std::vector<std::string>& tokens, const Value& value) {
  if (value.kind() == Value::Kind::string) {
    if (!value.string().empty() && std::find(tokens.begin(), tokens.end(), value.string()) == tokens.end()) {
      tokens.push_back(value.string());
    }
  } else if (value.kind() == Value::Kind::list) {
    for (const Value& item : value.list()) add_tokens(tokens, item);
  }
}

std::vector<std::string> tokens_of_key(const Subject& subject, FactId fact, const KeySpec& spec) {
  std::vector<std::string> tokens;
  for (const Value& item : subject.facts.values[fact].value.kind() == Value::Kind::list
                               ? subject.facts.values[fact].value.list()
                               : Value::List{}) {
    add_tokens(tokens, item);
  }
  for (const std::string& value : spec.values) add_tokens(tokens, Value(value));
  if (spec.values.empty() || spec.values_are_open) {
    for (const Value& literal : subject.book.candidates.literals(fact)) {
      // `CudaGraphScope.attn` is another spelling of `attn`.
      if (literal.kind() == Value::Kind::string && !enum_member(literal.string()))
        add_tokens(tokens, literal);
    }
  }
  return tokens;
}

/// Keys that take many spellings (a string, enum members, a list) and are written as lists of the known
/// names.
bool is_module_list(const KeySpec& spec) {
  return spec.type.any && !spec.values.empty();
}

bool list_of_strings(const Value& value) {
  return value.kind() == Value::Kind::list &&
         std::all_of(value.list().begin(), value.list().end(),
                     [](const Value& item) { return item.kind() == Value::Kind::string; });
}

/// Numbers near the current one that make comparisons and divisions come out.
std::vector<std::int64_t> integer_candidates(const Subject& subject, FactId fact) {
  std::vector<std::int64_t> numbers;
  // Most keys are sizes and counts: 0 and below are values only where a rule or the default names them.
  const auto add_named = [&](std::int64_t number) {
    if (number >= -1 && std::find(numbers.begin(), numbers.end(), number) == numbers.end())
      numbers.push_back(number);
  };
  const auto add_number = [&](std::int64_t number) {
    if (number >= 1) add_named(number);
  };
  if (const Value& value = default_choice(subject, fact).value; value.kind() == Value::Kind::integer)
    add_named(value.integer());
  for (const Value& literal : subject.book.candidates.literals(fact)) {
    if (literal.kind() != Value::Kind::integer || std::abs(literal.integer()) > (1ll << 40)) continue;
    add_named(literal.integer());
    add_number(literal.integer() + 1);
    add_number(literal.integer() - 1);
  }
  for (const FactId mate : subject.book.candidates.mates(fact)) {
    if (mate == fact || mate >= subject.facts.values.size()) continue;
    const Fact& other = subject.facts.values[mate];
    if (other.state != Fact::State::known || other.value.kind() != Value::Kind::integer) continue;
    const std::int64_t value = other.value.integer();
    if (value < 1 || value > (1ll << 40)) continue;
    add_number(value);
    add_number(value + 1);
    add_number(value - 1);
    for (std::int64_t divisor = 1; divisor <= 64 && divisor <= value; ++divisor) {
      if (value % divisor != 0) continue;
      add_number(divisor);
      add_number(value / divisor);
    }
    for (const std::int64_t factor : {2, 3, 4, 8}) add_number(value * factor);
  }
  for (const std::int64_t number : {1, 2, 4, 8}) add_number(number);
  const Value& now = subject.facts.values[fact].value;
  const double center = now.is_number() ? now.number() : 1;
  const auto distance = [center](std::int64_t number) {
    return std::abs(std::log2(std::max(1.0, static_cast<double>(number))) -
                    std::log2(std::max(1.0, center))) +
           (number < 0   ? 100
            : number < 1 ? 0.5
                         : 0);  // negative numbers mean something in few places
  };
  std::stable_sort(numbers.begin(), numbers.end(), [&](std::int64_t a, std::int64_t b) {
    return distance(a) != distance(b) ? distance(a) < distance(b) : a < b;
  });
  // The nearest, but also what rules name: small numbers switch things off.
  std::vector<std::int64_t> kept;
  for (const std::int64_t number : numbers) {
    if (kept.size() < kMostNumbers || number == 0 || number == 1) kept.push_back(number);
  }
  return kept;
}

}  // namespace

bool is_changeable(const Subject& subject, FactId fact) {
  return std::binary_search(subject.book.changeable.begin(), subject.book.changeable.end(), fact);
}

bool lists_every_value(const Subject& subject, FactId fact, const Domain& domain) {
  const KeyView view = subject.key(fact);
  if (view.spec == nullptr) return false;
  const KeySpec& spec = *view.spec;
  if (is_switch(spec.type) || is_enumeration(spec)) return true;
  const bool closed_list = is_plain_list(spec.type) && !spec.values.empty() && !spec.values_are_open;
  return domain.any_subset && (closed_list || is_module_list(spec));
}

std::vector<std::string> known_words(const Subject& subject, FactId fact) {
  const KeyView view = subject.key(fact);
  if (view.spec == nullptr) return {};
  if (!view.spec->values.empty()) return view.spec->values;
  std::vector<std::string> words;
  if (!is_plain_list(view.spec->type)) return words;
  for (const Value& literal : subject.book.candidates.literals(fact)) {
    if (literal.kind() == Value::Kind::string && !enum_member(literal.string()))
      words.push_back(literal.string());
  }
  return words;
}

std::vector<std::size_t> unknown_words(const Subject& subject, FactId fact) {
  std::vector<std::size_t> out;
  const Value& now = subject.facts.values[fact].value;
  if (!list_of_strings(now)) return out;
  const std::vector<std::string> known = known_words(subject, fact);
  if (known.empty()) return out;
  for (std::size_t i = 0; i < now.list().size(); ++i) {
    const std::string& word = now.list()[i].string();
    if (std::find(known.begin(), known.end(), word) == known.end() && !enum_member(word)) out.push_back(i);
  }
  return out;
}

KeyEffect effect_of(const Subject& subject, FactId fact) {
  const KeyView view = subject.key(fact);
  return view.info == nullptr ? KeyEffect::run : view.info->effect;
}

Choice default_choice(const Subject& subject, FactId fact) {
  const KeyView view = subject.key(fact);
  if (view.spec == nullptr) return {false, false, Value()};
  if (view.spec->has_default) return {false, false, view.spec->default_value};
  return {false, true, Value()};
}

Domain explain_domain(const Subject& subject, FactId fact) {
  Domain domain;
  add(domain.choices, current_choice(subject, fact));
  const KeyView view = subject.key(fact);
  if (!is_changeable(subject, fact) || view.spec == nullptr) {
    add(domain.choices, {true, true, Value()});
    return domain;
  }
  const KeySpec& spec = *view.spec;
  add(domain.choices, default_choice(subject, fact));
  const bool lists = is_plain_list(spec.type) && !spec.values.empty() && !spec.values_are_open;
  if (!is_switch(spec.type) && !is_enumeration(spec) && !lists) {
    add(domain.choices, {true, true, Value()});
    return domain;
  }
  if (spec.type.none) add(domain.choices, {true, false, Value()});
  if (spec.type.boolean) {
    add(domain.choices, {true, false, Value(true)});
    add(domain.choices, {true, false, Value(false)});
  }
  if (spec.type.string) {
    for (const std::string& value : spec.values) add(domain.choices, {true, false, Value(value)});
  }
  if (lists) {
    domain.tokens = tokens_of_key(subject, fact, spec);
    domain.any_subset = domain.tokens.size() <= kMostTokens;
    if (!domain.any_subset) add(domain.choices, {true, true, Value()});
  }
  return domain;
}

std::optional<Domain> repair_domain(const Subject& subject, FactId fact) {
  if (!is_changeable(subject, fact)) return std::nullopt;
  Domain domain;
  add(domain.choices, current_choice(subject, fact));
  const Choice standard = default_choice(subject, fact);
  if (!standard.unknown) add(domain.choices, standard);
  const KeyView view = subject.key(fact);
  if (view.spec == nullptr) {  // an environment variable without an entry of its own
    for (const Value& literal : subject.book.candidates.literals(fact)) {
      if (literal.kind() == Value::Kind::string) add(domain.choices, {true, false, literal});
    }
    return domain;
  }
  const KeySpec& spec = *view.spec;
  const auto add_value = [&](Value value) { add(domain.choices, {true, false, std::move(value)}); };
  // What authors of fixes set the key to comes first; a list that is there loses or gains elements instead.
  const bool has_list =
      subject.facts.values[fact].set && subject.facts.values[fact].value.kind() == Value::Kind::list;
  for (const Value& advised : subject.book.candidates.advised(fact)) {
    Value value = advised;
    if ((value.kind() != Value::Kind::list || !has_list) && !conform(value, spec))
      add_value(std::move(value));
  }
  if (spec.type.boolean) {
    add_value(Value(false));
    add_value(Value(true));
  }
  if (spec.type.string) {
    for (const std::string& value : spec.values) add_value(Value(value));
    if (spec.values.empty() || spec.values_are_open) {
      for (const Value& literal : subject.book.candidates.literals(fact)) {
        if (literal.kind() == Value::Kind::string && has_letter_or_digit(literal.string()))
          add_value(literal);
      }
    }
  }
  if (spec.type.integer) {
    for (const std::int64_t number : integer_candidates(subject, fact)) add_value(Value(number));
  }
  if (spec.type.floating && !spec.type.integer) {
    for (const Value& literal : subject.book.candidates.literals(fact)) {
      if (literal.is_number()) add_value(Value(literal.number()));
    }
    add_value(Value(0.0));
    add_value(Value(1.0));
  }
  if ((spec.type.list && spec.type.list_string) || is_module_list(spec)) {
    domain.tokens = tokens_of_key(subject, fact, spec);
    const Value& now = subject.facts.values[fact].value;
    domain.any_subset =
        domain.tokens.size() <= kMostTokens && (now.kind() != Value::Kind::list || list_of_strings(now));
  }
  return domain;
}

std::vector<OpenKey> open_keys(const Subject& subject, const std::vector<FactId>& open) {
  std::vector<OpenKey> keys;
  for (const FactId fact : open) {
    auto domain = repair_domain(subject, fact);
    if (!domain) continue;
    if (domain->choices[0].unknown) {
      if (domain->choices.size() > 1)
        domain->choices.erase(domain->choices.begin());
      else if (domain->any_subset)
        domain->choices[0] = {true, false, Value(Value::List{})};
    }
    keys.push_back({fact, std::move(*domain)});
  }
  return keys;
}

}  // namespace capstan
