#include "compiler/solve/check_table.h"

#include <algorithm>
#include <set>
#include <utility>

#include "compiler/ruleset/reevaluate.h"
#include "compiler/ruleset/rule_walk.h"

namespace capstan {
namespace {

bool names_a_fact(const TypedExpr& expr) {
  return expr.op == ExprOp::name || std::any_of(expr.children.begin(), expr.children.end(), names_a_fact);
}

/// Calculates, or orders two things that facts say.
bool calculates_in(const TypedExpr& expr) {
  switch (expr.op) {
    case ExprOp::add:
    case ExprOp::subtract:
    case ExprOp::multiply:
    case ExprOp::divide:
    case ExprOp::floor_divide:
    case ExprOp::modulo:
      return true;
    case ExprOp::equal:
    case ExprOp::not_equal:
    case ExprOp::less:
    case ExprOp::less_equal:
    case ExprOp::greater:
    case ExprOp::greater_equal:
      if (names_a_fact(expr.children[0]) && names_a_fact(expr.children[1])) return true;
      break;
    case ExprOp::call:
      if (expr.function == RuleFunction::kDivides || expr.function == RuleFunction::kMin ||
          expr.function == RuleFunction::kMax)
        return true;
      break;
    default:
      break;
  }
  return std::any_of(expr.children.begin(), expr.children.end(), calculates_in);
}

bool calculates_in(const RuleItem& item) {
  switch (item.kind) {
    case RuleItem::Kind::check:
      return (item.has_when && calculates_in(item.when)) || calculates_in(item.require);
    case RuleItem::Kind::define:
      return calculates_in(item.value);
    case RuleItem::Kind::rewrite:
      return (item.has_when && calculates_in(item.when)) ||
             std::any_of(item.assignments.begin(), item.assignments.end(),
                         [](const ResolvedAction& action) { return calculates_in(action.value); });
  }
  return false;
}

/// The items that the one at `position` depends on, in order, itself last.
std::vector<std::uint32_t> items_for(const RuleIndex& index, std::uint32_t position) {
  const RuleItem& check = index.item(position);
  std::set<FactId> needed(check.reads.begin(), check.reads.end());
  std::vector<std::uint32_t> items{position};
  for (std::uint32_t at = position; at-- > 0;) {
    const RuleItem& item = index.item(at);
    bool writes = false;
    if (item.kind == RuleItem::Kind::define) {
      writes = needed.erase(item.defined) > 0;
    } else if (item.kind == RuleItem::Kind::rewrite) {
      // What it leaves alone is read by the check as it was before.
      writes = std::any_of(item.assignments.begin(), item.assignments.end(),
                           [&](const ResolvedAction& action) { return needed.contains(action.key); });
    }
    if (!writes) continue;
    needed.insert(item.reads.begin(), item.reads.end());
    items.push_back(at);
  }
  std::reverse(items.begin(), items.end());
  return items;
}

}  // namespace

CheckTable::CheckTable(const Subject& subject, std::uint32_t position, const std::vector<SweepAxis>& axes,
                       std::vector<std::size_t> used)
    : subject_(subject), axes_(axes), used_(std::move(used)), items_(items_for(subject.index(), position)) {
  for (const std::size_t axis : used_) size_ *= axes_[axis].values.size();
}

bool CheckTable::calculates() const {
  std::vector<FactId> keys;
  for (const std::size_t axis : used_) keys.push_back(axes_[axis].key);
  return std::any_of(items_.begin(), items_.end(), [&](std::uint32_t position) {
    return reads_any(subject_.index(), position, keys) && calculates_in(subject_.index().item(position));
  });
}

std::vector<bool> CheckTable::violated() const {
  const RuleIndex& index = subject_.index();
  std::vector<FactId> keys;
  for (const std::size_t axis : used_) keys.push_back(axes_[axis].key);
  Facts now = subject_.facts;
  RuleWalk walk(index.rules(), now);
  // What comes before the first item that the axes reach is the same at every point.
  std::size_t first = 0;
  const auto touches = [&](std::uint32_t position) {
    const RuleItem& item = index.item(position);
    return reads_any(index, position, keys) ||
           std::any_of(item.assignments.begin(), item.assignments.end(), [&](const ResolvedAction& action) {
             return std::find(keys.begin(), keys.end(), action.key) != keys.end();
           });
  };
  while (first + 1 < items_.size() && !touches(items_[first])) walk.step(index.item(items_[first++]));
  std::vector<std::pair<FactId, Fact>> written;
  for (std::size_t at = first; at < items_.size(); ++at) {
    const RuleItem& item = index.item(items_[at]);
    const auto keep = [&](FactId fact) {
      if (std::none_of(written.begin(), written.end(), [&](const auto& one) { return one.first == fact; }))
        written.emplace_back(fact, now.values[fact]);
    };
    if (item.kind == RuleItem::Kind::define) keep(item.defined);
    if (item.kind == RuleItem::Kind::rewrite) {
      for (const ResolvedAction& action : item.assignments) keep(action.key);
    }
  }
  std::vector<bool> table(size_);
  std::vector<std::size_t> value(used_.size(), 0);
  for (std::uint64_t point = 0; point < size_; ++point) {
    for (const auto& [fact, before] : written) now.values[fact] = before;
    for (std::size_t i = 0; i < used_.size(); ++i)
      assign(now.values[keys[i]], {keys[i], true, axes_[used_[i]].values[value[i]]});
    bool fails = false;
    for (std::size_t at = first; at < items_.size(); ++at) fails = walk.step(index.item(items_[at]));
    table[point] = fails;
    for (std::size_t i = used_.size(); i-- > 0;) {
      if (++value[i] < axes_[used_[i]].values.size()) break;
      value[i] = 0;
    }
  }
  return table;
}

namespace {

/// The combinations that share some values with one of them.
class Box {
 public:
  Box(const std::vector<SweepAxis>& axes, const std::vector<std::size_t>& used) {
    strides_.assign(used.size(), 1);
    for (std::size_t i = used.size(); i-- > 0;) {
      sizes_.push_back(axes[used[i]].values.size());
      if (i + 1 < used.size()) strides_[i] = strides_[i + 1] * axes[used[i + 1]].values.size();
    }
    std::reverse(sizes_.begin(), sizes_.end());
    free_.assign(used.size(), false);
  }
  std::size_t value(std::uint64_t point, std::size_t axis) const {
    return point / strides_[axis] % sizes_[axis];
  }
  bool is_free(std::size_t axis) const { return free_[axis]; }
  void set_free(std::size_t axis, bool free) { free_[axis] = free; }
  /// Until `visit` says false; whether it never did.
  template <typename Visit>
  bool each(std::uint64_t point, const Visit& visit, std::size_t axis = 0) const {
    if (axis == free_.size()) return visit(point);
    if (!free_[axis]) return each(point, visit, axis + 1);
    const std::uint64_t first = point - value(point, axis) * strides_[axis];
    for (std::size_t at = 0; at < sizes_[axis]; ++at) {
      if (!each(first + at * strides_[axis], visit, axis + 1)) return false;
    }
    return true;
  }

 private:
  std::vector<std::uint64_t> strides_, sizes_;
  std::vector<bool> free_;
};

}  // namespace

std::vector<Cube> cubes_of_table(const std::vector<SweepAxis>& axes, const std::vector<std::size_t>& used,
                                 const std::vector<bool>& table, std::size_t most, bool& complete) {
  std::vector<Cube> cubes;
  std::vector<bool> covered(table.size());
  complete = true;
  for (std::uint64_t point = 0; point < table.size(); ++point) {
    if (!table[point] || covered[point]) continue;
    if (cubes.size() == most) {
      complete = false;
      return cubes;
    }
    Box box(axes, used);
    for (std::size_t axis = 0; axis < used.size(); ++axis) {
      box.set_free(axis, true);
      if (!box.each(point, [&](std::uint64_t other) { return static_cast<bool>(table[other]); }))
        box.set_free(axis, false);
    }
    box.each(point, [&](std::uint64_t other) { return covered[other] = true; });
    Cube cube(axes.size(), -1);
    for (std::size_t axis = 0; axis < used.size(); ++axis) {
      if (!box.is_free(axis)) cube[used[axis]] = static_cast<std::int32_t>(box.value(point, axis));
    }
    cubes.push_back(std::move(cube));
  }
  return cubes;
}

}  // namespace capstan
