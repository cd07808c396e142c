// A long list of token ids that is read anywhere, and the factory for every kind of data that a plan names.
// Opening checks everything that can be checked without reading all tokens, before anything is allocated on a
// device.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "compiler/plan/plan.h"
#include "runtime/data/data_identity.h"
#include "runtime/device/outcome.h"

namespace capstan::runtime {

class TokenSource {
 public:
  virtual ~TokenSource() = default;
  virtual std::uint64_t count() const = 0;
  /// Tokens first .. first + out.size(), which must exist. Ids beyond 2^31 - 1 come out negative: the sampler
  /// refuses them. RN010 when a file became shorter since it was opened.
  virtual Status read(std::uint64_t first, std::span<std::int32_t> out) const = 0;
  /// For messages: the path, or "random tokens".
  virtual const std::string& name() const = 0;
  /// Reads up to 16 MiB of each file.
  virtual DataIdentity identity() const = 0;
};

/// The file's bytes as tokens 0..255, memory-mapped. RN012 when a byte is not below `vocab`.
Outcome<std::unique_ptr<TokenSource>> open_text(const std::string& path, std::int64_t vocab);
/// llm.c's format: a file, a directory of `.bin` files, or a path whose last part has `*`. Each file begins
/// with 256 i32: magic 20240520 and version 1 (u16 tokens), or magic 20240801 and version 7 (u32 tokens);
/// then the number of tokens, which must be all that the file holds. Source: karpathy/llm.c,
/// dev/data/data_common.py (write_datafile), llmc/dataloader.h (dataloader_load_shard_).
Outcome<std::unique_ptr<TokenSource>> open_token_shards(const std::string& path);
/// Megatron's indexed dataset: `path` less `.bin` and `.idx`, or one of the two files; the documents follow
/// each other. Source: Megatron Core, core/datasets/indexed_dataset.py (_IndexWriter, DType).
Outcome<std::unique_ptr<TokenSource>> open_megatron_indexed(const std::string& path);
/// Uniform tokens below `vocab`, endless, from a seed.
std::unique_ptr<TokenSource> make_random_tokens(std::uint64_t seed, std::int64_t vocab);

/// The plan's data. RN010 for `none` and for what cannot be opened; RN011 when there are not seq_length + 1
/// tokens.
Outcome<std::unique_ptr<TokenSource>> open_data(const plan::Plan& plan);

}  // namespace capstan::runtime
