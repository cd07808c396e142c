// Random configs over the keys that a stack's rules read: values of the schema, literals of the rules,
// numbers around them, and now and then values of other kinds. Deterministic for a seed.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "compiler/ruleset/resolve.h"
#include "compiler/solve/domain.h"
#include "compiler/solve/subject.h"

namespace capstan {

class RandomConfigs {
 public:
  RandomConfigs(const RuleBook& book, unsigned seed) : book_(book), random_(seed) {
    Config empty;
    const Subject subject(empty, book);
    for (FactId fact = 0; fact < book.rules.set->names.size(); ++fact) {
      if (is_changeable(subject, fact) && !book.index.checks_reading(fact).empty()) keys_.push_back(fact);
    }
  }

  const std::vector<FactId>& keys() const { return keys_; }
  unsigned below(std::size_t bound) { return static_cast<unsigned>(random_() % bound); }

  Config next() {
    Config config;
    const std::size_t count = 1 + below(18);
    for (std::size_t i = 0; i < count && !keys_.empty(); ++i) {
      const FactId fact = keys_[below(keys_.size())];
      put(config, book_.rules.set->names.name(fact), value_for(fact));
    }
    // Graph settings meet most rules; uniform choice would rarely combine them.
    if (below(2) == 0) put_if_known(config, "model.cuda_graph_impl");
    if (below(2) == 0) put_if_known(config, "model.cuda_graph_scope");
    if (below(2) == 0) put_if_known(config, "model.cuda_graph_modules");
    if (below(3) == 0) put_if_known(config, "model.num_moe_experts");
    if (below(4) == 0) put(config, "target.gpu", Value(below(2) == 0 ? "h100" : "b200"));
    return config;
  }

  Value value_for(FactId fact) {
    const std::string& name = book_.rules.set->names.name(fact);
    const KeyView view = book_.schema.find(name);
    const std::vector<Value>& literals = book_.candidates.literals(fact);
    if (view.spec == nullptr) return literals.empty() ? Value("1") : literals[below(literals.size())];
    const TypeSet& type = view.spec->type;
    std::vector<Value> values;
    if (type.boolean) values.insert(values.end(), {Value(true), Value(false)});
    if (type.integer) {
      for (const std::int64_t number : {0, 1, 2, 3, 4, 6, 8, 16, 128, -1}) values.emplace_back(number);
      for (const Value& literal : literals) {
        if (literal.kind() == Value::Kind::integer) values.push_back(literal);
      }
    }
    if (type.floating) values.insert(values.end(), {Value(0.0), Value(0.5), Value(1.0), Value(-1.0)});
    if (type.string) {
      for (const std::string& text : view.spec->values) values.emplace_back(text);
      for (const Value& literal : literals) {
        if (literal.kind() == Value::Kind::string) values.push_back(literal);
      }
      values.emplace_back("something else");
    }
    if (type.list && type.list_string) {
      for (int copies = 0; copies < 4; ++copies) {
        Value::List list;
        const std::size_t size = below(4);
        for (std::size_t i = 0; i < size; ++i) {
          if (!view.spec->values.empty())
            list.emplace_back(view.spec->values[below(view.spec->values.size())]);
          else if (!literals.empty() && literals[0].kind() == Value::Kind::string)
            list.push_back(literals[below(literals.size())]);
        }
        values.emplace_back(std::move(list));
      }
    }
    if (type.list && type.list_integer) values.emplace_back(Value::List{Value(1), Value(0), Value(1)});
    if (type.any && !view.spec->values.empty()) {  // a word, a list of words, words in one string, or none
      const auto word = [&] {
        return Value(below(12) == 0 ? "attm" : view.spec->values[below(view.spec->values.size())]);
      };
      values.push_back(word());
      values.emplace_back(word().string() + "," + word().string());
      for (int copies = 0; copies < 3; ++copies) {
        Value::List list;
        for (std::size_t size = below(4); list.size() < size;) list.push_back(word());
        values.emplace_back(std::move(list));
      }
      values.emplace_back();
    }
    if (type.none || values.empty()) values.emplace_back();
    return values[below(values.size())];
  }

 private:
  void put_if_known(Config& config, const std::string& name) {
    FactId fact = 0;
    if (book_.rules.set->names.find(name, fact) && book_.schema.find(name).spec != nullptr)
      put(config, name, value_for(fact));
  }

  static void put(Config& config, const std::string& name, Value value) {
    Setting setting;
    setting.path = name;
    setting.value = std::move(value);
    setting.origin.kind = OriginKind::file;
    config.settings[name] = std::move(setting);
  }

  const RuleBook& book_;
  std::mt19937 random_;
  std::vector<FactId> keys_;
};

}  // namespace capstan
