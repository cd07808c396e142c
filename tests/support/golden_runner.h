// Runs golden files: Markdown whose `##` sections are tests. In a section, a fenced block with a file name
// behind its language
// (```toml base.toml) is a file; a ```console block holds commands (`$ ...`), each followed by what it prints
// (standard output and error together) and, unless it exits with 0, a line `[exit N]`. Files before the first
// section belong to every section. Each section runs twice, in fresh folders, with equal results.
// UPDATE_GOLDEN=1 rewrites the expectations. In expectations, {version}, {dir} and {source} stand for
// Capstan's version, the section's folder and the source tree.
#pragma once

#include <string>
#include <vector>

namespace capstan::test {

struct GoldenSection {
  std::string file;   ///< path of the Markdown file
  std::string title;  ///< of the section
  std::string name;   ///< letters, digits and underscores: file stem and title
};

/// All sections below `folder`, sorted by file, in the order of each file.
std::vector<GoldenSection> find_golden_sections(const std::string& folder);

/// Empty if the section's output is as expected; else what differs. Throws on malformed golden files.
std::string run_golden_section(const GoldenSection& section);

}  // namespace capstan::test
