#include "tests/support/golden_runner.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>

namespace capstan::test {
namespace {

namespace fs = std::filesystem;

/// A fenced block: lines (first, last) exclusive of the fences, 0-based.
struct Block {
  std::string language, file;
  std::size_t begin = 0, end = 0;
};

struct Document {
  std::vector<std::string> lines;
  /// Blocks by section; index 0 holds those before the first section.
  std::vector<std::pair<std::string, std::vector<Block>>> sections;
};

Document read_document(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path);
  Document document;
  for (std::string line; std::getline(in, line);) document.lines.push_back(line);
  document.sections.emplace_back();
  for (std::size_t at = 0; at < document.lines.size(); ++at) {
    const std::string& line = document.lines[at];
    if (line.starts_with("## ")) document.sections.emplace_back(line.substr(3), std::vector<Block>());
    const std::size_t ticks = std::min(line.find_first_not_of('`'), line.size());
    if (ticks < 3) continue;
    const std::string fence = line.substr(0, ticks);
    Block block;
    std::istringstream info(line.substr(ticks));
    info >> block.language >> block.file;
    block.begin = at + 1;
    block.end = block.begin;
    while (block.end < document.lines.size() && document.lines[block.end] != fence) ++block.end;
    if (block.end == document.lines.size()) {
      throw std::runtime_error(path + ":" + std::to_string(at + 1) + ": the fence does not end");
    }
    at = block.end;
    document.sections.back().second.push_back(block);
  }
  return document;
}

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  if (from.empty()) return;
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

/// Output and exit status of one shell command, standard error included.
std::string run_command(const std::string& command, const fs::path& folder, int& status) {
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("no pipe");
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("no fork");
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    if (chdir(folder.c_str()) != 0) _exit(126);
    const char* old_path = std::getenv("PATH");
    setenv("PATH", (std::string(CAPSTAN_BIN_DIR) + ":" + (old_path == nullptr ? "" : old_path)).c_str(), 1);
    setenv("LC_ALL", "C.UTF-8", 1);
    setenv("TZ", "UTC", 1);
    setenv("CAPSTAN_SOURCE_DIR", CAPSTAN_SOURCE_DIR, 1);
    execlp("timeout", "timeout", "120", "sh", "-c", command.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  close(ends[1]);
  std::string output;
  char buffer[4096];
  for (ssize_t count; (count = read(ends[0], buffer, sizeof buffer)) > 0;) {
    output.append(buffer, static_cast<std::size_t>(count));
  }
  close(ends[0]);
  int raw = 0;
  waitpid(child, &raw, 0);
  status = WIFEXITED(raw) ? WEXITSTATUS(raw) : 128 + WTERMSIG(raw);
  return output;
}

/// The console block as it comes out when its commands are run in `folder`.
std::vector<std::string> run_console(const Document& document, const Block& block, const fs::path& folder) {
  std::vector<std::string> result;
  for (std::size_t at = block.begin; at < block.end; ++at) {
    const std::string& line = document.lines[at];
    if (!line.starts_with("$ ")) continue;
    result.push_back(line);
    int status = 0;
    std::string output = run_command(line.substr(2), folder, status);
    replace_all(output, folder.string(), "{dir}");
    replace_all(output, CAPSTAN_SOURCE_DIR, "{source}");
    replace_all(output, CAPSTAN_VERSION, "{version}");
    if (!output.empty() && output.back() == '\n')
      output.pop_back();
    else if (!output.empty())
      output += "[no newline at the end]";
    if (!output.empty()) {
      std::istringstream lines(output);
      for (std::string text; std::getline(lines, text);) result.push_back(text);
    }
    if (status != 0) result.push_back("[exit " + std::to_string(status) + "]");
  }
  return result;
}

class ScratchFolder {
 public:
  ScratchFolder() {
    std::string pattern = (fs::temp_directory_path() / "capstan-golden-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = pattern;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

/// Results of all console blocks, in order.
std::vector<std::vector<std::string>> run_section(const Document& document, std::size_t section) {
  const ScratchFolder folder;
  std::vector<std::vector<std::string>> results;
  for (const std::size_t part : {std::size_t{0}, section}) {
    for (const Block& block : document.sections[part].second) {
      if (block.language == "console") {
        results.push_back(run_console(document, block, folder.path()));
      } else if (!block.file.empty()) {
        const fs::path path = folder.path() / block.file;
        fs::create_directories(path.parent_path());
        std::ofstream out(path, std::ios::binary);
        for (std::size_t at = block.begin; at < block.end; ++at) out << document.lines[at] << '\n';
      }
    }
  }
  return results;
}

std::string describe_difference(const std::vector<std::string>& expected,
                                const std::vector<std::string>& found) {
  std::size_t same = 0;
  while (same < expected.size() && same < found.size() && expected[same] == found[same]) ++same;
  std::string text = "line " + std::to_string(same + 1) + " of the console block differs\n";
  for (const std::string& line : expected) text += "  expected | " + line + "\n";
  for (const std::string& line : found) text += "  found    | " + line + "\n";
  return text;
}

std::string test_name(const std::string& stem, const std::string& title) {
  std::string name;
  for (const char c : stem + "_" + title) {
    if (std::isalnum(static_cast<unsigned char>(c)))
      name += c;
    else if (!name.empty() && name.back() != '_')
      name += '_';
  }
  while (!name.empty() && name.back() == '_') name.pop_back();
  return name;
}

}  // namespace

std::vector<GoldenSection> find_golden_sections(const std::string& folder) {
  std::vector<std::string> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == ".md" && entry.path().filename() != "README.md")
      files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  std::vector<GoldenSection> sections;
  std::map<std::string, int> names;
  for (const std::string& file : files) {
    const Document document = read_document(file);
    const fs::path relative = fs::path(file).lexically_relative(folder);
    const std::string stem = (relative.parent_path() / relative.stem()).string();
    for (std::size_t index = 1; index < document.sections.size(); ++index) {
      const std::vector<Block>& blocks = document.sections[index].second;
      const bool runs = std::any_of(blocks.begin(), blocks.end(),
                                    [](const Block& block) { return block.language == "console"; });
      if (!runs) continue;
      std::string name = test_name(stem, document.sections[index].first);
      if (const int count = ++names[name]; count > 1) name += "_" + std::to_string(count);
      sections.push_back({file, document.sections[index].first, name});
    }
  }
  return sections;
}

std::string run_golden_section(const GoldenSection& section) {
  Document document = read_document(section.file);
  const auto found = std::find_if(document.sections.begin() + 1, document.sections.end(),
                                  [&](const auto& candidate) { return candidate.first == section.title; });
  if (found == document.sections.end()) throw std::runtime_error("no section " + section.title);
  const auto index = static_cast<std::size_t>(found - document.sections.begin());
  const auto results = run_section(document, index);
  if (results != run_section(document, index)) return "two runs gave different output\n";

  std::vector<Block> consoles;
  for (const std::size_t part : {std::size_t{0}, index}) {
    for (const Block& block : document.sections[part].second) {
      if (block.language == "console") consoles.push_back(block);
    }
  }
  std::string problems;
  const char* update = std::getenv("UPDATE_GOLDEN");
  const bool rewrite = update != nullptr && std::string(update) == "1";
  for (std::size_t at = consoles.size(); at-- > 0;) {  // from the end, so that line numbers stay right
    const Block& block = consoles[at];
    const auto begin = document.lines.begin() + static_cast<std::ptrdiff_t>(block.begin);
    const auto end = document.lines.begin() + static_cast<std::ptrdiff_t>(block.end);
    const std::vector<std::string> expected(begin, end);
    if (expected == results[at]) continue;
    if (rewrite) {
      document.lines.insert(document.lines.erase(begin, end), results[at].begin(), results[at].end());
    } else {
      problems = describe_difference(expected, results[at]) + problems;
    }
  }
  if (rewrite) {
    std::ofstream out(section.file, std::ios::binary | std::ios::trunc);
    for (const std::string& line : document.lines) out << line << '\n';
  }
  return problems;
}

}  // namespace capstan::test
