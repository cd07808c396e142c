// Questions to the SMT solver in our own value types: Boolean terms (hash-consed and simplified here), named
// assumptions, cores, models and weighted minimisation. An answer is sat, unsat or undecided, each by name.
// Small questions are decided by PropositionalSearch; what exceeds its limit goes to Z3, which is started
// only then. Deterministic: limits count steps, not time.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "compiler/constraints/term_table.h"

namespace capstan {

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

class Smt {
 public:
  explicit Smt(SmtOptions options = {});
  ~Smt();
  Smt(const Smt&) = delete;
  Smt& operator=(const Smt&) = delete;

  /// The name is asked for when a question goes to Z3 or is written down: what it is made of must last until
  /// then.
  Term variable(std::function<std::string()> name);
  Term variable(std::string name);
  Term constant(bool value) const { return value ? kTrue : kFalse; }
  Term negate(Term a);
  Term both(Term a, Term b);
  Term either(Term a, Term b);
  Term all(std::span<const Term> terms);
  Term any(std::span<const Term> terms);
  Term all(std::initializer_list<Term> terms) { return all(std::span(terms.begin(), terms.size())); }
  Term any(std::initializer_list<Term> terms) { return any(std::span(terms.begin(), terms.size())); }
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

  /// Of the terms of flat_, whatever their order.
  Term conjunction_of_flat();
  /// The names of all variables, by term id.
  const std::vector<std::string>& names();
  /// By the search alone; nothing when its limit was met. Leaves a model or a core.
  std::optional<Answer> search(const std::vector<Term>& assumptions);
  std::optional<Answer> minimize_by_search(const std::vector<SoftTerm>& soft,
                                           const std::vector<Term>& assumptions);
  Z3& z3();

  TermTable terms_;
  std::vector<std::pair<Term, std::function<std::string()>>> variables_;
  std::vector<std::string> names_;  // by term id, as far as they were asked for; empty for inner terms
  std::size_t named_ = 0;           // how many of variables_ have theirs in names_
  std::unordered_set<std::string> used_names_;
  std::vector<Term> flat_;                      // of one term that is being made; kept for its memory
  std::vector<std::vector<Term>> required_{1};  // by push level
  std::vector<Term> last_core_;
  bool has_model_ = false;
  bool model_is_of_search_ = false;         // the search holds the values of the terms that it knows
  mutable std::vector<std::int8_t> model_;  // by term id: 1, -1; 0 not known yet
  std::unique_ptr<Search> search_;
  std::unique_ptr<Z3> z3_;
  std::uint64_t questions_ = 0;
  SmtOptions options_;
};

}  // namespace capstan
