#include "compiler/constraints/smt_z3.h"

#include <z3++.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <unordered_map>

namespace capstan {
namespace {

// Z3 counts its steps; about so many are done in a millisecond.
constexpr std::uint64_t kStepsPerMillisecond = 2000;

unsigned step_limit(const SmtOptions& options) {
  return static_cast<unsigned>(
      std::min<std::uint64_t>(kStepsPerMillisecond * options.timeout_ms, 0xffffffffu));
}

}  // namespace

class SolverContext {
 public:
  /// Made on first use: it costs more than most questions.
  z3::context& get() {
    if (!context_) context_.emplace();
    return *context_;
  }

 private:
  std::optional<z3::context> context_;
};

std::shared_ptr<SolverContext> make_solver_context() {
  return std::make_shared<SolverContext>();
}

struct Smt::Z3::Translation {
  z3::context& context;
  std::vector<std::optional<z3::expr>> translated;  // by term id
  std::vector<std::uint32_t> variables;             // ids of translated variables

  z3::expr translate(Term term, const TermTable& terms, const Names& names) {
    if (translated.size() < terms.size()) translated.resize(terms.size());
    // An explicit stack: expressions may be deep.
    std::vector<std::uint32_t> stack{term.id};
    while (!stack.empty()) {
      const std::uint32_t id = stack.back();
      if (translated[id]) {
        stack.pop_back();
        continue;
      }
      const std::span<const Term> children = terms.children(Term{id});
      bool ready = true;
      for (const Term child : children) {
        if (!translated[child.id]) {
          stack.push_back(child.id);
          ready = false;
        }
      }
      if (!ready) continue;
      stack.pop_back();
      switch (terms.kind(Term{id})) {
        case TermTable::Kind::constant:
          translated[id] = context.bool_val(id == kTrue.id);
          break;
        case TermTable::Kind::variable:
          translated[id] = context.bool_const(names[id].c_str());
          variables.push_back(id);
          break;
        case TermTable::Kind::negation:
          translated[id] = !*translated[children[0].id];
          break;
        case TermTable::Kind::conjunction: {
          z3::expr_vector parts(context);
          for (const Term child : children) parts.push_back(*translated[child.id]);
          translated[id] = z3::mk_and(parts);
          break;
        }
      }
    }
    return *translated[term.id];
  }

  void read_model(const z3::model& from, std::size_t count, std::vector<std::int8_t>& model) const {
    model.assign(count, 0);
    for (const std::uint32_t id : variables) model[id] = from.eval(*translated[id], true).is_true() ? 1 : -1;
  }
};

Smt::Z3::Z3(const SmtOptions& options)
    : options_(options), translation_(new Translation{options_.context->get(), {}, {}}) {}
Smt::Z3::~Z3() = default;

Answer Smt::Z3::check(const TermTable& terms, const Names& names, const Levels& required,
                      const std::vector<Term>& assumptions, std::vector<std::int8_t>& model,
                      std::vector<Term>& core) {
  z3::context& context = translation_->context;
  core.clear();
  try {
    z3::solver solver(context, "QF_FD");  // everything here is Boolean
    z3::params params(context);
    params.set("random_seed", 17u);
    params.set("rlimit", step_limit(options_));
    solver.set(params);
    for (const auto& level : required) {
      for (const Term term : level) solver.add(translation_->translate(term, terms, names));
    }
    // Assumptions must be literals: each gets a name that implies it.
    z3::expr_vector literals(context);
    std::unordered_map<unsigned, Term> term_of_literal;
    for (const Term term : assumptions) {
      const z3::expr literal = context.bool_const(("assume!" + std::to_string(term.id)).c_str());
      if (!term_of_literal.emplace(Z3_get_ast_id(context, literal), term).second) continue;
      solver.add(z3::implies(literal, translation_->translate(term, terms, names)));
      literals.push_back(literal);
    }
    const z3::check_result result = solver.check(literals);
    if (result == z3::sat) {
      translation_->read_model(solver.get_model(), terms.size(), model);
      return Answer::sat;
    }
    if (result == z3::unsat) {
      for (const z3::expr& literal : solver.unsat_core()) {
        const auto found = term_of_literal.find(Z3_get_ast_id(context, literal));
        if (found != term_of_literal.end()) core.push_back(found->second);
      }
      // In the order in which they were assumed.
      const auto place = [&](Term term) {
        return std::find(assumptions.begin(), assumptions.end(), term) - assumptions.begin();
      };
      std::sort(core.begin(), core.end(), [&](Term a, Term b) { return place(a) < place(b); });
      return Answer::unsat;
    }
  } catch (const z3::exception&) {
    // A limit inside the solver surfaces as an exception too.
  }
  return Answer::undecided;
}

Answer Smt::Z3::minimize(const TermTable& terms, const Names& names, const Levels& required,
                         const std::vector<SoftTerm>& soft, const std::vector<Term>& assumptions,
                         std::vector<std::int8_t>& model) {
  z3::context& context = translation_->context;
  try {
    z3::optimize optimize(context);
    z3::params params(context);
    params.set("rlimit", step_limit(options_));
    optimize.set(params);
    for (const auto& level : required) {
      for (const Term term : level) optimize.add(translation_->translate(term, terms, names));
    }
    for (const Term term : assumptions) optimize.add(translation_->translate(term, terms, names));
    for (const SoftTerm& entry : soft) {
      if (entry.term == kTrue || entry.term == kFalse) continue;
      optimize.add_soft(translation_->translate(entry.term, terms, names), entry.weight);
    }
    if (options_.transcript) {
      std::ostringstream text;
      text << optimize << "(reset)\n";
      *options_.transcript += text.str();
    }
    const z3::check_result result = optimize.check();
    if (result == z3::unsat) return Answer::unsat;
    if (result != z3::sat) return Answer::undecided;
    translation_->read_model(optimize.get_model(), terms.size(), model);
    return Answer::sat;
  } catch (const z3::exception&) {
    return Answer::undecided;
  }
}

std::string Smt::Z3::smt2(const TermTable& terms, const Names& names, const Levels& required,
                          const std::vector<Term>& assumptions) {
  z3::solver copy(translation_->context);
  for (const auto& level : required) {
    for (const Term term : level) copy.add(translation_->translate(term, terms, names));
  }
  std::string text = "; set-logic QF_FD\n" + copy.to_smt2();
  // Assumptions as named assertions, before the final check, so that another solver can give the core.
  const std::string::size_type end = text.rfind("(check-sat)");
  if (end != std::string::npos) text.erase(end);
  std::string declared;
  std::size_t number = 0;
  for (const Term term : assumptions) {
    const z3::expr literal = translation_->translate(term, terms, names);
    std::string written = literal.to_string();
    if (terms.kind(term) == TermTable::Kind::variable &&
        text.find("(declare-fun " + written + " ") == std::string::npos) {
      declared += "(declare-fun " + written + " () Bool)\n";
    }
    text += "(assert (! " + written + " :named a" + std::to_string(number++) + "))\n";
  }
  text += "(check-sat)\n(get-unsat-core)\n";
  return "(set-option :produce-unsat-cores true)\n" + declared + text;
}

}  // namespace capstan
