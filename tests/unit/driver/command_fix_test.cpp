// `capstan fix` over several files, one of which cannot be written.
#include "compiler/driver/command_fix.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "compiler/driver/program.h"

namespace capstan {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFixable = R"([target]
stack = "bridge-0.4"
[model]
num_layers = 4
hidden_size = 256
num_attention_heads = 4
cuda_graph_impl = "transformer_engine"
cuda_graph_warmup_steps = 0
use_te_rng_tracker = true
[rng]
te_rng_tracker = true
)";

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

class FixCommand : public testing::Test {
 protected:
  FixCommand() {
    std::string pattern = (fs::temp_directory_path() / "capstan-fix-XXXXXX").string();
    if (mkdtemp(pattern.data()) != nullptr) folder_ = pattern;
  }
  ~FixCommand() override {
    std::error_code ignored;
    if (!folder_.empty()) fs::remove_all(folder_, ignored);
  }
  fs::path write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return folder_ / name;
  }
  fs::path folder_;
};

TEST_F(FixCommand, AFailedWriteHidesNoOtherFile) {
  const fs::path first = write("a.toml", kFixable);
  // No temporary file fits beside a name of this length.
  const fs::path stuck = write(std::string(248, 'b') + ".toml", kFixable);
  const fs::path last = write("c.toml", kFixable);
  const std::string names[] = {first.string(), stuck.string(), last.string()};
  const char* arguments[] = {"capstan",        "fix",           "--unsafe", names[0].c_str(),
                             names[1].c_str(), names[2].c_str()};
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  EXPECT_EQ(run_program(6, arguments, {add_fix_command}), kExitUsage);
  const std::string out = testing::internal::GetCapturedStdout();
  const std::string error = testing::internal::GetCapturedStderr();
  EXPECT_NE(out.find(names[0]), std::string::npos) << out;
  EXPECT_EQ(out.find(names[1]), std::string::npos) << out;
  EXPECT_NE(out.find(names[2]), std::string::npos) << out;
  EXPECT_NE(error.find("cannot write `" + names[1] + "`: "), std::string::npos) << error;
  EXPECT_NE(read(first), kFixable);
  EXPECT_EQ(read(stuck), kFixable);
  EXPECT_EQ(read(last), read(first));
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(folder_)) ++files;
  EXPECT_EQ(files, 3u);  // no temporary file stays
}

}  // namespace
}  // namespace capstan
