#include <gtest/gtest.h>

#include <string>

#include "grammar/arguments/launcher_words.h"
#include "grammar/arguments/megatron_arguments.h"

namespace capstan {
namespace {

ArgumentList read_launch(std::string text) {
  SourceMap sources;
  const SourceId id = sources.add("run.sh", std::move(text), SourceKind::file);
  std::vector<SyntaxProblem> problems;
  auto list = parse_megatron_arguments(id, sources, problems);
  EXPECT_TRUE(problems.empty());
  return list.value_or(ArgumentList{});
}

/// "NAME=value;" of what is known, "NAME?;" of the rest.
std::string variables(const std::string& text) {
  const ArgumentList list = read_launch(text);
  std::string out;
  for (const EnvironmentVariable& variable : list.variables)
    out += variable.name + "=" + variable.value + ";";
  for (const EnvironmentVariable& variable : list.open_variables) out += variable.name + "?;";
  return out;
}

std::string shape(const std::string& text) {
  const LauncherShape shape = launcher_shape(read_launch(text).launcher);
  const auto number = [](const std::optional<LauncherCount>& count) {
    return count ? std::to_string(count->count) : std::string("-");
  };
  return number(shape.nodes) + " " + number(shape.ranks_per_node) + " " + number(shape.ranks) +
         (shape.one_rank_per_task ? " task" : "");
}

TEST(LauncherWords, PassVariables) {
  EXPECT_EQ(variables("env NCCL_ALGO=Ring A_1=x torchrun train.py --x 1"), "NCCL_ALGO=Ring;A_1=x;");
  EXPECT_EQ(variables("srun --export=ALL,NCCL_ALGO=Ring,B=2 python train.py --x 1"), "NCCL_ALGO=Ring;B=2;");
  EXPECT_EQ(variables("srun --export ALL,B=2 python train.py --x 1"), "B=2;");
  EXPECT_EQ(variables("mpirun -np 8 -x NCCL_ALGO=Ring python train.py --x 1"), "NCCL_ALGO=Ring;");
  EXPECT_EQ(variables("apptainer exec --env NCCL_ALGO=Ring i.sif python train.py --x 1"), "NCCL_ALGO=Ring;");
  EXPECT_EQ(variables("apptainer exec --env=NCCL_ALGO=Ring i.sif python train.py --x 1"), "NCCL_ALGO=Ring;");
  EXPECT_EQ(variables("env NCCL_ALGO=$CHOICE python train.py --x 1"), "NCCL_ALGO?;");
}

TEST(LauncherWords, VariablesOfTheProgramAreItsOwn) {
  EXPECT_EQ(variables("python train.py A=1 --x B=2"), "");
  EXPECT_EQ(variables("torchrun --x.y=1 main.py --x 1"), "");
}

TEST(LauncherWords, PassVariablesInJson) {
  EXPECT_EQ(
      variables("ray job submit --runtime-env-json='{\"env_vars\": {\"NCCL_ALGO\": \"Ring\", \"N\" : 3}}' -- "
                "python3 train.py --x 1"),
      "NCCL_ALGO=Ring;N?;");
  EXPECT_EQ(
      variables("J=\"{\\\"env_vars\\\": {\\\"NCCL_ALGO\\\": \\\"Ring\\\", \\\"B\\\": \\\"$HERE\\\"}}\"\n"
                "ray job submit --runtime-env-json=\"$J\" -- python3 train.py --x 1"),
      "NCCL_ALGO?;B?;");
  EXPECT_EQ(variables("ray job submit --runtime-env-json='{\"A\":' -- python3 train.py --x 1"), "");
  EXPECT_EQ(variables("ray job submit --runtime-env-json='{\"A\": \"b' -- python3 train.py --x 1"), "A=b;");
}

TEST(LauncherWords, TorchrunStartsOnOneNodeUnlessItSaysMore) {
  EXPECT_EQ(shape("torchrun --nproc_per_node 8 train.py --x 1"), "1 8 -");
  EXPECT_EQ(shape("torchrun --nproc-per-node=8 --nnodes=4 train.py --x 1"), "4 8 -");
  EXPECT_EQ(shape("python -m torch.distributed.run --nproc_per_node 8 train.py --x 1"), "1 8 -");
  EXPECT_EQ(shape("torchrun --nproc_per_node 8 --nnodes 1:4 train.py --x 1"), "- 8 -");
  EXPECT_EQ(shape("torchrun --nproc_per_node 8 --nnodes $N train.py --x 1"), "- 8 -");
  EXPECT_EQ(shape("torchrun --nproc_per_node 8 $MORE train.py --x 1"), "- 8 -");
  EXPECT_EQ(shape("torchrun --nproc_per_node gpu train.py --x 1"), "- - -");
  EXPECT_EQ(shape("srun -N 2 torchrun --nproc_per_node 8 --nnodes 4 train.py --x 1"), "4 8 -");
}

TEST(LauncherWords, SlurmStartsOneRankPerTask) {
  EXPECT_EQ(shape("srun -N 2 --ntasks-per-node=4 python train.py --x 1"), "2 4 -");
  EXPECT_EQ(shape("srun -N2 -n16 python train.py --x 1"), "2 - 16");
  EXPECT_EQ(shape("srun --nodes=2-4 python train.py --x 1"), "- - - task");
  EXPECT_EQ(shape("srun python train.py --x 1"), "- - - task");
  EXPECT_EQ(shape("srun $OPTIONS python train.py --x 1"), "- - -");
  EXPECT_EQ(shape("mpirun -np 16 python train.py --x 1"), "- - 16");
  EXPECT_EQ(shape("python train.py --x 1"), "- - -");
}

TEST(LauncherWords, ScriptsOfAShellAreReadWhateverItsOptions) {
  for (const char* options :
       {"-c", "-lc", "-x -c", "-l -c", "-euo pipefail -c", "--login -c", "+e -c", "-o pipefail -xc"}) {
    const ArgumentList list = read_launch(std::string("srun bash ") + options + " 'torchrun train.py --x 1'");
    ASSERT_EQ(list.arguments.size(), 1U) << options;
    EXPECT_EQ(list.arguments[0].flag, "--x");
  }
}

TEST(LauncherWords, FindTheProgramBehindAProfilerThatOnlyAShellKnows) {
  const ArgumentList list =
      read_launch("if a; then P='nsys profile -o x'; fi\n$P torchrun --nnodes 2 $SCRIPT --x 1\n");
  ASSERT_EQ(list.arguments.size(), 1U);
  EXPECT_EQ(list.arguments[0].flag, "--x");
}

}  // namespace
}  // namespace capstan
