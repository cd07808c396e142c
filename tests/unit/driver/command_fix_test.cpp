// `capstan fix` over several files, one of which cannot be written.
#include "compiler/driver/command_fix.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "compiler/driver/program.h"
#include "tests/support/temporary_folder.h"

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

class FixCommand : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) const {
    testing_support::write_whole(folder_.file(name), text);
    return folder_.file(name);
  }
  testing_support::Folder folder_;
};

TEST_F(FixCommand, AFailedWriteHidesNoOtherFile) {
  const std::string first = write("a.toml", kFixable);
  // No temporary file fits beside a name of this length.
  const std::string stuck = write(std::string(248, 'b') + ".toml", kFixable);
  const std::string last = write("c.toml", kFixable);
  const std::string names[] = {first, stuck, last};
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
  EXPECT_NE(testing_support::read_whole(first), kFixable);
  EXPECT_EQ(testing_support::read_whole(stuck), kFixable);
  EXPECT_EQ(testing_support::read_whole(last), testing_support::read_whole(first));
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(folder_.path())) ++files;
  EXPECT_EQ(files, 3u);  // no temporary file stays
}

}  // namespace
}  // namespace capstan
