#include "compiler/constraints/smt.h"

#include <z3++.h>

#include <algorithm>
#include <optional>
#include <sstream>

namespace capstan {

const char* answer_name(Answer answer) {
  switch (answer) {
    case Answer::sat:
      return "sat";
    case Answer::unsat:
      return "unsat";
    case Answer::undecided:
      return "undecided";
  }
  return "?";
}

struct Smt::Backend {
  // The finite-domain solver: everything here is Boolean, and it has assumptions, cores and an incremental
  // state.
  z3::context context;
  z3::solver solver;
  std::vector<std::optional<z3::expr>> translated;  // by term id
  std::vector<std::vector<Term>> required{1};       // by push level, for minimize and smt2
  // A level is a literal that switches its terms on: the solver's own pop does not forget all it learnt.
  std::vector<z3::expr> scopes;
  unsigned scope_count = 0;
  std::vector<Term> last_core;
  std::optional<z3::model> model;
  std::unordered_map<unsigned, std::uint32_t> term_of_ast;

  Backend() : solver(context, "QF_FD") {}

  z3::expr translate(Term term, const Smt& smt) {
    if (translated.size() < smt.nodes_.size()) translated.resize(smt.nodes_.size());
    // Terms are made bottom up, so the stack depth follows the expression's depth; an explicit stack keeps it
    // bounded.
    std::vector<std::uint32_t> stack{term.id};
    while (!stack.empty()) {
      const std::uint32_t id = stack.back();
      if (translated[id]) {
        stack.pop_back();
        continue;
      }
      const Node& node = smt.nodes_[id];
      bool ready = true;
      for (const Term child : node.children) {
        if (!translated[child.id]) {
          stack.push_back(child.id);
          ready = false;
        }
      }
      if (!ready) continue;
      stack.pop_back();
      switch (node.kind) {
        case Node::Kind::constant:
          translated[id] = context.bool_val(id == kTrue.id);
          break;
        case Node::Kind::variable:
          translated[id] = context.bool_const(smt.names_[id].c_str());
          term_of_ast[Z3_get_ast_id(context, *translated[id])] = id;
          break;
        case Node::Kind::negation:
          translated[id] = !*translated[node.children[0].id];
          break;
        case Node::Kind::conjunction: {
          z3::expr_vector parts(context);
          for (const Term child : node.children) parts.push_back(*translated[child.id]);
          translated[id] = z3::mk_and(parts);
          break;
        }
      }
    }
    return *translated[term.id];
  }
};

Smt::Smt(SmtOptions options) : backend_(std::make_unique<Backend>()), options_(options) {
  nodes_.push_back({Node::Kind::constant, {}});
  nodes_.push_back({Node::Kind::constant, {}});
  names_.resize(2);
  z3::params params(backend_->context);
  params.set("random_seed", 17u);
  params.set("timeout", options_.timeout_ms);
  backend_->solver.set(params);
}

Smt::~Smt() = default;

Term Smt::intern(Node node) {
  std::uint64_t hash = static_cast<std::uint64_t>(node.kind) + 0x9e3779b97f4a7c15ull;
  for (const Term child : node.children) hash = (hash ^ child.id) * 0x100000001b3ull + (hash >> 29);
  const auto [first, last] = index_.equal_range(hash);
  for (auto entry = first; entry != last; ++entry) {
    const Node& known = nodes_[entry->second];
    if (known.kind == node.kind && known.children == node.children) return Term{entry->second};
  }
  const auto id = static_cast<std::uint32_t>(nodes_.size());
  nodes_.push_back(std::move(node));
  names_.emplace_back();
  index_.emplace(hash, id);
  return Term{id};
}

Term Smt::variable(std::string name) {
  const auto id = static_cast<std::uint32_t>(nodes_.size());
  // The solver knows variables by name alone: equal names would be one variable.
  if (!used_names_.insert(name).second) name += " #" + std::to_string(id);
  nodes_.push_back({Node::Kind::variable, {}});
  names_.push_back(std::move(name));
  return Term{id};
}

Term Smt::negate(Term a) {
  if (a == kFalse) return kTrue;
  if (a == kTrue) return kFalse;
  if (nodes_[a.id].kind == Node::Kind::negation) return nodes_[a.id].children[0];
  return intern({Node::Kind::negation, {a}});
}

Term Smt::all(std::vector<Term> terms) {
  std::vector<Term> flat;
  for (const Term term : terms) {
    if (term == kFalse) return kFalse;
    if (term == kTrue) continue;
    if (nodes_[term.id].kind == Node::Kind::conjunction && nodes_[term.id].children.size() <= 8) {
      flat.insert(flat.end(), nodes_[term.id].children.begin(), nodes_[term.id].children.end());
    } else {
      flat.push_back(term);
    }
  }
  std::sort(flat.begin(), flat.end());
  flat.erase(std::unique(flat.begin(), flat.end()), flat.end());
  for (const Term term : flat) {
    if (nodes_[term.id].kind == Node::Kind::negation &&
        std::binary_search(flat.begin(), flat.end(), nodes_[term.id].children[0])) {
      return kFalse;
    }
  }
  if (flat.empty()) return kTrue;
  if (flat.size() == 1) return flat[0];
  return intern({Node::Kind::conjunction, std::move(flat)});
}

Term Smt::any(std::vector<Term> terms) {
  for (Term& term : terms) term = negate(term);
  return negate(all(std::move(terms)));
}

Term Smt::both(Term a, Term b) {
  return all({a, b});
}
Term Smt::either(Term a, Term b) {
  return any({a, b});
}
Term Smt::same(Term a, Term b) {
  return choose(a, b, negate(b));
}

Term Smt::choose(Term condition, Term then, Term otherwise) {
  if (condition == kTrue || then == otherwise) return then;
  if (condition == kFalse) return otherwise;
  return either(both(condition, then), both(negate(condition), otherwise));
}

void Smt::require(Term term) {
  if (term == kTrue) return;
  backend_->required.back().push_back(term);
  const auto add = [this](Term part) {
    const z3::expr formula = backend_->translate(part, *this);
    backend_->solver.add(backend_->scopes.empty() ? formula : z3::implies(backend_->scopes.back(), formula));
  };
  if (term != kFalse && nodes_[term.id].kind == Node::Kind::conjunction) {
    for (const Term part : std::vector<Term>(nodes_[term.id].children)) add(part);
    return;
  }
  add(term);
}

void Smt::require_exactly_one(const std::vector<Term>& terms) {
  require(any(terms));
  if (terms.size() <= 6) {
    for (std::size_t i = 0; i < terms.size(); ++i) {
      for (std::size_t j = i + 1; j < terms.size(); ++j) require(negate(both(terms[i], terms[j])));
    }
    return;
  }
  // Ladder: `seen` holds from the first chosen one on; linear in the number of terms.
  Term seen = terms[0];
  for (std::size_t i = 1; i < terms.size(); ++i) {
    require(negate(both(seen, terms[i])));
    if (i + 1 == terms.size()) break;
    const Term next = variable("ladder!" + std::to_string(nodes_.size()));
    require(implies(seen, next));
    require(implies(terms[i], next));
    seen = next;
  }
}

void Smt::push() {
  const std::string name = "scope!" + std::to_string(backend_->scope_count++);
  backend_->scopes.push_back(backend_->context.bool_const(name.c_str()));
  backend_->required.emplace_back();
}

void Smt::pop() {
  backend_->solver.add(!backend_->scopes.back());
  backend_->scopes.pop_back();
  backend_->required.pop_back();
}

Answer Smt::check(const std::vector<Term>& assumptions) {
  ++questions_;
  if (options_.transcript) *options_.transcript += smt2(assumptions) + "(reset)\n";
  backend_->model.reset();
  backend_->last_core.clear();
  z3::expr_vector literals(backend_->context);
  for (const z3::expr& scope : backend_->scopes) literals.push_back(scope);
  std::unordered_map<unsigned, Term> literal_terms;
  for (const Term term : assumptions) {
    if (term == kTrue) continue;
    if (term == kFalse) {
      backend_->last_core = {term};
      return Answer::unsat;
    }
    z3::expr literal = backend_->translate(term, *this);
    // Assumptions must be literals; a compound term gets a name that implies it.
    const Node& node = nodes_[term.id];
    const bool plain =
        node.kind == Node::Kind::variable ||
        (node.kind == Node::Kind::negation && nodes_[node.children[0].id].kind == Node::Kind::variable);
    if (!plain) {
      z3::expr name = backend_->context.bool_const(("assume!" + std::to_string(term.id)).c_str());
      backend_->solver.add(z3::implies(name, literal));
      literal = name;
    }
    literal_terms.emplace(Z3_get_ast_id(backend_->context, literal), term);
    literals.push_back(literal);
  }
  z3::check_result result = z3::unknown;
  try {
    result = backend_->solver.check(literals);
    if (result == z3::sat) {
      backend_->model = backend_->solver.get_model();
      return Answer::sat;
    }
    if (result == z3::unsat) {
      std::vector<Term> needed;
      for (const z3::expr& literal : backend_->solver.unsat_core()) {
        const auto found = literal_terms.find(Z3_get_ast_id(backend_->context, literal));
        if (found != literal_terms.end()) needed.push_back(found->second);
      }
      for (const Term term : assumptions) {
        if (std::find(needed.begin(), needed.end(), term) != needed.end())
          backend_->last_core.push_back(term);
      }
      return Answer::unsat;
    }
  } catch (const z3::exception&) {
    // A limit inside the solver surfaces as an exception too.
  }
  return Answer::undecided;
}

bool Smt::value(Term term) const {
  if (term == kTrue) return true;
  if (term == kFalse || !backend_->model) return false;
  const Node& node = nodes_[term.id];
  if (node.kind == Node::Kind::negation) return !value(node.children[0]);
  if (node.kind == Node::Kind::conjunction) {
    return std::all_of(node.children.begin(), node.children.end(),
                       [this](Term child) { return value(child); });
  }
  if (term.id >= backend_->translated.size() || !backend_->translated[term.id]) return false;
  return backend_->model->eval(*backend_->translated[term.id], true).is_true();
}

std::vector<Term> Smt::core() const {
  return backend_->last_core;
}

Answer Smt::minimal_core(const std::vector<Term>& assumptions, std::vector<Term>& core) {
  core.clear();
  const Answer first = check(assumptions);
  if (first != Answer::unsat) return first;
  std::vector<Term> rest = backend_->last_core;
  Answer answer = Answer::unsat;
  // Deletion from the back: what cannot be left out stays; each unsat answer may drop several at once.
  std::vector<Term> needed;
  while (!rest.empty()) {
    const Term candidate = rest.back();
    rest.pop_back();
    std::vector<Term> question = rest;
    question.insert(question.end(), needed.begin(), needed.end());
    const Answer without = check(question);
    if (without == Answer::unsat) {
      std::vector<Term> kept;
      for (const Term term : rest) {
        const std::vector<Term>& last = backend_->last_core;
        if (std::find(last.begin(), last.end(), term) != last.end()) kept.push_back(term);
      }
      rest = std::move(kept);
    } else {
      if (without == Answer::undecided) answer = Answer::undecided;
      needed.push_back(candidate);
    }
  }
  for (const Term term : assumptions) {
    if (std::find(needed.begin(), needed.end(), term) != needed.end() &&
        std::find(core.begin(), core.end(), term) == core.end()) {
      core.push_back(term);
    }
  }
  backend_->last_core = core;
  return answer;
}

Answer Smt::minimize(const std::vector<SoftTerm>& soft, const std::vector<Term>& assumptions,
                     std::uint64_t& cost) {
  ++questions_;
  cost = 0;
  backend_->model.reset();
  try {
    z3::optimize optimize(backend_->context);
    z3::params params(backend_->context);
    params.set("timeout", options_.timeout_ms);
    optimize.set(params);
    for (const auto& level : backend_->required) {
      for (const Term term : level) optimize.add(backend_->translate(term, *this));
    }
    for (const Term term : assumptions) optimize.add(backend_->translate(term, *this));
    std::vector<SoftTerm> counted;
    for (const SoftTerm& entry : soft) {
      if (entry.term == kTrue) continue;
      if (entry.term == kFalse) {
        cost += entry.weight;
        continue;
      }
      optimize.add_soft(backend_->translate(entry.term, *this), entry.weight);
      counted.push_back(entry);
    }
    if (options_.transcript) {
      std::ostringstream text;
      text << optimize << "(reset)\n";
      *options_.transcript += text.str();
    }
    const z3::check_result result = optimize.check();
    if (result == z3::unsat) return Answer::unsat;
    if (result != z3::sat) return Answer::undecided;
    backend_->model = optimize.get_model();
    for (const SoftTerm& entry : counted) {
      if (!value(entry.term)) cost += entry.weight;
    }
    return Answer::sat;
  } catch (const z3::exception&) {
    return Answer::undecided;
  }
}

std::string Smt::smt2(const std::vector<Term>& assumptions) {
  z3::solver copy(backend_->context);
  std::size_t number = 0;
  for (const auto& level : backend_->required) {
    for (const Term term : level) copy.add(backend_->translate(term, *this));
  }
  std::string text = "; set-logic QF_FD\n" + copy.to_smt2();
  // Assumptions as named assertions, before the final check, so that another solver can give the core.
  const std::string::size_type end = text.rfind("(check-sat)");
  if (end != std::string::npos) text.erase(end);
  std::string declared;
  for (const Term term : assumptions) {
    const z3::expr literal = backend_->translate(term, *this);
    std::string written = literal.to_string();
    const Node& node = nodes_[term.id];
    if (node.kind == Node::Kind::variable &&
        text.find("(declare-fun " + written + " ") == std::string::npos) {
      declared += "(declare-fun " + written + " () Bool)\n";
    }
    text += "(assert (! " + written + " :named a" + std::to_string(number++) + "))\n";
  }
  text += "(check-sat)\n(get-unsat-core)\n";
  return "(set-option :produce-unsat-cores true)\n" + declared + text;
}

}  // namespace capstan
