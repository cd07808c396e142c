// Python recipes (straight-line assignments) and lines of Hydra overrides.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>

#include "compiler/config/conform.h"
#include "compiler/config/exchange/layer_builder.h"
#include "compiler/config/exchange/readers.h"
#include "compiler/config/exchange/section_class.h"
#include "grammar/arguments/python_assignments.h"
#include "grammar/override/override_parser.h"
#include "grammar/source/byte_order_mark.h"

namespace capstan {
namespace {

std::string dotted_path(const std::vector<std::string>& path) {
  std::string out;
  for (const std::string& part : path) out += (out.empty() ? "" : ".") + part;
  return out;
}

/// "section.key" of a longer path; the key that the schema knows.
std::string key_of(const std::vector<std::string>& path) {
  return path.size() < 2 ? path.front() : path[0] + "." + path[1];
}

/// Bridge's own container sets nothing but what its arguments say.
bool is_plain_container(std::string_view call) {
  const std::string_view name = call.substr(0, call.find('('));
  return name.substr(name.rfind('.') + 1) == "ConfigContainer";
}

/// Recipes are not type-checked: some of Bridge's own hold None where a default stands for it, and numbers
/// where only their truth counts. What the framework makes of them is not known here. Null for other values.
const char* loosely_typed(const SyntaxNode& value, const KeySpec* spec) {
  if (value.kind != SyntaxNode::Kind::scalar || spec == nullptr || spec->type.any) return nullptr;
  const TypeSet& type = spec->type;
  const bool plain = (type.boolean || type.integer || type.floating || type.string) && !type.list;
  if (value.scalar.is_none() && plain && !type.none && spec->has_default)
    return "`None` is no value that is known for it";
  // The name of a member of a class: an enum's as a rule, but not where the key takes no text.
  Value word = value.scalar;
  if (const auto misfit = value.what.empty() ? std::nullopt : conform(word, *spec);
      misfit && misfit->wrong_type)
    return "it is a member of a class, whose value only Python knows";
  if (value.scalar.kind() == Value::Kind::integer && type.boolean && !type.integer && !type.floating &&
      !type.string)
    return "a number stands where only true or false is known";
  return nullptr;
}

/// For a message: the first line, cut when it is long.
std::string one_line(std::string_view text) {
  constexpr std::size_t kLongest = 60;
  std::size_t size = std::min(text.find_first_of("\r\n"), text.size());
  if (size > kLongest) {
    size = kLongest;
    while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xC0) == 0x80) --size;
  }
  return std::string(text.substr(0, size)) + (size < text.size() ? "..." : "");
}

std::vector<Layer> with_frontend(LayerBuilder& builder, SourceId file, const char* frontend) {
  LayerBuilder imported(OriginKind::imported, file);
  imported.set("target.frontend", Span{}, Value(frontend), Span{});
  std::vector<Layer> layers;
  layers.push_back(imported.take());
  layers.push_back(builder.take());
  return layers;
}

/// Other functions and variables that set something of a config.
void report_further_configs(const ReadContext& context, const PythonRecipe& recipe) {
  for (const PythonRecipe::Further& further : recipe.further) {
    const bool is_config = std::any_of(
        further.sections.begin(), further.sections.end(),
        [&](const std::string& section) { return section.empty() || context.view.has_section(section); });
    if (!is_config) continue;
    if (further.variable.empty()) {
      report_further_run(context, further.function, further.place);
      continue;
    }
    context.sink.problem(
        "EX008",
        fmt::format(
            "what `{}` is given is not checked here; the config is {}", further.variable,
            recipe.variable == kPythonReturned ? "what the function returns" : "`" + recipe.variable + "`"),
        further.place);
    context.record.further_runs.push_back({further.variable, "another config", further.place});
  }
}

/// `model={num_layers: 4}` sets keys of the section, as `model.num_layers=4` does.
void take_section(const ReadContext& context, LayerBuilder& builder, const Override& override) {
  const std::string& section = override.path.front();
  if (override.value.kind != SyntaxNode::Kind::table) {
    report_refused(
        context, "EX002", section,
        fmt::format("`{}` is a section; needs a key of it (`{}.key=value`) or a dict", section, section),
        override.value.span.exists() ? override.value.span : override.key_span);
    context.record.open_sections.push_back(section);
    return;
  }
  ++context.record.mapped;
  for (const SyntaxEntry& entry : override.value.entries) {
    const std::string path = section + "." + entry.key;
    if (section == "env_vars")
      set_variable(context, builder, entry.key, entry.key_span, entry.value);
    else if (knows(context.view, path))
      builder.set(path, entry.key_span, entry.value);
    else
      report_unknown(context, path,
                     fmt::format("`{}` is no key that {} has", path, context.view.stack().name),
                     entry.key_span);
  }
}

}  // namespace

std::optional<std::vector<Layer>> read_python(const ReadContext& context) {
  SyntaxProblem problem;
  const auto recipe = parse_python_recipe(context.file, context.sources, context.run, problem);
  if (!recipe) {
    const bool no_such_function = !problem.where.exists();
    context.sink.problem(no_such_function ? "EX005" : "SY009", problem.message,
                         no_such_function ? Span{context.file, 0, 0} : problem.where);
    return std::nullopt;
  }
  context.record.comments = recipe->comments;
  report_further_configs(context, *recipe);
  if (recipe->assignments.empty()) {
    context.sink.problem("EX005", "no assignment `cfg.section.key = value` is found",
                         Span{context.file, 0, 0});
    return std::nullopt;
  }
  LayerBuilder builder(OriginKind::file, context.file);
  if (recipe->base.exists() && !is_plain_container(context.sources.text(recipe->base))) {
    context.record.unset_is_open = true;
    context.sink.problem("EX006",
                         fmt::format("what `{}` sets is not known here; only the assignments below are read",
                                     one_line(context.sources.text(recipe->base))),
                         recipe->base);
  }
  for (const Span& call : recipe->changes) {
    context.record.unset_is_open = true;
    context.sink.problem(
        "EX006", fmt::format("what `{}` changes is not known here", one_line(context.sources.text(call))),
        call);
  }
  for (const SyntaxProblem& repeated : recipe->repeated_keys)
    context.sink.problem("EX007", repeated.message, repeated.where);
  for (const PythonAssignment& assignment : recipe->assignments) {
    if (assignment.anew) {
      const std::string& section = assignment.path.front();
      const std::string_view name = context.sources.text(assignment.key_span);
      builder.forget(section);
      std::erase(context.record.open_sections, section);
      if (context.view.has_section(section) && !has_defaults_of_section(section, name)) {
        report_not_literal(context, section,
                           fmt::format("what `{}` sets is not known; keys of the section that are not set "
                                       "here are open",
                                       name),
                           assignment.key_span);
        context.record.open_sections.push_back(section);
      }
      continue;
    }
    ++context.record.total;
    if (assignment.path.empty()) {
      report_not_literal(context, std::string(context.sources.text(assignment.key_span)),
                         "which key it sets is decided when the recipe runs", assignment.key_span);
      context.record.unset_is_open = true;
      continue;
    }
    if (assignment.path.front() == kPythonVariables && assignment.path.size() == 2) {
      ++context.record.mapped;
      set_variable(context, builder, assignment.path[1], assignment.key_span, assignment.value);
      continue;
    }
    std::string path = dotted_path(assignment.path);
    if (path == "mixed_precision") path = "mixed_precision.recipe";
    if (assignment.path.front() == kPythonVariables && assignment.path.size() == 1 &&
        assignment.value.kind == SyntaxNode::Kind::table) {
      for (const SyntaxEntry& entry : assignment.value.entries)
        set_variable(context, builder, entry.key, entry.key_span, entry.value);
      ++context.record.mapped;
      continue;
    }
    const std::string key = path == "mixed_precision.recipe" ? path : key_of(assignment.path);
    if (assignment.path.size() == 1 && key == path && context.view.has_section(path)) {
      const bool absent =
          assignment.value.kind == SyntaxNode::Kind::scalar && assignment.value.scalar.is_none();
      ++context.record.mapped;
      builder.forget(path);
      if (!absent) {
        report_not_literal(context, path, "the section is set as a whole", assignment.value.span);
        context.record.open_sections.push_back(path);
      }
      continue;
    }
    if (!knows(context.view, key)) {
      report_unknown(context, path, fmt::format("`{}` is no key that {} has", key, context.view.stack().name),
                     assignment.key_span);
      continue;
    }
    ++context.record.mapped;
    if (assignment.value.kind == SyntaxNode::Kind::unsupported) {
      report_not_literal(context, path, assignment.value.what, assignment.value.span);
      builder.set_unknown(path, assignment.key_span, assignment.value.span);
      continue;
    }
    if (const char* const why = loosely_typed(assignment.value, context.view.find(path).spec)) {
      report_not_literal(context, path, why, assignment.value.span);
      builder.set_unknown(path, assignment.key_span, assignment.value.span);
      continue;
    }
    builder.set(path, assignment.key_span, assignment.value);
  }
  return with_frontend(builder, context.file, "bridge");
}

std::optional<std::vector<Layer>> read_hydra(const ReadContext& context) {
  const std::string_view text = context.sources[context.file].bytes();
  LayerBuilder builder(OriginKind::file, context.file);
  std::vector<Layer> earlier_layers;  // overrides count in their order: each removal is a layer of its own
  std::map<std::string, std::string> said;  // values by path
  bool good = true;
  std::uint32_t line = 1;
  for (std::size_t begin = byte_order_mark_size(text); begin < text.size(); ++line) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::size_t first = text.find_first_not_of(" \t\r", begin);
    if (first < end && text[first] == '#') {
      context.record.comments.push_back(
          {Span{context.file, static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(end)}, line,
           true});
    } else if (first < end) {
      ++context.record.total;
      SyntaxProblem problem;
      const Span place{context.file, static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(end)};
      const auto override = parse_override(place, context.sources, OverrideMode::file, problem);
      if (!override) {
        context.sink.problem("SY005", problem.message, problem.where);
        good = false;
      } else if (override->kind == Override::Kind::remove) {
        ++context.record.mapped;
        Layer layer;
        layer.source = context.file;
        layer.foreign = true;
        layer.removed = override->path;
        layer.removed_span = override->key_span;
        const std::string removed = dotted_path(override->path);
        said.erase(removed);
        const auto inner = said.lower_bound(removed + '.');
        auto last = inner;
        while (last != said.end() && last->first.starts_with(removed + '.')) ++last;
        said.erase(inner, last);
        if (!builder.empty()) {
          earlier_layers.push_back(builder.take());
          builder = LayerBuilder(OriginKind::file, context.file);
        }
        earlier_layers.push_back(std::move(layer));
      } else if (override->path.front() == "env_vars" && override->path.size() == 2) {
        ++context.record.mapped;
        set_variable(context, builder, override->path[1], override->key_span, override->value);
      } else if (override->path.size() == 1 && context.view.has_section(override->path.front())) {
        take_section(context, builder, *override);
      } else if (!knows(context.view, key_of(override->path))) {
        report_unknown(
            context, dotted_path(override->path),
            fmt::format("`{}` is no key that {} has", key_of(override->path), context.view.stack().name),
            override->key_span);
      } else {
        ++context.record.mapped;
        if (override->value.kind == SyntaxNode::Kind::unsupported) {
          const std::string open = dotted_path(override->path);
          report_not_literal(context, open, override->value.what, override->value.span);
          builder.set_unknown(open, override->key_span, override->value.span);
          begin = end + 1;
          continue;
        }
        const std::string path = dotted_path(override->path), value = to_text(to_value(override->value));
        if (const auto [earlier, is_new] = said.emplace(path, value); !is_new && earlier->second != value) {
          context.sink.problem("EX007",
                               fmt::format("`{}` stands twice: `{}` before, `{}` here; the last one holds",
                                           path, earlier->second, value),
                               override->key_span);
          earlier->second = value;
        }
        builder.set(path, override->key_span, override->value);
      }
    }
    begin = end + 1;
  }
  if (!good) return std::nullopt;
  std::vector<Layer> layers = with_frontend(builder, context.file, "bridge");
  layers.insert(layers.end() - 1, std::make_move_iterator(earlier_layers.begin()),
                std::make_move_iterator(earlier_layers.end()));
  return layers;
}

}  // namespace capstan
