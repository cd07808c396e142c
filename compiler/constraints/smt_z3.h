// The part of Smt that asks Z3: terms and what is required -> an answer with a model (by term id) or a core.
// Holds no state but the translation of terms into its context. Private to compiler/constraints.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compiler/constraints/smt.h"

namespace capstan {

class Smt::Z3 {
 public:
  using Names = std::vector<std::string>;
  using Levels = std::vector<std::vector<Term>>;

  /// `options.context` must be there.
  explicit Z3(const SmtOptions& options);
  ~Z3();

  Answer check(const TermTable& terms, const Names& names, const Levels& required,
               const std::vector<Term>& assumptions, std::vector<std::int8_t>& model,
               std::vector<Term>& core);
  Answer minimize(const TermTable& terms, const Names& names, const Levels& required,
                  const std::vector<SoftTerm>& soft, const std::vector<Term>& assumptions,
                  std::vector<std::int8_t>& model);
  std::string smt2(const TermTable& terms, const Names& names, const Levels& required,
                   const std::vector<Term>& assumptions);

 private:
  struct Translation;
  SmtOptions options_;  // holds the context, which must outlive all that was made in it
  std::unique_ptr<Translation> translation_;
};

}  // namespace capstan
