#include "compiler/constraints/term_table.h"

#include <algorithm>
#include <utility>

namespace capstan {
namespace {

constexpr std::size_t kFirstIndex = 256;

std::uint32_t hash_of(std::span<const Term> terms) {
  std::uint64_t hash = 0x9e3779b97f4a7c15ull;
  for (const Term term : terms) hash = (hash ^ term.id) * 0x9fb21c651e98df25ull + (hash >> 29);
  return static_cast<std::uint32_t>(hash ^ (hash >> 32));
}

}  // namespace

TermTable::TermTable() : index_(kFirstIndex) {
  add(Kind::constant, {});
  add(Kind::constant, {});
}

Term TermTable::add(Kind kind, std::span<const Term> children) {
  const auto id = static_cast<std::uint32_t>(nodes_.size());
  nodes_.push_back(
      {kind, static_cast<std::uint32_t>(children_.size()), static_cast<std::uint32_t>(children.size())});
  children_.insert(children_.end(), children.begin(), children.end());
  return Term{id};
}

Term TermTable::variable() {
  return add(Kind::variable, {});
}

Term TermTable::negation(Term of) {
  if (nodes_[of.id].negation == 0) {
    const Term made = add(Kind::negation, {&of, 1});
    nodes_[of.id].negation = made.id;
  }
  return Term{nodes_[of.id].negation};
}

Term TermTable::conjunction(std::span<const Term> terms) {
  const std::uint32_t hash = hash_of(terms);
  std::size_t place = hash & (index_.size() - 1);
  for (; index_[place].id != 0; place = (place + 1) & (index_.size() - 1)) {
    if (index_[place].hash != hash) continue;
    const auto known = children(Term{index_[place].id});
    if (std::equal(known.begin(), known.end(), terms.begin(), terms.end())) return Term{index_[place].id};
  }
  const Term made = add(Kind::conjunction, terms);
  index_[place] = {hash, made.id};
  if (2 * ++indexed_ > index_.size()) grow_index();
  return made;
}

void TermTable::grow_index() {
  std::vector<Slot> old = std::exchange(index_, std::vector<Slot>(4 * index_.size()));
  for (const Slot& slot : old) {
    if (slot.id == 0) continue;
    std::size_t place = slot.hash & (index_.size() - 1);
    while (index_[place].id != 0) place = (place + 1) & (index_.size() - 1);
    index_[place] = slot;
  }
}

}  // namespace capstan
