// Every reader on damaged texts: whatever stands there, it ends, every place lies in the text, and a text
// that is not read has a problem that says so.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "compiler/config/bind.h"
#include "compiler/config/exchange/read_config.h"

namespace capstan {
namespace {

const SchemaView& view_of_sample(const char* stack) {
  static std::map<std::string, std::unique_ptr<SchemaView>> views;
  std::unique_ptr<SchemaView>& view = views[stack];
  if (!view) view = std::make_unique<SchemaView>(builtin_schema(), *builtin_schema().find_stack(stack));
  return *view;
}

struct Sample {
  ConfigFormat format;
  const char* stack;
  const char* text;
};

const Sample kSamples[] = {
    {ConfigFormat::megatron_args, "megatron-lm-0.19",
     "#!/bin/bash\n#SBATCH --nodes=2 --gres=gpu:8\nexport NCCL_ALGO=Ring X=${Y:-3}\nA=(--num-layers 2 # c\n "
     "--swiglu)\n"
     "B=\"\\\n --lr 1e-4 --bf16 \\\"q\\\"\"\nif [ $C ]; then A+=(--seed 1); fi\ncat <<EOF\nx\nEOF\n"
     "srun bash -c \"torchrun --nproc-per-node 8 train.py ${A[@]} $B --recompute-modules moe mlp $(date) "
     "'$D'\" > log\n"},
    {ConfigFormat::functional_test, "megatron-lm-0.19",
     "ENV_VARS:\n  NCCL_ALGO: Ring\nS: &S {--num-layers: 2}\nMODEL_ARGS: # c\n  <<: *S\n  --bf16: true\n  "
     "--lr: 1e-4\n"
     "  --recompute-modules: \"[moe mlp]\"\n  --save: ${X}/y\nMODEL_ARGS_2:\n  --lr: [1, 2]\nB: |\n  # t\n"},
    {ConfigFormat::bridge_yaml, "bridge-0.4",
     "model:\n  _target_: a.B\n  num_layers: 2\n  params_dtype: {_target_: torch.bfloat16, _call_: false}\n"
     "  cuda_graph_scope:\n  - _target_: x.CudaGraphScope\n    _args_: [2]\nmixed_precision: "
     "bf16_mixed\nenv_vars: {A: 1}\n"},
    {ConfigFormat::python, "bridge-0.4",
     "\"\"\"d\"\"\"\nSEQ = 4_096\ndef f(x):\n    cfg = base(1)\n    cfg.model.num_layers = 2; "
     "cfg.model.seq_length = SEQ\n"
     "    cfg.ddp = D(overlap_grad_reduce=True, x=f(1))  # c\n    cfg.a.b, cfg.a.c = 1, [2, {'k': (3,)}]\n"
     "    if x: cfg.train.train_iters = 0x10\n    setattr(cfg.model, 'hidden_size', 64)\n    return cfg\n"},
    {ConfigFormat::hydra, "bridge-0.4",
     "# c\nmodel.num_layers=2\n+model.cuda_graph_scope=[attn,'m "
     "l']\n~model.hidden_size\n++env_vars.A={a:1,b:[2]}\n"},
    {ConfigFormat::hf_config, "bridge-0.4",
     "{\"model_type\": \"deepseek_v3\", \"hidden_size\": 64, \"num_hidden_layers\": 4, "
     "\"first_k_dense_replace\": 1,\n"
     " \"hidden_act\": \"silu\", \"rope_scaling\": {\"type\": \"yarn\", \"factor\": 40}, \"torch_dtype\": "
     "\"bfloat16\",\n"
     " \"n_shared_experts\": 1, \"moe_intermediate_size\": 8, \"sliding_window\": 5, \"text_config\": "
     "null}"}};

void check_places(const SyntaxNode& node, std::size_t size) {
  if (node.span.exists()) {
    ASSERT_LE(node.span.begin, node.span.end);
    ASSERT_LE(node.span.end, size);
  }
  for (const SyntaxNode& item : node.items) check_places(item, size);
  for (const SyntaxEntry& entry : node.entries) {
    if (entry.key_span.exists()) {
      ASSERT_LE(entry.key_span.end, size);
    }
    check_places(entry.value, size);
  }
}

void read(const Sample& sample, const std::string& text) {
  SourceMap sources;
  Sink sink;
  ReadRecord record;
  const SourceId id = sources.add("x", text, SourceKind::file);
  detect_format("x", text);
  const auto layers =
      read_config(id, sample.format, view_of_sample(sample.stack), sources, disk_reader(), sink, record);
  if (!layers) {
    EXPECT_TRUE(sink.has_errors()) << text;
    return;
  }
  for (const Layer& layer : *layers) check_places(layer.tree, text.size());
  Config config = compose(*layers, sink);
  bind(config, view_of_sample(sample.stack), sink);
  for (const Diagnostic& diagnostic : sink.diagnostics()) {
    EXPECT_FALSE(diagnostic.message.empty());
    for (const Label& label : diagnostic.labels) {
      if (label.span.exists()) {
        EXPECT_LE(label.span.end, text.size()) << diagnostic.message;
      }
    }
  }
}

TEST(DamagedTexts, AreReadOrRefused) {
  std::mt19937 random(7);
  const std::string pieces[] = {"\"",
                                "'",
                                "\\",
                                "$",
                                "{",
                                "}",
                                "[",
                                "]",
                                "(",
                                ")",
                                "\n",
                                "\t",
                                "#",
                                ":",
                                "=",
                                ",",
                                "--",
                                "<<",
                                "&a ",
                                "*a",
                                "\r\n",
                                "\xC3",
                                "\xF0\x9F\x98\x80",
                                std::string(1, '\0'),
                                "|"};
  for (const Sample& sample : kSamples) {
    const std::string text = sample.text;
    read(sample, text);
    for (std::size_t end = 0; end < text.size(); end += 1 + text.size() / 60)
      read(sample, text.substr(0, end));
    for (int i = 0; i < 250; ++i) {
      std::string damaged = text;
      for (unsigned edits = 1 + random() % 4; edits > 0; --edits) {
        const std::size_t at = random() % (damaged.size() + 1);
        switch (random() % 3) {
          case 0:
            damaged.insert(at, pieces[random() % std::size(pieces)]);
            break;
          case 1:
            damaged.erase(at, 1 + random() % 5);
            break;
          default:
            damaged.insert(at, damaged.substr(random() % damaged.size(), random() % 40));
        }
        if (damaged.empty()) damaged = "x";
      }
      read(sample, damaged);
    }
  }
}

}  // namespace
}  // namespace capstan
