// Writes rules/ as bytes that the program carries: `capstan_embed RULES_DIR OUTPUT_STEM` gives OUTPUT_STEM.S
// and, for each section of bytes, OUTPUT_STEM.NAME.bin. Fails, with places, on anything malformed in rules/.
#include <cstdio>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/diagnostics/sink.h"
#include "compiler/ruleset/load_folder.h"
#include "compiler/ruleset/resolve.h"
#include "compiler/ruleset/rule_archive.h"
#include "compiler/ruleset/rule_set_binary.h"
#include "compiler/schema/schema_binary.h"
#include "compiler/schema/schema_load.h"
#include "grammar/toml/toml_document.h"

namespace {

using namespace capstan;

/// Bytes between the symbols capstan_embedded_NAME and capstan_embedded_NAME_end.
struct Section {
  std::string name;
  std::string bytes;
};

bool write_file(const std::string& path, const std::string& bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.close();
  if (!out) std::fprintf(stderr, "capstan_embed: cannot write %s\n", path.c_str());
  return static_cast<bool>(out);
}

bool write_sections(const std::vector<Section>& sections, const std::string& stem) {
  std::string assembly = ".section .rodata\n";
  for (const Section& section : sections) {
    const std::string path = stem + '.' + section.name + ".bin";
    if (!write_file(path, section.bytes)) return false;
    const std::string symbol = "capstan_embedded_" + section.name;
    assembly += ".balign 16\n.global " + symbol + "\n.global " + symbol + "_end\n" + symbol +
                ":\n.incbin \"" + path + "\"\n" + symbol + "_end:\n.byte 0\n";
  }
  assembly += ".section .note.GNU-stack,\"\",%progbits\n";
  return write_file(stem + ".S", assembly);
}

void print_problems(const Sink& sink, const SourceMap& sources) {
  for (const Diagnostic& diagnostic : sink.diagnostics()) {
    std::string place;
    if (!diagnostic.labels.empty()) {
      const Span span = diagnostic.labels.front().span;
      const LineColumn at = sources[span.source].locate(span.begin);
      place = sources[span.source].name() + ':' + std::to_string(at.line) + ':' + std::to_string(at.column) +
              ": ";
    }
    std::fprintf(stderr, "%s%s: %s [%s]\n", place.c_str(), severity_name(diagnostic.severity),
                 diagnostic.message.c_str(), diagnostic.code.c_str());
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: capstan_embed RULES_DIR OUTPUT_STEM\n", stderr);
    return 2;
  }
  const std::string rules = argv[1];
  SourceMap sources;
  Sink sink;
  std::vector<Section> sections;

  const Schema schema = load_schema(read_schema_folder(rules, sink), sources, sink);
  sections.push_back({"schema", encode_schema(schema)});

  // Parsed on first use only: most runs read TOML and need no flags.
  ReadFailure failure;
  std::optional<std::string> flags = read_text_file(rules + "/flags.toml", failure);
  SyntaxProblem problem;
  if (!flags) {
    std::fprintf(stderr, "capstan_embed: cannot read %s/flags.toml: %s\n", rules.c_str(),
                 failure.reason.c_str());
    return 1;
  }
  const SourceId flags_source = sources.add("flags.toml", *flags, SourceKind::file);
  if (!parse_toml(flags_source, sources, problem)) sink.problem("RU001", problem.message, problem.where);
  sections.push_back({"flags", std::move(*flags)});
  const std::vector<std::string> phases = load_phases(rules + "/phases.toml", sources, sink);
  const std::vector<RuleFile> files = load_rule_files(rules, "rules/", sources, sink);
  const TextPairs documents = load_rule_documents(rules, "rules/", files, sink);
  // Resolved here too, so that a rule that does not fit the keys fails the build with its place.
  if (!sink.has_errors())
    sections.push_back({"rule_set", encode_rule_set(resolve(files, phases, schema, sink))});
  TextPairs phase_names;
  for (const std::string& phase : phases) phase_names.emplace_back(phase, "");
  sections.push_back({"rules", encode_rule_archive(files)});
  sections.push_back({"documents", encode_text_pairs(documents)});
  sections.push_back({"phases", encode_text_pairs(phase_names)});

  print_problems(sink, sources);
  if (sink.has_errors()) return 1;
  return write_sections(sections, argv[2]) ? 0 : 1;
}
