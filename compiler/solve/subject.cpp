#include "compiler/solve/subject.h"

#include <algorithm>
#include <numeric>

#include "compiler/facts/derive.h"

namespace capstan {
namespace {

/// Joins facts and literals that meet in one comparison, calculation or define.
class Grouper {
 public:
  explicit Grouper(std::size_t names) : parent_(names) { std::iota(parent_.begin(), parent_.end(), 0u); }

  FactId find(FactId fact) {
    while (parent_[fact] != fact) fact = parent_[fact] = parent_[parent_[fact]];
    return fact;
  }
  void join(FactId a, FactId b) { parent_[std::max(find(a), find(b))] = std::min(find(a), find(b)); }

  /// A truth value: what it compares belongs together, but nothing of it belongs to what the truth is used
  /// for.
  void walk(const TypedExpr& expr) {
    if (compares(expr)) {
      collect_children(expr, std::nullopt);
      return;
    }
    if (expr.op == ExprOp::conditional || is_truth(expr)) {
      for (const TypedExpr& child : expr.children) walk(child);
      return;
    }
    collect(expr);
  }

  /// All facts under a value form one group, and all literals under it belong to that group.
  void collect(const TypedExpr& expr, std::optional<FactId> owner = std::nullopt) {
    if (is_truth(expr)) {
      walk(expr);
      return;
    }
    Group group;
    gather(expr, group);
    add(std::move(group), owner);
  }

  const std::vector<std::pair<FactId, Value>>& found() const { return found_; }

 private:
  struct Group {
    std::vector<FactId> facts;
    std::vector<Value> values;
  };

  static bool compares(const TypedExpr& expr) {
    switch (expr.op) {
      case ExprOp::equal:
      case ExprOp::not_equal:
      case ExprOp::less:
      case ExprOp::less_equal:
      case ExprOp::greater:
      case ExprOp::greater_equal:
      case ExprOp::in:
      case ExprOp::not_in:
      case ExprOp::subset:
      case ExprOp::overlaps:
        return true;
      case ExprOp::call:
        return expr.name == "contains" || expr.name == "starts_with" || expr.name == "ends_with" ||
               expr.name == "divides";
      default:
        return false;
    }
  }

  static bool is_truth(const TypedExpr& expr) {
    switch (expr.op) {
      case ExprOp::not_:
      case ExprOp::and_:
      case ExprOp::or_:
      case ExprOp::implies:
      case ExprOp::iff:
      case ExprOp::is:
      case ExprOp::is_not:
        return true;
      default:
        return compares(expr);
    }
  }

  void collect_children(const TypedExpr& expr, std::optional<FactId> owner) {
    Group group;
    for (const TypedExpr& child : expr.children) {
      if (is_truth(child))
        walk(child);
      else
        gather(child, group);
    }
    add(std::move(group), owner);
  }

  void add(Group group, std::optional<FactId> owner) {
    if (owner) group.facts.push_back(*owner);
    for (const FactId fact : group.facts) join(group.facts[0], fact);
    if (group.facts.empty()) return;
    for (Value& value : group.values) found_.emplace_back(group.facts[0], std::move(value));
  }

  void gather(const TypedExpr& expr, Group& group) {
    if (is_truth(expr)) {
      walk(expr);
      return;
    }
    if (expr.op == ExprOp::name) group.facts.push_back(expr.fact);
    if (expr.op == ExprOp::literal || expr.op == ExprOp::set) {
      if (expr.literal.kind() == Value::Kind::list) {
        group.values.insert(group.values.end(), expr.literal.list().begin(), expr.literal.list().end());
      } else if (expr.op == ExprOp::literal) {
        group.values.push_back(expr.literal);
      }
    }
    // The second argument of these functions is no value of the first.
    const bool option =
        expr.op == ExprOp::call &&
        (expr.name == "allocator" || expr.name == "field" || expr.name == "split" || expr.name == "layout" ||
         expr.name == "before" || expr.name == "after" || expr.name == "count");
    for (std::size_t i = 0; i < expr.children.size(); ++i) {
      if (expr.op == ExprOp::conditional && i == 0)
        walk(expr.children[i]);
      else if (!option || i == 0)
        gather(expr.children[i], group);
    }
  }

  std::vector<FactId> parent_;
  std::vector<std::pair<FactId, Value>> found_;
};

int kind_rank(const Value& value) {
  return static_cast<int>(value.kind());
}

bool ordered(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number() && a.number() != b.number()) return a.number() < b.number();
  if (kind_rank(a) != kind_rank(b)) return kind_rank(a) < kind_rank(b);
  if (a.kind() == Value::Kind::string) return a.string() < b.string();
  if (a.kind() == Value::Kind::boolean) return a.boolean() < b.boolean();
  return false;
}

}  // namespace

Candidates::Candidates(const RuleIndex& index) {
  if (index.rules().set == nullptr) return;
  Grouper grouper(index.rules().set->names.size());
  std::vector<FactId> mentioned;
  for (std::uint32_t position = 0; position < index.size(); ++position) {
    const RuleItem& item = index.item(position);
    mentioned.insert(mentioned.end(), item.reads.begin(), item.reads.end());
    if (item.has_when) grouper.walk(item.when);
    for (const ResolvedFix& fix : item.fixes) {
      for (const ResolvedAction& action : fix.actions) advise(action);
    }
    switch (item.kind) {
      case RuleItem::Kind::check:
        grouper.walk(item.require);
        break;
      case RuleItem::Kind::define:
        grouper.walk(item.value);
        grouper.collect(item.value, item.defined);
        break;
      case RuleItem::Kind::rewrite:
        for (const ResolvedAction& action : item.assignments) {
          grouper.walk(action.value);
          grouper.collect(action.value, action.key);
        }
        break;
    }
  }
  std::sort(mentioned.begin(), mentioned.end());
  mentioned.erase(std::unique(mentioned.begin(), mentioned.end()), mentioned.end());
  std::unordered_map<FactId, std::size_t> group_of_root;
  for (const FactId fact : mentioned) {
    const auto [entry, fresh] = group_of_root.try_emplace(grouper.find(fact), members_.size());
    if (fresh) {
      members_.emplace_back();
      literals_.emplace_back();
    }
    members_[entry->second].push_back(fact);
    group_[fact] = entry->second;
  }
  for (const auto& [fact, value] : grouper.found()) {
    const auto group = group_of_root.find(grouper.find(fact));
    if (group == group_of_root.end()) continue;
    std::vector<Value>& values = literals_[group->second];
    if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
  }
  for (std::vector<Value>& values : literals_) std::stable_sort(values.begin(), values.end(), ordered);
}

void Candidates::advise(const ResolvedAction& action) {
  const bool constant =
      action.value.children.empty() && (action.value.op == ExprOp::literal || action.value.op == ExprOp::set);
  if (action.kind != FixAction::Kind::set || !constant || action.value.literal.is_none()) return;
  std::vector<Value>& values = advised_[action.key];
  if (std::find(values.begin(), values.end(), action.value.literal) == values.end())
    values.push_back(action.value.literal);
}

const std::vector<Value>& Candidates::advised(FactId fact) const {
  static const std::vector<Value> none;
  const auto found = advised_.find(fact);
  return found == advised_.end() ? none : found->second;
}

const std::vector<Value>& Candidates::literals(FactId fact) const {
  static const std::vector<Value> none;
  const auto found = group_.find(fact);
  return found == group_.end() ? none : literals_[found->second];
}

const std::vector<FactId>& Candidates::mates(FactId fact) const {
  static const std::vector<FactId> none;
  const auto found = group_.find(fact);
  return found == group_.end() ? none : members_[found->second];
}

namespace {

bool is_changeable_name(const std::string& name, const KeyView& key) {
  const std::string_view section = section_of(name);
  if (section == "target" || section == "cluster" || section == "execute" || section == "arguments")
    return false;
  if (section == "env") return name.size() > 4;
  return key.info != nullptr && key.spec != nullptr;
}

std::vector<FactId> ids_of(const std::vector<std::string>& paths, const FactNames& names) {
  std::vector<FactId> ids;
  for (const std::string& path : paths) {
    if (FactId id = 0; names.find(path, id)) ids.push_back(id);
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

}  // namespace

RuleBook::RuleBook(const SchemaView& schema_view, const ActiveRules& active)
    : schema(schema_view), rules(active), index(active), candidates(index), dependences(active) {
  if (active.set == nullptr) return;
  const FactNames& names = active.set->names;
  keys.reserve(names.size());
  for (FactId fact = 0; fact < names.size(); ++fact) {
    const std::string& name = names.name(fact);
    keys.push_back(schema.find(name));
    if (is_changeable_name(name, keys.back())) changeable.push_back(fact);
  }
}

Subject::Subject(const Config& checked, const RuleBook& rule_book)
    : Subject(checked, rule_book, derive_facts(checked, rule_book.schema, rule_book.rules.set->names)) {}

Subject::Subject(const Config& checked, const RuleBook& rule_book, Facts derived)
    : config(checked),
      book(rule_book),
      facts(std::move(derived)),
      broken_(ids_of(checked.broken, *facts.names)),
      open_(ids_of(checked.open, *facts.names)) {}

bool Subject::is_broken(FactId fact) const {
  return std::binary_search(broken_.begin(), broken_.end(), fact);
}

bool Subject::is_open(FactId fact) const {
  return std::binary_search(open_.begin(), open_.end(), fact);
}

Reevaluator& Subject::variants() const {
  if (!variants_) variants_ = std::make_unique<Reevaluator>(book.rules, book.dependences, facts);
  return *variants_;
}

bool forbids(const RuleItem& item) {
  return item.kind == RuleItem::Kind::check && item.severity == Severity::error &&
         item.finding != FindingKind::advice;
}

bool reads_any(const RuleIndex& index, std::uint32_t position, const std::vector<FactId>& facts) {
  const std::vector<FactId>& inputs = index.inputs(position);
  return std::any_of(facts.begin(), facts.end(),
                     [&](FactId fact) { return std::binary_search(inputs.begin(), inputs.end(), fact); });
}

Facts with_open(const Facts& facts, const std::vector<FactId>& open) {
  Facts changed = facts;
  for (const FactId fact : open) {
    Fact& value = changed.values.at(fact);
    value.state = Fact::State::unknown;
    value.set = true;
  }
  return changed;
}

Facts with_changes(const Facts& facts, const std::vector<Assignment>& changes) {
  Facts changed = facts;
  for (const Assignment& change : changes) assign(changed.values.at(change.fact), change);
  return changed;
}

namespace {

std::vector<std::uint32_t> checks_among(const RuleBook& book, const std::vector<std::uint32_t>& items) {
  std::vector<std::uint32_t> positions;
  for (const std::uint32_t item : items) {
    if (book.rules.set->items[item].kind != RuleItem::Kind::check) continue;
    if (const auto position = book.index.position_of(item)) positions.push_back(*position);
  }
  return positions;
}

}  // namespace

std::vector<std::uint32_t> violated_checks(const RuleBook& book, Facts facts) {
  return checks_among(book, decided_violations(book.rules, facts));
}

std::vector<std::uint32_t> violated_checks(const Subject& subject, const std::vector<Assignment>& changes) {
  return checks_among(subject.book, subject.variants().violations(changes));
}

}  // namespace capstan
