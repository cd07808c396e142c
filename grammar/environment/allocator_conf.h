// The value of PYTORCH_CUDA_ALLOC_CONF / PYTORCH_ALLOC_CONF, split as PyTorch's own parser does: blanks are
// dropped everywhere, the tokens are `,`, `:`, `[`, `]` and the texts between them; an option is a name, a
// colon and a value or a bracketed list. Source: pytorch/pytorch c10/cuda/CUDAAllocatorConfig.cpp (lexArgs,
// parseArgs), c10/core/AllocatorConfig.{h,cpp}.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/source/span.h"
#include "grammar/source/syntax_problem.h"
#include "grammar/source/value.h"

namespace capstan {

struct AllocatorOption {
  std::string name;
  Span name_span;
  Value value;  ///< boolean, integer, float, string, or a list of strings as written ("256:1")
  Span value_span;
};

/// `text` stands at `where` in its source (the span of the value without quotes); places are exact as long as
/// text and source have the same bytes. Reports what PyTorch refuses at start: unknown options, missing or
/// malformed values, missing commas. The options before the first problem are returned (PyTorch stops there).
std::vector<AllocatorOption> parse_allocator_conf(std::string_view text, Span where,
                                                  std::vector<SyntaxProblem>& problems);

}  // namespace capstan
