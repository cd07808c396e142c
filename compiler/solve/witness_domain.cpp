#include "compiler/solve/witness_domain.h"

#include <algorithm>

#include "compiler/config/conform.h"
#include "compiler/ruleset/version_ranges.h"
#include "compiler/solve/domain.h"

namespace capstan {
namespace {

constexpr std::size_t kMostVariants = 24;
constexpr const char* kUnheardOf = "no-such-word";

void add(Domain& domain, Value value) {
  for (const Choice& known : domain.choices) {
    if (known.set && !known.unknown && known.value == value) return;
  }
  domain.choices.push_back({true, false, std::move(value)});
}

bool is_comparison(ExprOp op) {
  return op == ExprOp::equal || op == ExprOp::not_equal || op == ExprOp::less || op == ExprOp::less_equal ||
         op == ExprOp::greater || op == ExprOp::greater_equal;
}

const char* const kLayouts[] = {"E|L",     "Et|tL",       "Ettt|ttt|ttL", "Et|t|t|tL",  "Ettm|L",
                                "Em|ttL",  "t|EL",        "EtL",          "Ettt|tmL",   "Et|tL|t",
                                "EEt|tL",  "Ett|mttL",    "E|t|m|L",      "Ex|tL",      "Et|mt|L",
                                "Ettmm|L", "Ettttttt|tL", "tttt|ttttL",   "Etttt|ttttL"};

class Collector {
 public:
  Collector(RuleProbes& probes, const RuleIndex& index) : probes_(probes), index_(index) {}

  void walk(const TypedExpr& expr) {
    if (is_comparison(expr.op) && expr.children.size() == 2) {
      for (std::size_t side = 0; side < 2; ++side) {
        const TypedExpr& one = expr.children[side];
        const TypedExpr& other = expr.children[1 - side];
        if (one.op == ExprOp::name && other.op == ExprOp::version)
          push(probes_.versions[one.fact], other.version);
        if (one.op == ExprOp::call && one.function == RuleFunction::kAllocator) allocator(one, other);
      }
    }
    if (expr.op == ExprOp::in && expr.children.size() == 2 && expr.children[0].op == ExprOp::call &&
        expr.children[0].function == RuleFunction::kAllocator)
      allocator(expr.children[0], expr.children[1]);
    if (expr.op == ExprOp::call && !expr.children.empty()) call(expr);
    for (const TypedExpr& child : expr.children) walk(child);
  }

 private:
  template <typename T>
  static void push(std::vector<T>& known, T value) {
    if (std::find(known.begin(), known.end(), value) == known.end()) known.push_back(std::move(value));
  }

  /// Names under an expression, and under what defines them.
  void names_in(const TypedExpr& expr, std::vector<FactId>& out) const {
    if (expr.op == ExprOp::name && std::find(out.begin(), out.end(), expr.fact) == out.end()) {
      out.push_back(expr.fact);
      for (std::uint32_t position = 0; position < index_.size(); ++position) {
        const RuleItem& item = index_.item(position);
        if (item.kind == RuleItem::Kind::define && item.defined == expr.fact) names_in(item.value, out);
      }
    }
    for (const TypedExpr& child : expr.children) names_in(child, out);
  }

  void give(const TypedExpr& expr, const Value& value) {
    std::vector<FactId> facts;
    names_in(expr, facts);
    for (const FactId fact : facts) push(probes_.values[fact], value);
  }

  void allocator(const TypedExpr& call, const TypedExpr& compared) {
    const std::string option = call.children[1].literal.string();
    const auto one = [&](const Value& value) {
      if (value.kind() == Value::Kind::string) give(call.children[0], Value(option + ":" + value.string()));
    };
    if (compared.literal.kind() == Value::Kind::list) {
      for (const Value& value : compared.literal.list()) one(value);
    } else {
      one(compared.literal);
    }
  }

  void call(const TypedExpr& expr) {
    const TypedExpr& argument = expr.children[0];
    switch (expr.function) {
      case RuleFunction::kAllocator:
        for (const char* word : {"no-such-word", "True", "true", "False", "1", "64"})
          give(argument, Value(expr.children[1].literal.string() + ":" + word));
        break;
      case RuleFunction::kAllocatorProblem:
        for (const char* text : {"no-such-word:1", "expandable_segments:True", "max_split_size_mb:3"})
          give(argument, Value(text));
        break;
      case RuleFunction::kLayout:
        for (const char* layout : kLayouts) give(argument, Value(layout));
        break;
      case RuleFunction::kBefore:
      case RuleFunction::kAfter:
      case RuleFunction::kCount:
        if (expr.children[1].op == ExprOp::literal) {
          const std::string& mark = expr.children[1].literal.string();
          for (const std::string& text :
               {mark, mark + mark, mark + mark + mark, kUnheardOf + mark + kUnheardOf})
            give(argument, Value(text));
        }
        break;
      case RuleFunction::kInteger:
        for (const char* number : {"0", "1", "2", "8", "32", "many"}) give(argument, Value(number));
        break;
      case RuleFunction::kField:
        for (const std::int64_t number : {0, 1, 64}) {
          give(argument, Value(Value::Table{{expr.children[1].literal.string(), Value(number)}}));
        }
        give(argument, Value(Value::Table{{expr.children[1].literal.string(), Value(kUnheardOf)}}));
        break;
      case RuleFunction::kSum:
      case RuleFunction::kProduct:
      case RuleFunction::kLength:
      case RuleFunction::kSize:
        for (const std::int64_t number : {0, 1, 2}) {
          give(argument, Value(Value::List{Value(number)}));
          give(argument, Value(Value::List{Value(number), Value(number)}));
          give(argument, Value(Value::List{Value(number), Value(number), Value(number)}));
        }
        give(argument, Value(Value::List{}));
        give(argument, Value(Value::List{Value(kUnheardOf)}));
        give(argument, Value(Value::List{Value(kUnheardOf), Value("no-such-other-word")}));
        break;
      default:
        break;
    }
  }

  RuleProbes& probes_;
  const RuleIndex& index_;
};

/// A value of another kind than the last, for keys that take anything.
const std::vector<Value>& odd_values() {
  static const std::vector<Value> values{Value(kUnheardOf),
                                         Value(1),
                                         Value(-1),
                                         Value(true),
                                         Value(false),
                                         Value(0),
                                         Value(2),
                                         Value(4),
                                         Value(Value::List{Value(1)}),
                                         Value(Value::List{Value(kUnheardOf)}),
                                         Value(Value::List{}),
                                         Value(Value::Table{{kUnheardOf, Value(1)}}),
                                         Value(0.5),
                                         Value(-1.0),
                                         Value(2.0)};
  return values;
}

}  // namespace

bool is_fixed_by_the_stack(const std::string& name) {
  return name == "target.frontend" || name == "target.stack" || name.starts_with("target.megatron");
}

RuleProbes collect_probes(const RuleBook& book) {
  RuleProbes probes;
  Collector collector(probes, book.index);
  for (std::uint32_t position = 0; position < book.index.size(); ++position) {
    const RuleItem& item = book.index.item(position);
    if (item.has_when) collector.walk(item.when);
    if (item.kind == RuleItem::Kind::check) collector.walk(item.require);
    if (item.kind == RuleItem::Kind::define) collector.walk(item.value);
    for (const ResolvedAction& action : item.assignments) collector.walk(action.value);
  }
  return probes;
}

std::optional<Domain> witness_domain(const Subject& subject, const RuleProbes& probes, FactId fact) {
  const std::string& name = subject.name(fact);
  const Fact& now = subject.facts.values[fact];
  if (now.is_version || probes.versions.contains(fact) || is_fixed_by_the_stack(name)) return std::nullopt;
  if (name.starts_with("target.") || name.starts_with("cluster.")) {
    Domain domain;
    domain.choices.push_back({now.set, now.state == Fact::State::unknown, now.value});
    for (const Value& literal : subject.book.candidates.literals(fact)) {
      if (name == "target.gpu" && literal.kind() != Value::Kind::string) continue;
      add(domain, literal);
      if (literal.kind() == Value::Kind::integer && literal.integer() > 0) {
        add(domain, Value(literal.integer() + 1));
        add(domain, Value(literal.integer() - 1));
      }
    }
    if (name.starts_with("cluster.") || name == "target.num_gpus") {
      for (const std::int64_t number : {1, 2, 3, 4, 6, 8, 12, 16}) add(domain, Value(number));
    }
    if (name == "target.gpu") {
      for (const char* gpu : {"a100", "h100", "b200", "gb200"}) add(domain, Value(gpu));
    }
    if (name == "target.compute_capability") {
      for (const std::int64_t number : {70, 80, 89, 90, 100, 103, 120}) add(domain, Value(number));
    }
    return domain;
  }
  const KeyView view = subject.key(fact);
  std::optional<Domain> domain = repair_domain(subject, fact);
  if (!domain && view.spec != nullptr) {  // arguments of a front-end, which no fix ever writes
    domain.emplace();
    domain->choices.push_back({now.set, now.state == Fact::State::unknown, now.value});
    const Choice standard = default_choice(subject, fact);
    if (!standard.unknown) domain->choices.push_back(standard);
  }
  if (!domain) return domain;
  const auto try_value = [&](Value value) {
    if (view.spec == nullptr) {
      if (value.kind() == Value::Kind::string) add(*domain, std::move(value));
    } else if (!conform(value, *view.spec)) {
      add(*domain, std::move(value));
    }
  };
  for (const Value& value : odd_values()) try_value(value);
  if (const auto found = probes.values.find(fact); found != probes.values.end()) {
    for (const Value& value : found->second) try_value(value);
  }
  for (const Value& literal : subject.book.candidates.literals(fact)) {
    try_value(literal);
    if (literal.kind() == Value::Kind::string) try_value(Value(Value::List{literal}));
    if (literal.is_number()) {
      try_value(Value(literal.number() + 1));
      try_value(Value(literal.number() - 1));
      try_value(Value(literal.number() / 2));
    }
  }
  return domain;
}

std::vector<Facts> version_variants(const Subject& subject, const RuleProbes& probes,
                                    std::uint32_t position) {
  std::vector<Facts> variants{subject.facts};
  std::vector<Stack> stacks{subject.schema().stack()};
  for (const FactId fact : subject.index().inputs(position)) {
    const auto literals = probes.versions.find(fact);
    if (literals == probes.versions.end() || is_fixed_by_the_stack(subject.name(fact))) continue;
    const std::string component = subject.name(fact).substr(std::string("target.").size());
    std::vector<Version> tried{{0, 0, 1, 0, 0}};
    tried.insert(tried.end(), literals->second.begin(), literals->second.end());
    tried.push_back({9999, 0, 0, 0, 0});
    const std::size_t before = variants.size();
    for (const Version& version : tried) {
      for (std::size_t i = 0; i < before && variants.size() < kMostVariants; ++i) {
        Stack stack = stacks[i];
        std::erase_if(stack.components, [&](const auto& known) { return known.first == component; });
        stack.components.emplace_back(component, version);
        std::sort(stack.components.begin(), stack.components.end(),
                  [](const auto& a, const auto& b) { return a.first < b.first; });
        if (!is_active(subject.index().item(position), stack)) continue;
        Facts facts = variants[i];
        Fact& changed = facts.values[fact];
        changed.state = Fact::State::known;
        changed.is_version = true;
        changed.version = version;
        changed.value = Value(to_text(version));
        changed.set = true;
        variants.push_back(std::move(facts));
        stacks.push_back(std::move(stack));
      }
    }
  }
  return variants;
}

}  // namespace capstan
