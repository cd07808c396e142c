#include "compiler/driver/solve_session.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

#include "compiler/config/conform.h"
#include "compiler/diagnostics/render/display_text.h"
#include "compiler/diagnostics/render/place.h"
#include "compiler/diagnostics/render/render.h"
#include "compiler/driver/usage_error.h"
#include "compiler/solve/domain.h"
#include "grammar/override/override_parser.h"

namespace capstan {

void add_solver_options(CLI::App& command, SolverOptions& options) {
  command
      .add_option("--timeout", options.timeout_ms, "limit for each question to the solver, in milliseconds")
      ->check(CLI::Range(1u, 3'600'000u));
  CLI::Option* const format = command.add_option("--format", options.format, "format of the answer")
                                  ->check(CLI::IsMember({"text", "json"}));
  command
      .add_option("--emit", options.emit,
                  "print the questions to the solver (SMT-LIB 2) instead of the answer")
      ->check(CLI::IsMember({"smt2"}))
      ->excludes(format);
}

void add_free_option(CLI::App& command, std::vector<std::string>& free) {
  command
      .add_option(
          "--free", free,
          "a further open key, besides those written as \"?\": any value that the rules allow (repeatable)")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->type_name("KEY");
}

SolveSession::SolveSession(const ConfigOptions& config, const SolverOptions& options)
    : options_(options), workspace_(config, setup_) {
  smt_.timeout_ms = options.timeout_ms;
  if (options.emit == "smt2") smt_.transcript = std::make_shared<std::string>();
}

bool SolveSession::open(const std::string& path) {
  Sink sink;
  workspace_.require_usable(setup_);
  for (Diagnostic& diagnostic : setup_.take()) sink.report(std::move(diagnostic));
  if (const auto file = workspace_.read_source(path, "<stdin>", sink))
    prepared_ = workspace_.prepare(*file, sink);
  if (sink.has_errors()) {
    std::vector<Diagnostic> shown = sink.take();
    sort_for_output(shown);
    std::fputs(render_text(shown, workspace_.sources(), {}, {}).c_str(), stderr);
    return false;
  }
  if (!prepared_) return false;
  book_ = std::make_unique<RuleBook>(*prepared_->schema, *prepared_->rules);
  subject_ = std::make_unique<Subject>(prepared_->config, *book_);
  return true;
}

void SolveSession::open_empty(const std::string& stack_name) {
  workspace_.require_usable(setup_);
  const Stack& stack = stack_named(workspace_.schema(), stack_name);
  prepared_.emplace();
  prepared_->stack.stack = stack;
  prepared_->schema = &workspace_.view_of(stack);
  prepared_->rules = &workspace_.rules_for(stack);
  book_ = std::make_unique<RuleBook>(*prepared_->schema, *prepared_->rules);
  subject_ = std::make_unique<Subject>(prepared_->config, *book_);
}

const Stack& stack_named(const Schema& schema, const std::string& stack_name) {
  const Stack* stack = schema.find_stack(stack_name);
  if (stack != nullptr) return *stack;
  std::vector<std::string> names;
  std::string listed;
  for (const Stack& known : schema.stacks()) {
    names.push_back(known.name);
    listed += (listed.empty() ? "`" : ", `") + known.name + "`";
  }
  const std::string near = nearest(stack_name, names);
  throw UsageError(near.empty()
                       ? fmt::format("no stack is named `{}`; known stacks: {}", stack_name, listed)
                       : fmt::format("no stack is named `{}`; did you mean `{}`?", stack_name, near));
}

namespace {

bool is_variable_name(std::string_view name) {
  return !name.empty() && (name[0] < '0' || name[0] > '9') &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
         });
}

}  // namespace

std::string SolveSession::checked_path(const std::vector<std::string>& parts) const {
  std::string path;
  for (const std::string& part : parts) path += (path.empty() ? "" : ".") + part;
  const KeyView view = prepared_->schema->find(path);
  if (path.starts_with("env.") && !is_variable_name(std::string_view(path).substr(4)))
    throw UsageError(fmt::format("`{}` cannot be the name of an environment variable", path.substr(4)));
  if (view.info == nullptr && !path.starts_with("env.")) {
    const std::string near = prepared_->schema->nearest_key(path);
    throw UsageError(near.empty()
                         ? fmt::format("no release has the key `{}`", path)
                         : fmt::format("no release has the key `{}`; did you mean `{}`", path, near));
  }
  if (view.info != nullptr && view.spec == nullptr) {
    throw UsageError(fmt::format("`{}` is no key of {}", path, prepared_->stack.stack.name));
  }
  return path;
}

Value SolveSession::fitted(const std::string& path, Value value) const {
  const KeyView view = prepared_->schema->find(path);
  if (view.spec == nullptr) {
    if (value.kind() == Value::Kind::string || value.is_none()) return value;
    return Value(to_text(value));  // environment variables are strings
  }
  const auto misfit = conform(value, *view.spec);
  if (!misfit) return value;
  if (path.starts_with("env.") && misfit->wrong_type) return Value(to_text(value));
  if (!misfit->wrong_type)
    throw UsageError(fmt::format("`{}` is none of the values that `{}` has in {}", to_text(misfit->found),
                                 path, prepared_->stack.stack.name));
  throw UsageError(fmt::format("`{}` takes {}, not the {} `{}`", path, view.spec->type_text,
                               kind_name(misfit->found.kind()), to_text(misfit->found)));
}

std::optional<FactId> SolveSession::find_key(const std::string& path) const {
  std::vector<std::string> parts;
  for (std::size_t start = 0; start <= path.size();) {
    const std::size_t end = std::min(path.find('.', start), path.size());
    parts.push_back(path.substr(start, end - start));
    start = end + 1;
  }
  const std::string known = checked_path(parts);
  // Rules are judged for the place where a config runs; it is stated, not sought.
  if (path.starts_with("target.") || path.starts_with("cluster."))
    throw UsageError(
        fmt::format("`{0}` says where the config runs, and rules are judged for that: give it with "
                    "`--set {0}=VALUE`; no values of it are sought",
                    path));
  FactId fact = 0;
  if (!book_->rules.set->names.find(known, fact) || !is_changeable(*subject_, fact)) return std::nullopt;
  return fact;
}

OpenPaths SolveSession::open_paths(const std::vector<std::string>& free) const {
  OpenPaths open;
  const auto add = [&](const std::string& path) {
    if (const std::optional<FactId> key = find_key(path)) {
      if (std::find(open.read.begin(), open.read.end(), *key) == open.read.end()) open.read.push_back(*key);
    } else if (std::find(open.unread.begin(), open.unread.end(), path) == open.unread.end()) {
      open.unread.push_back(path);
    }
  };
  for (const std::string& path : prepared_->config.open) {
    if (prepared_->config.find(path) != nullptr) add(path);  // the others nobody asked for
  }
  for (const std::string& path : free) add(path);
  return open;
}

std::pair<std::string, Value> SolveSession::read_assignment(const std::string& text) {
  const SourceId source = workspace_.sources().add("argument", text, SourceKind::override_argument);
  SyntaxProblem problem;
  const auto parsed = parse_override(source, workspace_.sources(), OverrideMode::single, problem);
  if (!parsed) throw UsageError(fmt::format("cannot read `{}`: {}", text, problem.message));
  const std::string path = checked_path(parsed->path);
  if (parsed->kind == Override::Kind::remove) return {path, Value()};
  return {path, fitted(path, to_value(parsed->value))};
}

std::pair<std::string, std::vector<Value>> SolveSession::read_axis(const std::string& text) {
  if (text.ends_with('=')) throw UsageError(fmt::format("`{}` names no value to sweep over", text));
  const SourceId source = workspace_.sources().add("argument", text, SourceKind::override_argument);
  SyntaxProblem problem;
  const auto parsed = parse_override(source, workspace_.sources(), OverrideMode::sweep, problem);
  if (!parsed) throw UsageError(fmt::format("cannot read `{}`: {}", text, problem.message));
  const std::string path = checked_path(parsed->path);
  std::vector<Value> values;
  const auto add = [&](const SyntaxNode& node) {
    Value value = fitted(path, to_value(node));
    if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(std::move(value));
  };
  for (const SyntaxNode& choice : parsed->choices) add(choice);
  if (parsed->choices.empty() && parsed->kind != Override::Kind::remove) add(parsed->value);
  if (values.empty()) throw UsageError(fmt::format("`{}` names no value to sweep over", text));
  return {path, values};
}

std::string SolveSession::place_of(FactId fact) const {
  const Fact& value = subject_->facts.values[fact];
  if (value.setting == nullptr)
    return is_changeable(*subject_, fact) ? "default" : prepared_->stack.stack.name;
  const Span span =
      value.setting->origin.value.exists() ? value.setting->origin.value : value.setting->origin.key;
  if (!span.exists()) return origin_kind_name(value.setting->origin.kind);
  return safe_text(place_text(workspace_.sources(), span));
}

void SolveSession::print(const std::string& text) const {
  if (smt_.transcript && smt_.transcript->empty())
    throw UsageError("`--emit smt2`: no question is asked, since evaluating the rules decides this");
  const std::string& out = smt_.transcript ? *smt_.transcript : text;
  std::fwrite(out.data(), 1, out.size(), stdout);
}

void SolveSession::print_aside(const std::string& text) const {
  if (smt_.transcript) return print(text);
  std::fputs(text.c_str(), stderr);
}

}  // namespace capstan
