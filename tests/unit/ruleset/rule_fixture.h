// Rules from text and facts from a config text, for tests: the built-in schema, a named stack.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "compiler/config/bind.h"
#include "compiler/config/compose.h"
#include "compiler/facts/derive.h"
#include "compiler/ruleset/evaluate.h"
#include "compiler/ruleset/message.h"
#include "compiler/ruleset/resolve.h"
#include "grammar/rule/rule_parser.h"

namespace capstan {

/// Rules of one or more texts, resolved. Problems are in `sink`, their places in `sources`.
struct RulesFromText {
  SourceMap sources;
  Sink sink;
  RuleSet rules;

  explicit RulesFromText(const std::vector<std::string>& texts, bool of_user = false) {
    std::vector<RuleFile> files;
    for (const std::string& text : texts) {
      const std::string path = "rules/" + std::to_string(files.size()) + ".rule";
      const SourceId source = sources.add(path, text, SourceKind::file);
      std::vector<RuleProblem> problems;
      const auto syntax = parse_rule_file(source, sources, problems);
      for (const RuleProblem& problem : problems) ADD_FAILURE() << describe(problem);
      if (syntax) files.push_back({path, *syntax, of_user});
    }
    rules = resolve(files, builtin_phases(), builtin_schema(), sink);
  }

  /// "CODE line:column message", one a line.
  std::string problems() const {
    std::string text;
    for (const Diagnostic& diagnostic : sink.diagnostics()) {
      text += diagnostic.code;
      if (!diagnostic.labels.empty()) {
        const Span span = diagnostic.labels[0].span;
        const LineColumn place = sources[span.source].locate(span.begin);
        text += " " + std::to_string(place.line) + ":" + std::to_string(place.column);
      }
      text += " " + diagnostic.message + "\n";
    }
    return text;
  }
};

/// A config from TOML on a stack of rules/stacks.toml, with the facts that the rules read.
struct FactsFromText {
  SourceMap sources;
  Sink sink;
  Config config;
  Stack stack;
  std::unique_ptr<SchemaView> view;

  FactsFromText(const std::string& text, const std::string& stack_name)
      : stack(*builtin_schema().find_stack(stack_name)) {
    const SourceId file = sources.add("config.toml", text, SourceKind::file);
    const auto layers = load_layers(file, sources, disk_reader(), sink);
    EXPECT_TRUE(layers) << text;
    if (layers) config = compose(*layers, sink);
    view = std::make_unique<SchemaView>(builtin_schema(), stack);
    bind(config, *view, sink);
  }
  Facts derive(const RuleSet& rules) const { return derive_facts(config, *view, rules.names); }
};

/// The fields of a rule that tests rarely care about.
inline std::string rule_text(const std::string& code, const std::string& fields) {
  return "rule " + code +
         " some-rule {\n kind breaks enforcer core message \"m\" why \"w\" source \"a\" \"b\" \"c\" seen "
         "\"d\"\n" +
         " evidence code 2026-01-01\n" + fields + "\n}\n";
}

}  // namespace capstan
