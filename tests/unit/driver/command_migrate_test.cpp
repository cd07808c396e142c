// `capstan migrate`: its JSON against docs/migrate.schema.json, and what happens to files on the disk.
#include "compiler/driver/command_migrate.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "compiler/driver/program.h"
#include "tests/support/json_schema_check.h"
#include "tests/support/temporary_folder.h"

namespace capstan {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOld = R"([target]
stack = "bridge-0.4"
[model]
num_layers = 4
cuda_graph_impl = "local"
cuda_graph_scope = ["full_iteration", "full_iteration_inference"]
bias_dropout_add_fusion = false
)";

class MigrateCommand : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) const {
    testing_support::write_whole(folder_.file(name), text);
    return folder_.file(name);
  }
  int run(std::vector<std::string> words) {
    words.insert(words.begin(), {"capstan", "migrate"});
    std::vector<const char*> arguments;
    for (const std::string& word : words) arguments.push_back(word.c_str());
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const int code = run_program(static_cast<int>(arguments.size()), arguments.data(), {add_migrate_command});
    out_ = testing::internal::GetCapturedStdout();
    error_ = testing::internal::GetCapturedStderr();
    return code;
  }
  std::size_t files() const {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& entry : fs::directory_iterator(folder_.path())) ++count;
    return count;
  }
  testing_support::Folder folder_;
  std::string out_, error_;
};

TEST_F(MigrateCommand, JsonConformsToItsSchema) {
  const std::string old = write("a.toml", kOld);
  const std::string broken = write("b.toml", "[model\n");
  const std::string script =
      write("run.sh",
            "torchrun pretrain_gpt.py --num-layers 4 --hidden-size 64 "
            "--num-attention-heads 4 --cuda-graph-impl local --cuda-graph-scope attn\n");
  EXPECT_EQ(run({"--to", "bridge-0.6", "--format", "json", old, broken, script}), kExitFindings);
  std::ifstream schema(CAPSTAN_SOURCE_DIR "/docs/migrate.schema.json");
  testing_support::JsonSchemaCheck check(nlohmann::json::parse(schema));
  const nlohmann::json out = nlohmann::json::parse(out_);
  EXPECT_EQ(check.check(out), std::vector<std::string>());
  ASSERT_EQ(out["files"].size(), 2u);
  const nlohmann::json& file = out["files"][0];
  EXPECT_EQ(file["from"], "bridge-0.4");
  EXPECT_FALSE(file["complete"]);
  EXPECT_FALSE(file["written"]);
  EXPECT_EQ(file["lost"].size(), 2u);  // the graphs of inference, and a key that went away
  EXPECT_EQ(file["changed"][0]["file"], old);
  EXPECT_FALSE(out["files"][1]["by_hand"].empty());
  EXPECT_EQ(out["unreadable"][0]["file"], broken);
  EXPECT_EQ(out["unreadable"][0]["problems"][0]["code"], "SY001");
  // The checker itself must be able to say no.
  nlohmann::json wrong = out;
  wrong["files"][0]["steps"][0]["changes"][0]["kind"] = "guess";
  wrong["extra"] = 1;
  EXPECT_EQ(check.check(wrong).size(), 2u);
  EXPECT_EQ(testing_support::read_whole(old), kOld);
}

TEST_F(MigrateCommand, WritingKeepsPermissionsAndLinks) {
  const std::string file = write("a.toml", kOld);
  ASSERT_EQ(::chmod(file.c_str(), 0640), 0);
  const std::string link = folder_.file("link.toml");
  fs::create_symlink("a.toml", link);
  EXPECT_EQ(run({"--to", "bridge-0.6", "--write", link}), kExitFindings);
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_NE(testing_support::read_whole(file).find("cuda_graph_impl = \"full_iteration\""),
            std::string::npos);
  struct stat status {};
  ASSERT_EQ(::stat(file.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0640u);
  EXPECT_EQ(files(), 2u);
}

TEST_F(MigrateCommand, AFileThatSeveralExtendIsMigratedForAllOfThem) {
  const std::string base = write("base.toml", "[model]\ncuda_graph_scope = [\"attn\"]  # one\n");
  const std::string extending = "extends = [\"base.toml\"]\n[target]\nstack = \"bridge-0.4\"\n";
  const std::string one =
      write("one.toml", extending + "[model]\ncuda_graph_impl = \"transformer_engine\"\n");
  const std::string two = write("two.toml", extending);
  run({"--to", "bridge-0.6", "--write", one, two});
  EXPECT_EQ(testing_support::read_whole(base), "[model]\ncuda_graph_modules = [\"attn\"]  # one\n");
  EXPECT_NE(testing_support::read_whole(one).find("stack = \"bridge-0.6\""), std::string::npos);
  EXPECT_NE(testing_support::read_whole(two).find("stack = \"bridge-0.6\""), std::string::npos);
}

TEST_F(MigrateCommand, NothingIsWrittenWhereTwoFilesNeedDifferentTextsOfOneTheyExtend) {
  const std::string text = "[model]\ncuda_graph_scope = [\"full_iteration\"]\n";
  const std::string base = write("base.toml", text);
  const std::string extending = "extends = [\"base.toml\"]\n[target]\nstack = \"bridge-0.4\"\n";
  const std::string one = write("one.toml", extending + "[model]\ncuda_graph_impl = \"local\"\n");
  const std::string two =
      write("two.toml", extending + "[model]\ncuda_graph_impl = \"transformer_engine\"\n");
  EXPECT_EQ(run({"--to", "bridge-0.6", "--write", one, two}), kExitUsage);
  EXPECT_NE(error_.find("base.toml"), std::string::npos) << error_;
  EXPECT_EQ(testing_support::read_whole(base), text);
  EXPECT_EQ(testing_support::read_whole(two).find("bridge-0.6"), std::string::npos);
}

TEST_F(MigrateCommand, AnOutputHoldsOneTextAndIsNoInput) {
  const std::string base = write("base.toml", "[model]\ncuda_graph_scope = [\"attn\"]\n");
  const std::string file = write("a.toml", "extends = [\"base.toml\"]\n[target]\nstack = \"bridge-0.4\"\n");
  const std::string output = folder_.file("out.toml");
  EXPECT_EQ(run({"--to", "bridge-0.6", "--output", output, file}), kExitUsage);
  EXPECT_FALSE(fs::exists(output));
  const std::string alone = write("alone.toml", kOld);
  EXPECT_EQ(run({"--to", "bridge-0.6", "--output", alone, alone}), kExitUsage);
  EXPECT_EQ(testing_support::read_whole(alone), kOld);
  EXPECT_EQ(run({"--to", "bridge-0.6", "--output", output, alone}), kExitFindings);
  EXPECT_NE(testing_support::read_whole(output).find("bridge-0.6"), std::string::npos);
  EXPECT_EQ(testing_support::read_whole(alone), kOld);
}

TEST_F(MigrateCommand, AFileThatCannotBeWrittenIsNamedAndStaysAsItWas) {
  // No temporary file fits beside a name of this length.
  const std::string stuck = write(std::string(248, 'b') + ".toml", kOld);
  EXPECT_EQ(run({"--to", "bridge-0.6", "--write", stuck}), kExitUsage);
  EXPECT_NE(error_.find("cannot write `" + stuck + "`: "), std::string::npos) << error_;
  EXPECT_EQ(testing_support::read_whole(stuck), kOld);
  EXPECT_EQ(files(), 1u);
}

}  // namespace
}  // namespace capstan
