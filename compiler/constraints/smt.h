// Questions to the SMT solver in our own value types: Boolean terms (hash-consed and simplified here), named
// assumptions, cores, models and weighted minimisation. An answer is sat, unsat or undecided, each by name.
// Small questions are decided by PropositionalSearch; what exceeds its limit goes to Z3, which is started
// only then. Deterministic: limits count steps, not time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
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

enum class Answer { sat, unsat, undecided };
const char* answer_name(Answer answer);

/// One Z3 context, made when a question first needs it; shared by the questions about one config, because
/// making one costs more than most questions.
class SolverContext;

struct SmtOptions {
  /// Limit per question, in milliseconds of an ordinary machine: it is counted in steps, so that a question
  /// gets the same answer everywhere.
  std::uint32_t timeout_ms = 2000;
  /// Every question is appended as SMT-LIB 2, separated by (reset), for a bug report; null: not recorded.
  std::shared_ptr<std::string> transcript;
  std::shared_ptr<SolverContext> context;  ///< null: one of its own
  bool z3_only = false;                    ///< every question goes to Z3
};

/// For questions that share one context.
std::shared_ptr<SolverContext> make_solver_context();

/// `term` should hold; breaking it costs `weight` (> 0).
struct SoftTerm {
  Term term;
  std::uint32_t weight = 1;
};

/// What a term is made of.
struct TermNode {
  enum class Kind : std::uint8_t { constant, variable, negation, conjunction };
  Kind kind;
  std::vector<Term> children;  ///< conjunction: sorted, distinct, no negated pair; negation: one
};

class Smt {
 public:
  explicit Smt(SmtOptions options = {});
  ~Smt();
  Smt(const Smt&) = delete;
  Smt& operator=(const Smt&) = delete;

  Term variable(std::string name);
  Term constant(bool value) const { return value ? kTrue : kFalse; }
  Term negate(Term a);
  Term both(Term a, Term b);
  Term either(Term a, Term b);
  Term all(std::vector<Term> terms);
  Term any(std::vector<Term> terms);
  Term implies(Term a, Term b) { return either(negate(a), b); }
  Term same(Term a, Term b);
  Term choose(Term condition, Term then, Term otherwise);

  /// A term that holds in every answer from now on (until the matching pop).
  void require(Term term);
  void require_exactly_one(const std::vector<Term>& terms);
  void push();
  void pop();

  Answer check(const std::vector<Term>& assumptions = {});
  /// Value of a term in the model of the last sat answer. Terms the question did not mention are false.
  bool value(Term term) const;
  /// After unsat: the assumptions the solver needed, in the order in which they were given; not yet minimal.
  std::vector<Term> core() const;
  /// A subset of the assumptions that is unsatisfiable and of which no element can be left out; elements at
  /// the front are kept in preference to those at the back. `undecided` when a limit was met (then `core` is
  /// unsatisfiable but may not be minimal), `sat` when the assumptions hold together.
  Answer minimal_core(const std::vector<Term>& assumptions, std::vector<Term>& core);
  /// A model of least total broken weight; the cost is given back. Undecided: a limit was met, no model.
  Answer minimize(const std::vector<SoftTerm>& soft, const std::vector<Term>& assumptions,
                  std::uint64_t& cost);

  /// The question as SMT-LIB 2, with named assumptions, for a bug report.
  std::string smt2(const std::vector<Term>& assumptions);
  std::uint64_t questions() const { return questions_; }

 private:
  struct Search;
  class Z3;

  Term intern(TermNode node);
  /// By the search alone; nothing when its limit was met. Leaves a model or a core.
  std::optional<Answer> search(const std::vector<Term>& assumptions);
  std::optional<Answer> minimize_by_search(const std::vector<SoftTerm>& soft,
                                           const std::vector<Term>& assumptions);
  Z3& z3();

  std::vector<TermNode> nodes_;
  std::vector<std::string> names_;        // by term id; empty for inner nodes
  std::vector<std::uint32_t> negations_;  // by term id; 0: not made yet
  std::unordered_set<std::string> used_names_;
  std::unordered_multimap<std::uint64_t, std::uint32_t> index_;
  std::vector<std::vector<Term>> required_{1};  // by push level
  std::vector<Term> last_core_;
  bool has_model_ = false;
  mutable std::vector<std::int8_t>
      model_;  // by term id: 1, -1; 0 not known yet (variables: absent, so false)
  std::unique_ptr<Search> search_;
  std::unique_ptr<Z3> z3_;
  std::uint64_t questions_ = 0;
  SmtOptions options_;
};

}  // namespace capstan
