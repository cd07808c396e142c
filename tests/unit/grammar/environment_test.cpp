#include <gtest/gtest.h>

#include <string>

#include "grammar/environment/allocator_conf.h"
#include "grammar/environment/env_file.h"
#include "grammar/environment/sbatch.h"
#include "grammar/environment/shell_script.h"

namespace capstan {
namespace {

/// "name=value@begin-end;" of each variable, then "!begin-end message" of each problem.
std::string env_shown(std::string text) {
  SourceMap sources;
  const SourceId id = sources.add("job.env", std::move(text), SourceKind::file);
  std::vector<SyntaxProblem> problems;
  std::string out;
  for (const EnvironmentVariable& variable : parse_env_file(id, sources, problems)) {
    out += variable.name + "=" + variable.value + "@" + std::to_string(variable.value_span.begin) + "-" +
           std::to_string(variable.value_span.end) + ";";
  }
  for (const SyntaxProblem& problem : problems) {
    out += "!" + std::to_string(problem.where.begin) + "-" + std::to_string(problem.where.end) + " " +
           problem.message;
  }
  return out;
}

TEST(EnvFile, ReadsLinesExportsAndQuotes) {
  EXPECT_EQ(env_shown("# c\nA=1\nexport B=two # x\nC='a b'\nD=\"x\\\"y\"\n\nE=\n"),
            "A=1@6-7;B=two@17-20;C=a b@27-32;D=x\"y@35-41;E=@45-45;");
  EXPECT_EQ(env_shown("A=1\r\nB=2\r\n"), "A=1@2-3;B=2@7-8;");
  EXPECT_EQ(env_shown("\xEF\xBB\xBF"
                      "A=1\n"),
            "A=1@5-6;");
  EXPECT_EQ(env_shown("A=a#b C=d"), "A=a#b@2-5;C=d@8-9;");
}

TEST(EnvFile, ReportsWhatIsNoLiteralOrNoAssignment) {
  EXPECT_EQ(env_shown("A=$HOME/x\nB=1\n"),
            "B=1@12-13;!2-9 the value of `A` is no literal; write the value itself");
  EXPECT_EQ(env_shown("hello\nB=1\n"), "B=1@8-9;!0-5 `hello` is no `NAME=VALUE`");
  EXPECT_EQ(env_shown("A=$(date)"), "!2-9 the value of `A` is no literal; write the value itself");
  EXPECT_EQ(env_shown("A='x"), "A=@2-4;!2-3 the quote is not closed");
}

std::string allocator_shown(std::string_view text) {
  std::vector<SyntaxProblem> problems;
  std::string out;
  const Span where{0, 100, 100 + static_cast<std::uint32_t>(text.size())};
  for (const AllocatorOption& option : parse_allocator_conf(text, where, problems)) {
    out += option.name + "=" + to_text(option.value) + "@" + std::to_string(option.value_span.begin - 100) +
           "-" + std::to_string(option.value_span.end - 100) + ";";
  }
  for (const SyntaxProblem& problem : problems) {
    out += "!" + std::to_string(problem.where.begin - 100) + "-" + std::to_string(problem.where.end - 100) +
           " " + problem.message;
  }
  return out;
}

TEST(AllocatorConf, ReadsOptionsWithPlaces) {
  EXPECT_EQ(allocator_shown(""), "");
  EXPECT_EQ(allocator_shown("expandable_segments:True"), "expandable_segments=true@20-24;");
  EXPECT_EQ(allocator_shown("max_split_size_mb:128, garbage_collection_threshold:0.8"),
            "max_split_size_mb=128@18-21;garbage_collection_threshold=0.8@52-55;");
  EXPECT_EQ(allocator_shown("roundup_power2_divisions:[256:1,>:4],backend:native"),
            "roundup_power2_divisions=[\"256:1\", \">:4\"]@25-36;backend=\"native\"@45-51;");
  // A trailing comma ends the list, as in PyTorch's loop.
  EXPECT_EQ(allocator_shown("expandable_segments:False,"), "expandable_segments=false@20-25;");
}

TEST(AllocatorConf, ReportsWhatPyTorchRefuses) {
  EXPECT_EQ(allocator_shown("expandable_segment:True"),
            "!0-18 `expandable_segment` is no option of the allocator; PyTorch stops here");
  EXPECT_EQ(allocator_shown("expandable_segments:true"),
            "!20-24 `expandable_segments` takes `True` or `False`, not `true`");
  EXPECT_EQ(allocator_shown("expandable_segments"), "!19-19 expected `:`, found the end");
  EXPECT_EQ(allocator_shown("expandable_segments:"),
            "!20-20 `expandable_segments` needs a value, found the end");
  EXPECT_EQ(allocator_shown("max_split_size_mb:20"), "!18-20 `max_split_size_mb` must be greater than 20");
  EXPECT_EQ(allocator_shown("max_split_size_mb:64 expandable_segments:True"),
            "!18-40 `max_split_size_mb` takes a whole number, not `64expandable_segments`");
  EXPECT_EQ(allocator_shown("backend:native:x"), "backend=\"native\"@8-14;!14-15 expected `,`, found `:`");
  EXPECT_EQ(allocator_shown("roundup_power2_divisions:3"), "!25-26 `3` is no power of two");
  EXPECT_EQ(allocator_shown("roundup_power2_divisions:[256:1"), "!31-31 expected `,`, found the end");
  EXPECT_EQ(allocator_shown("garbage_collection_threshold:1.0"),
            "!29-32 `garbage_collection_threshold` takes a number between 0 and 1, not `1.0`");
}

struct Batch {
  SourceMap sources;
  std::vector<SyntaxProblem> problems;
  SbatchScript script;
  explicit Batch(std::string text) {
    const SourceId id = sources.add("job.sh", std::move(text), SourceKind::file);
    script = parse_sbatch(id, sources, problems);
  }
  std::string text(Span span) const { return std::string(sources.text(span)); }
};

TEST(Sbatch, ReadsTheShapeOfTheJob) {
  const Batch batch(
      "#!/bin/bash\n#SBATCH --nodes=4 --ntasks-per-node 8\n#SBATCH --gres=gpu:h100:8,nvme:1 # all\n#SBATCH "
      "-p \"long queue\"\n"
      "export NCCL_ALGO=Ring\nexport HOMEDIR=$HOME\nLOCAL=1\nif true; then\n export X=1\nfi\nsrun train\n");
  EXPECT_TRUE(batch.problems.empty());
  ASSERT_TRUE(batch.script.nodes);
  EXPECT_EQ(batch.script.nodes->count, 4);
  EXPECT_EQ(batch.text(batch.script.nodes->key), "--nodes");
  EXPECT_EQ(batch.text(batch.script.nodes->value), "4");
  EXPECT_EQ(batch.script.tasks_per_node->count, 8);
  EXPECT_EQ(batch.text(batch.script.tasks_per_node->value), "8");
  EXPECT_EQ(batch.script.gpus_per_node->count, 8);
  EXPECT_EQ(batch.script.gpu, "h100");
  EXPECT_EQ(batch.script.options.back().name, "partition");
  EXPECT_EQ(batch.script.options.back().value, "long queue");
  ASSERT_EQ(batch.script.variables.size(), 1u);
  EXPECT_EQ(batch.script.variables[0].name, "NCCL_ALGO");
  EXPECT_EQ(batch.text(batch.script.variables[0].value_span), "Ring");
}

TEST(Sbatch, ReadsOtherSpellings) {
  EXPECT_EQ(Batch("#SBATCH -N2\n").script.nodes->count, 2);
  EXPECT_EQ(Batch("#SBATCH -N 2-4\n").script.nodes->count, 2);
  EXPECT_EQ(Batch("#SBATCH --gpus-per-node=a100:4\n").script.gpus_per_node->count, 4);
  EXPECT_EQ(Batch("#SBATCH --gpus-per-node=a100:4\n").script.gpu, "a100");
  EXPECT_EQ(Batch("#SBATCH --gres=gpu\n").script.gpus_per_node->count, 1);
  EXPECT_EQ(Batch("#SBATCH --ntasks-per-node=4\n#SBATCH --gpus-per-task=2\n").script.gpus_per_node->count, 8);
  EXPECT_FALSE(Batch("##SBATCH --nodes=4\n").script.nodes);
}

TEST(Sbatch, ReportsWhatSbatchIgnoresOrRefuses) {
  const Batch late("echo x\n#SBATCH --nodes=4\n");
  ASSERT_EQ(late.problems.size(), 1u);
  EXPECT_EQ(late.problems[0].where, (Span{0, 7, 24}));
  const Batch wrong("#SBATCH --nodes=many\n");
  ASSERT_EQ(wrong.problems.size(), 1u);
  EXPECT_EQ(wrong.problems[0].message, "`many` is no count that `nodes` takes");
  EXPECT_EQ(wrong.text(wrong.problems[0].where), "many");
}

std::string words(std::string text) {
  SourceMap sources;
  const SourceId id = sources.add("run.sh", std::move(text), SourceKind::file);
  std::vector<SyntaxProblem> problems;
  std::string out;
  for (const ShellCommand& command : parse_shell(id, sources, problems).commands) {
    if (command.conditional) out += "?";
    for (const ShellAssignment& assignment : command.assignments) {
      out += "{" + assignment.name + (assignment.append ? "+=" : "=");
      if (assignment.is_array) {
        out += "(";
        for (const ShellWord& item : assignment.items) out += item.text() + " ";
        out += ")";
      } else {
        out += assignment.value.text();
      }
      out += "}";
    }
    for (const ShellWord& word : command.words) out += "<" + word.text() + ">";
    out += "\n";
  }
  for (const SyntaxProblem& problem : problems)
    out += "!" + std::to_string(problem.where.begin) + " " + problem.message;
  return out;
}

TEST(ShellScript, ReadsCommandsWithContinuationsAndQuotes) {
  EXPECT_EQ(words("torchrun --nproc 8 \\\n  train.py --lr 1e-4 # c\n"),
            "<torchrun><--nproc><8><train.py><--lr><1e-4>\n");
  EXPECT_EQ(words("a 'b c' \"d $X\" e\\ f; g && h\n"), "<a><b c><d $X><e f>\n<g>\n?<h>\n");
  EXPECT_EQ(words("a > out.txt 2>&1 b < in &\nc | d"), "<a><b>\n<c>\n<d>\n");
}

TEST(ShellScript, ReadsAssignmentsAndArrays) {
  EXPECT_EQ(
      words("X=1 Y=\"a b\"\nARGS=(\n  --tp 8 # c\n  --pp $PP\n)\nARGS+=(--x)\nrun ${ARGS[@]} \"${X}\"\n"),
      "{X=1}{Y=a b}\n{ARGS=(--tp 8 --pp $PP )}\n{ARGS+=(--x )}\n<run><${ARGS[@]}><$X>\n");
  EXPECT_EQ(words("X=${Y:-8}\nZ=$(nproc)\n"), "{X=${Y:-8}}\n{Z=$(nproc)}\n");
}

TEST(ShellScript, MarksConditionalCommands) {
  EXPECT_EQ(words("if [ $X = 1 ]; then\n  Y=2\nelse\n  Y=3\nfi\nY=4\nfor i in 1 2; do\n  a $i\ndone\nb"),
            "?<[><$X><=><1><]>\n?{Y=2}\n?{Y=3}\n{Y=4}\n?{i=}\n?<a><$i>\n<b>\n");
}

TEST(ShellScript, PassesHereDocuments) {
  EXPECT_EQ(words("cat <<EOF > x\n'unclosed $(\nEOF\nb\n"), "<cat>\n<b>\n");
  EXPECT_EQ(words("cat <<EOF\nnever"), "<cat>\n!6 the here-document has no closing `EOF`");
}

TEST(ShellScript, ReportsUnclosedThingsAtTheirOpening) {
  EXPECT_EQ(words("a \"b"), "<a><b>\n!2 the quote is not closed");
  EXPECT_EQ(words("a 'b"), "<a><>\n!2 the quote is not closed");
  EXPECT_EQ(words("A=(1 2"), "{A=(1 2 )}\n!2 the array is not closed");
  EXPECT_EQ(words("a $(b"), "<a><$(b>\n!3 the parenthesis is not closed");
  EXPECT_EQ(words("a ${b"), "<a><${b>\n!2 the expansion is not closed");
}

}  // namespace
}  // namespace capstan
