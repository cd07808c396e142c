// The Boolean terms of one Smt: nodes with their children, hash-consed, so that equal ids are the same term.
// Terms are only ever added. The children of all nodes lie in one array: a question makes thousands of terms.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace capstan {

/// A Boolean term of one Smt. Equal ids are the same term; 0 is false, 1 is true.
struct Term {
  std::uint32_t id = 0;
  friend bool operator==(Term, Term) = default;
  friend auto operator<=>(Term, Term) = default;  // NOLINT(modernize-use-nullptr): it mistakes `<=>`
};
inline constexpr Term kFalse{0};
inline constexpr Term kTrue{1};

class TermTable {
 public:
  enum class Kind : std::uint8_t { constant, variable, negation, conjunction };

  /// Holds the two constants.
  TermTable();
  std::size_t size() const { return nodes_.size(); }
  Kind kind(Term term) const { return nodes_[term.id].kind; }
  /// Of a conjunction: sorted, distinct, no negated pair; of a negation: one. Good until a term is added.
  std::span<const Term> children(Term term) const {
    return {children_.data() + nodes_[term.id].first, nodes_[term.id].count};
  }

  Term variable();
  /// Of a term that is neither a constant nor a negation.
  Term negation(Term of);
  /// Of sorted, distinct terms that lie outside the table.
  Term conjunction(std::span<const Term> terms);

 private:
  struct Node {
    Kind kind;
    std::uint32_t first, count;  // of its children
    std::uint32_t negation = 0;  // 0: not made yet
  };
  struct Slot {
    std::uint32_t hash = 0, id = 0;  // id 0: empty
  };
  Term add(Kind kind, std::span<const Term> children);
  void grow_index();

  std::vector<Node> nodes_;
  std::vector<Term> children_;
  std::vector<Slot> index_;  // of conjunctions: open addressing, a power of two, at most half full
  std::size_t indexed_ = 0;
};

}  // namespace capstan
