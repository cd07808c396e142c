#include <gtest/gtest.h>

#include <string>

#include "grammar/arguments/megatron_arguments.h"

namespace capstan {
namespace {

/// "--flag=value,value;" with `?` behind values that are not literal, each value with its text in the source.
std::string arguments(std::string text) {
  SourceMap sources;
  const SourceId id = sources.add("run.sh", std::move(text), SourceKind::file);
  std::vector<SyntaxProblem> problems;
  const auto list = parse_megatron_arguments(id, sources, problems);
  std::string out;
  if (list) {
    for (const Argument& argument : list->arguments) {
      out += argument.flag + (argument.conditional ? "~" : "");
      for (const ArgumentValue& value : argument.values) {
        out += " " + value.text + (value.literal ? "" : "?") +
               (value.default_of.empty() ? "" : "{" + value.default_of + "}") + "<" +
               std::string(sources.text(value.span)) + ">";
      }
      out += ";";
    }
    for (const ArgumentValue& word : list->launcher)
      if (word.text.starts_with("--")) out += "L" + word.text + ";";
    for (const ArgumentValue& word : list->loose) out += "W" + word.text + (word.literal ? "" : "?") + ";";
    for (const ArgumentValue& word : list->absent) out += "0" + word.default_of + ";";
    for (const Span& command : list->further_commands) out += "+" + std::string(sources.text(command)) + ";";
    for (const EnvironmentVariable& variable : list->variables)
      out += "$" + variable.name + "=" + variable.value + ";";
    for (const EnvironmentVariable& variable : list->open_variables) out += "$" + variable.name + "?;";
  }
  for (const SyntaxProblem& problem : problems) out += "!" + problem.message;
  return out;
}

TEST(MegatronArguments, ReadsPlainLists) {
  EXPECT_EQ(arguments("--num-layers 24 --swiglu\n--lr=1e-4 --split 99,1,0\n"),
            "--num-layers 24<24>;--swiglu;--lr 1e-4<1e-4>;--split 99,1,0<99,1,0>;");
  EXPECT_EQ(arguments("--exit-interval -1 # c\n--name 'a b'\n"), "--exit-interval -1<-1>;--name a b<a b>;");
}

TEST(MegatronArguments, ReadsScriptsWithArraysAndVariables) {
  EXPECT_EQ(arguments("#!/bin/bash\nexport CUDA_DEVICE_MAX_CONNECTIONS=1\nTP=8\nMODEL=(\n  --num-layers 96 "
                      "\\\n  --tensor-model-parallel-size $TP\n)\n"
                      "OPTS=\"--bf16 --seed 7\"\ntorchrun --nproc_per_node 8 pretrain_gpt.py ${MODEL[@]} "
                      "$OPTS \\\n  --lr 0.1 > log 2>&1\n"),
            "--num-layers 96<96>;--tensor-model-parallel-size 8<8>;--bf16;--seed 7<7>;--lr "
            "0.1<0.1>;L--nproc_per_node;"
            "$CUDA_DEVICE_MAX_CONNECTIONS=1;");
  EXPECT_EQ(arguments("A=(--x 1)\nA+=(--y 2)\npython train.py \"${A[@]}\"\n"), "--x 1<1>;--y 2<2>;");
  EXPECT_EQ(arguments("NCCL_ALGO=Ring python train.py --x 1\n"), "--x 1<1>;$NCCL_ALGO=Ring;");
}

TEST(MegatronArguments, ForgetsWhatIsUnset) {
  EXPECT_EQ(arguments("TP=4\nunset TP\npython train.py --x 1 --y $TP\n"), "--x 1<1>;--y;");
  EXPECT_EQ(arguments("export A=1 B=2\nunset -v A\npython train.py --x 1\n"), "--x 1<1>;$B=2;");
  EXPECT_EQ(arguments("export A=1\nif c; then unset A; fi\npython train.py --x 1\n"), "--x 1<1>;$A?;");
}

TEST(MegatronArguments, TellsFurtherTrainingCommands) {
  EXPECT_EQ(
      arguments(
          "python pretrain_a.py --x 1\npython pretrain_b.py --x 2 --y 3\npython tool.py --z 1 --a 2 --b 3\n"),
      "--x 2<2>;--y 3<3>;+python pretrain_a.py --x 1;");
  EXPECT_EQ(arguments("python pretrain_b.py --x 2 --y 3\npython pretrain_a.py --x 1\n"),
            "--x 2<2>;--y 3<3>;+python pretrain_a.py --x 1;");
  EXPECT_EQ(arguments("srun bash -c 'python train.py --x 1'\n"), "--x 1<1>;");
}

TEST(MegatronArguments, SaysWhatIsNotLiteral) {
  EXPECT_EQ(arguments("python t.py --x $N --y $(nproc)\n"), "--x $N?<$N>;--y $(nproc)?<$(nproc)>;");
  EXPECT_EQ(arguments("N=1\nif true; then N=2; fi\npython t.py --x $N\n"), "--x $N?<$N>;");
  EXPECT_EQ(arguments("python t.py ${ARGS[@]} --x 1\n"), "--x 1<1>;W${ARGS[@]}?;");
  EXPECT_EQ(arguments("export A=1\nexport B=$A$A C=$D\nif x; then export E=1; fi\npython t.py --x 1\n"),
            "--x 1<1>;$A=1;$B=11;$C?;$E?;");
  // In front of the command as behind `export`; the statement at the command is the later one.
  EXPECT_EQ(arguments("A=$X B=${Y:-3} C=1 python t.py --x 1\n"), "--x 1<1>;$C=1;$A?;$B?;");
  EXPECT_EQ(arguments("export A=1\nA=$X python t.py --x 1\n"), "--x 1<1>;$A?;");
  EXPECT_EQ(arguments("export A=$X\nA=1 python t.py --x 1\n"), "--x 1<1>;$A=1;");
  EXPECT_EQ(arguments("if c; then A=1 python t.py --x 1; fi\n"), "--x 1<1>;$A=1;");
}

TEST(MegatronArguments, TakesStatedDefaults) {
  EXPECT_EQ(arguments("python t.py --z ${W:-4} --y ${V-a}\n"), "--z 4{W}<4>;--y a{V}<a>;");
  EXPECT_EQ(arguments("W=8\npython t.py --z ${W:-4}\n"), "--z 8<8>;");
  EXPECT_EQ(arguments(": ${W:=16}\npython t.py --z $W\n"), "--z 16{W}<16>;");
  EXPECT_EQ(arguments("TP=${TP:-2}\npython t.py --z $TP\n"), "--z 2{TP}<2>;");
  EXPECT_EQ(arguments("python t.py --z ${W:-\"a b\"}\n"), "--z a b{W}<a b>;");
  EXPECT_EQ(arguments("python t.py --z 1 ${W:-}\n"), "--z 1<1>;0W;");
  EXPECT_EQ(arguments("A=\"--z 1 ${W-}\"\npython t.py $A\n"), "--z 1<1>;0W;");
}

TEST(MegatronArguments, QuotesWithEscapesAndBraces) {
  EXPECT_EQ(arguments("python t.py --x $'a\\tb\\'' --y $\"c d\"\n"), "--x a\tb'<$'a\\tb\\''>;--y c d<c d>;");
  EXPECT_EQ(arguments("python t.py --x $'\\x41'\n"), "--x $'\\x41'?<$'\\x41'>;");
  EXPECT_EQ(arguments("python t.py --x p{a,b}q --y {1..3}\n"), "--x p{a,b}q?<p{a,b}q>;--y {1..3}?<{1..3}>;");
  // No expansion: quotes, a single item, values of variables, backslashes.
  EXPECT_EQ(arguments("A={a,b}\npython t.py --x '{a,b}' {a} {} \\{a,b} $A\n"),
            "--x {a,b}<{a,b}> {a}<{a}> {}<{}> {a,b}<\\{a,b}> {a,b}<{a,b}>;");
  EXPECT_EQ(arguments("A=({a,b})\npython t.py --x ${A[@]}\n"), "--x {a,b}?<{a,b}>;");
  EXPECT_EQ(arguments("python t.py --x $'open\n"), "--x;!the quote is not closed");
  const std::string deep(100000, '{');
  EXPECT_EQ(arguments("python t.py --x " + deep + "\n"), "--x " + deep + "?<" + deep + ">;");
}

TEST(MegatronArguments, WordsThatMayBeSeveral) {
  const auto several = [](const std::string& word) {
    SourceMap sources;
    const SourceId id =
        sources.add("run.sh", "A=(--z \"$U\")\nB=\"$U\"\npython t.py --x " + word + "\n", SourceKind::file);
    std::vector<SyntaxProblem> problems;
    const auto list = parse_megatron_arguments(id, sources, problems);
    const ArgumentValue& value = list->arguments.back().values.back();
    return !value.literal && value.several;
  };
  for (const char* const word : {"$@", "\"$@\"", "\"${U[@]}\"", "\"${U[@]:1}\"", "\"${@:2}\"", "$U", "${U}",
                                 "$(cat f)", "`cat f`", "{a,b}", "${A[@]}", "$B"})
    EXPECT_TRUE(several(word)) << word;
  for (const char* const word : {"a", "\"$U\"", "\"$(cat f)\"", "\"${A[@]}\"", "\"$B\"", "'$@'"})
    EXPECT_FALSE(several(word)) << word;
}

TEST(MegatronArguments, SplitsElementsWhosePartsAreNotKnown) {
  EXPECT_EQ(arguments("A=(\"--x $U/a\" \"--y 3 $(f 1 2)b\")\npython t.py ${A[@]}\n"),
            "--x $U/a?<--x $U/a>;--y 3<--y 3 $(f 1 2)b> $(f 1 2)b?<--y 3 $(f 1 2)b>;");
}

TEST(MegatronArguments, AProgramOfUnknownNameTakesNoArguments) {
  EXPECT_EQ(arguments("python $S --x 1\n"), "--x 1<1>;");
  EXPECT_EQ(arguments("torchrun --nnodes 2 ${D[@]} $S --x 1\n"), "--x 1<1>;L--nnodes;");
  EXPECT_EQ(arguments("python $S $MORE --x 1\n"), "--x 1<1>;W$MORE?;");
  EXPECT_EQ(arguments("run $S --x 1\n"), "--x 1<1>;W$S?;");
}

TEST(MegatronArguments, KeepsWhatIsAddedUnderACondition) {
  EXPECT_EQ(arguments("A=\"--x 1\"\nif c; then A=\"$A --y 2\"; fi\npython t.py $A\n"), "--x 1<1>;--y~ 2<2>;");
  EXPECT_EQ(arguments("A=(--x 1)\n[ c ] && A+=(--y 2)\npython t.py ${A[@]}\n"), "--x 1<1>;--y~ 2<2>;");
  // One of two lists: neither is certain.
  EXPECT_EQ(arguments("if c; then A=\"--x 1\"; else A=\"--x 2\"; fi\npython t.py $A --z 1\n"),
            "--x~ 1<1>;--x~ 2<2>;--z 1<1>;");
  // A longer list of values is not known.
  EXPECT_EQ(arguments("A=\"--x 1 --l a\"\nif c; then A=\"$A b --y\"; fi\npython t.py $A\n"),
            "--x 1<1>;--l a<a> b?<b>;--y~;");
}

TEST(MegatronArguments, ReadsTextsThatAShellGets) {
  EXPECT_EQ(arguments("opt=\" \\\n  --x 1 \\\n  --y 2 \"\nrun=\"python -u /a/train.py ${opt}\"\nsrun -l "
                      "--container-image=i --mounts /a sh -c \"${run}\"\n"),
            "--x 1<1>;--y 2<2>;");
  EXPECT_EQ(
      arguments("A=\"--x ${N:-2}\"\nif c; then A+=\" --y 1\"; fi\nbash -c \"python train.py $A --z 3\"\n"),
      "--x 2{N}<2>;--y~ 1<1>;--z 3<3>;");
  EXPECT_EQ(arguments("N=3\nsrun --a --b --c bash -lc 'cd /x && python train.py --x $N'\n"), "--x 3<3>;");
  EXPECT_EQ(arguments("CMD=\"torchrun --nnodes 2 train.py --x 1\"\neval $CMD\n"), "--x 1<1>;L--nnodes;");
  EXPECT_EQ(arguments("sbatch <<EOF\n#!/bin/bash\npython train.py --x 1\nEOF\n"), "--x 1<1>;");
  EXPECT_EQ(arguments("cat > notes <<EOF\n--y 1 \"open\nEOF\npython train.py --x 1\n"), "--x 1<1>;");
  EXPECT_EQ(arguments("python -m torch.distributed.run --nnodes 2 train.py --x 1\n"), "--x 1<1>;L--nnodes;");
  EXPECT_EQ(arguments("python -m pkg.train --x 1\n"), "--x 1<1>;");
  EXPECT_EQ(arguments("python tools/prepare.py --a 1 --b 2 --c 3\npython pretrain_gpt.py --x 1\n"),
            "--x 1<1>;");
  EXPECT_EQ(arguments("echo \"python train.py --not 1\"\npython train.py --x 1\n"), "--x 1<1>;");
}

/// What `$L` behind the text is read as.
std::string value_of_l(const std::string& text) {
  const std::string out = arguments(text + "\npython train.py --x \"$L\"\n");
  const std::size_t begin = out.find("--x") + 4;
  return out.substr(begin, out.find('<', begin) - begin);
}

TEST(MegatronArguments, WhatACommandSetsIsNotKnown) {
  EXPECT_EQ(value_of_l("L=4"), "4");
  for (const char* const text : {"L=4; let L=8",
                                 "L=4; let 'L = 8'",
                                 "L=4; let L++",
                                 "L=4; let --L",
                                 "L=4; let M=1 L+=2",
                                 "L=4; ((L++))",
                                 "L=4; (( L = 8 ))",
                                 "L=4; (( M == 2, L <<= 1 ))",
                                 "L=4; if (( L++ )); then :; fi",
                                 "L=4; echo $((L = 8))",
                                 "L=4; M=$((++L))",
                                 "L=4; printf -v L 9",
                                 "L=4; printf -vL 9",
                                 "L=4; read L",
                                 "L=4; read -r M L < f",
                                 "L=4; read -s L",
                                 "L=4; read -p 'how many' -r L",
                                 "L=4; IFS=, read -ra L <<< 1,2",
                                 "L=4; command read L",
                                 "L=4; read \"$NAME\"",
                                 "L=4; mapfile -t L < f",
                                 "L=4; readarray -n 1 L < f",
                                 "L=4; getopts ab: L",
                                 "declare -i L=3+4",
                                 "declare -i L; L=3+4",
                                 "declare -i L=3; L+=4",
                                 "declare -i L=010",
                                 "declare -u L=ab",
                                 "L=4; for L in 8 9; do",
                                 "L=4; for L\ndo",
                                 "L=4; select L in 8 9; do",
                                 "L=4; for ((L=1; L<9; L++)); do"})
    EXPECT_EQ(value_of_l(text), "$L?") << text;
  // These only read it, or set another.
  for (const char* const text :
       {"L=4; let M=L", "L=4; ((M = L * 2))", "L=4; if (( L == 4 )); then :; fi",
        "L=4; (( L <= 4 && L >= 2 ))", "L=4; M=$((L+1))", "L=4; printf '%s' L", "L=4; read M",
        "L=4; read -p L M", "L=4; read -d L M", "L=4; mapfile -t M < f", "L=4; for M in L; do",
        "declare -i L=4", "L=4; declare -i M=L", "local L=4"})
    EXPECT_EQ(value_of_l(text), "4") << text;
}

TEST(MegatronArguments, ShellsOfTheirOwnKeepWhatTheySet) {
  for (const char* const text :
       {"L=4; (L=8)", "L=4; ( (L=8); M=1 )", "L=4; true | L=8", "L=4; true |\nL=8", "L=4; L=8 | true",
        "L=4; L=8 &", "L=4; L=8 && true & M=1", "L=4; (M=1; L=8) &", "L=4; bash -c 'L=8'",
        "L=4; true | read L", "L=4; f() ( L=8 )\nf", "L=4; case $1 in a) (L=8);; esac",
        "L=4; case $1 in a) L=8;; esac", "L=4; true &&\nL=8"})
    EXPECT_EQ(value_of_l(text), "$L?") << text;
  for (const char* const text :
       {"L=4; (M=8)", "L=4; true | M=8", "M=1 & L=4", "true | cat; L=4", "true |& cat\nL=4",
        "case $1 in (a|b) M=1;; c) M=2;; esac; L=4", "f() { M=1; }; L=4", "eval L=4", "(M=1); L=4",
        "true & L=4", "true || false; L=4", "(L=4", "((M=1)); L=4"})
    EXPECT_EQ(value_of_l(text), "4") << text;
  // Inside, what is set holds.
  EXPECT_EQ(arguments("L=4\n(L=8; python train.py --x $L) | tee log &\n"), "--x 8<8>;");
  // A pattern is no command.
  EXPECT_EQ(arguments("case $1 in\n  --a) M=1;;\nesac\npython train.py --x 1\n"), "--x 1<1>;");
  EXPECT_EQ(arguments("export A=1 B=1\n(export A=2)\nread B\npython train.py --x 1\n"), "--x 1<1>;$A?;$B?;");
  EXPECT_EQ(arguments("(export A=2; python train.py --x 1)\n"), "--x 1<1>;$A=2;");
  EXPECT_EQ(arguments("export A=1\nA=2\npython train.py --x 1\n"), "--x 1<1>;$A=1;$A=2;");
}

TEST(MegatronArguments, ArraysSetByElementsAreNotKnown) {
  for (const char* const set :
       {"A[1]=8", "A[0]+=8", "A[i + 1]=8", "A[B[1]]=8", "declare A[1]=8", "unset 'A[1]'",
        "printf -v 'A[1]' 8", "((A[1]=8))", "A=([0]=--x [1]=8)", "read -a A"})
    EXPECT_EQ(arguments("A=(--x 4); " + std::string(set) + "\npython train.py --y 1 \"${A[@]}\"\n"),
              "--y 1<1> ${A[@]}?<\"${A[@]}\">;")
        << set;
}

TEST(MegatronArguments, PlacesAreThoseOfTheWords) {
  // Behind continued lines, tabs and letters of several bytes.
  EXPECT_EQ(arguments("A=\"\\\r\n\t--n\xC3\xA9 \xC3\xBC \\\r\n\t--y 2\"\r\npython train.py $A --z 1\r\n"),
            "--n\xC3\xA9 \xC3\xBC<\xC3\xBC>;--y 2<2>;--z 1<1>;");
  EXPECT_EQ(arguments("A=\"--x a\\\"b\"\npython train.py $A\n"), "--x a\"b<a\\\"b>;");
}

TEST(MegatronArguments, ByteOrderMarksHideNothing) {
  EXPECT_EQ(arguments("\xEF\xBB\xBF--num-layers 2\n--bf16\n"), arguments("--num-layers 2\n--bf16\n"));
}

TEST(MegatronArguments, ReportsTextsWithoutArgumentsAndBadOnes) {
  EXPECT_EQ(arguments("echo hello\n"), "!no command with arguments (`--name value`) is found");
  EXPECT_EQ(arguments(""), "!no command with arguments (`--name value`) is found");
  EXPECT_EQ(arguments("--x '' --y 1"), "--x <>;--y 1<1>;");
  EXPECT_EQ(arguments("--x 'a"), "--x;!the quote is not closed");
  EXPECT_EQ(arguments(std::string("--x 1\0--y 2", 12)),
            "!a NUL byte stands in the text; this looks like a binary file");
  EXPECT_EQ(arguments("python t.py config.yaml @more --x 1\n"), "--x 1<1>;Wconfig.yaml;W@more;");
  EXPECT_EQ(arguments("--layers 2\n  3 --y\n"), "--layers 2<2> 3<3>;--y;");
}

TEST(MegatronArguments, ExpansionIsBounded) {
  std::string text = "A0=xxxxxxxxxxxxxxxx\n";
  for (int i = 1; i < 40; ++i) {
    const std::string before = "$A" + std::to_string(i - 1);
    text += "A" + std::to_string(i) + "=" + before + before + "\n";
  }
  EXPECT_NE(
      arguments(text + "python t.py --x $A39\n").find("!the variables expand to more text than is read"),
      std::string::npos);
}

}  // namespace
}  // namespace capstan
