// The compressed tables of tests/conformance, unpacked into a folder of one's own that goes away with this.
// Needs xz-utils. Throws std::runtime_error when a table cannot be unpacked.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

namespace capstan {

/// The verdicts that there are, each as `verdicts-NAME.jsonl`.
inline constexpr const char* kConformanceTables[] = {
    "bridge-0.2.1", "bridge-0.3.0", "bridge-0.4.0", "bridge-0.5.0", "bridge-0.6.0",
    "bridge-head",  "core-0.14.0",  "core-0.15.0",  "core-0.16.0",  "core-0.17.0",
    "core-0.18.0",  "core-0.19.0",  "core-head"};

class ConformanceTables {
 public:
  ConformanceTables() {
    std::string pattern = (std::filesystem::temp_directory_path() / "capstan-tables-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
    folder_ = pattern;
  }
  ~ConformanceTables() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  ConformanceTables(const ConformanceTables&) = delete;
  ConformanceTables& operator=(const ConformanceTables&) = delete;

  /// Path of the plain table ("cases-scope.jsonl"); unpacked on first use.
  std::string path_of(const std::string& name) const {
    const std::string plain = (folder_ / name).string();
    if (std::filesystem::exists(plain)) return plain;
    const std::string packed = std::string(CAPSTAN_SOURCE_DIR) + "/tests/conformance/" + name + ".xz";
    if (std::system(("xz -dc '" + packed + "' > '" + plain + "'").c_str()) != 0)
      throw std::runtime_error("cannot unpack " + name + " (needs xz-utils)");
    return plain;
  }

 private:
  std::filesystem::path folder_;
};

}  // namespace capstan
