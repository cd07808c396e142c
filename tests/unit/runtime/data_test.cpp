#include "runtime/data/sampler.h"
#include "runtime/execute/interrupt.h"

#include <sys/stat.h>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include <cmath>
#include <filesystem>
#include <set>

#include <gtest/gtest.h>

#include "tests/unit/runtime/process.h"

namespace capstan::runtime::testing {
namespace {

std::string bytes_of(std::initializer_list<std::int64_t> values, int width) {
  std::string bytes;
  for (const std::int64_t value : values) {
    for (int i = 0; i < width; ++i) bytes.push_back(static_cast<char>(value >> (8 * i)));
  }
  return bytes;
}

std::vector<std::int32_t> tokens_of(const TokenSource& source, std::uint64_t first, std::size_t count) {
  std::vector<std::int32_t> tokens(count);
  const Status read = source.read(first, tokens);
  EXPECT_TRUE(read.ok());
  return tokens;
}

using Tokens = std::vector<std::int32_t>;

TEST(TextData, BytesAreTokens) {
  const Folder folder;
  write_whole(folder.file("t"), "ab\xff\n");
  const auto source = open_text(folder.file("t"), 256);
  ASSERT_TRUE(source.ok());
  EXPECT_EQ(source.value()->count(), 4u);
  EXPECT_EQ(tokens_of(*source.value(), 0, 4), (Tokens{97, 98, 255, 10}));
  EXPECT_EQ(open_text(folder.file("t"), 200).error().code, "RN012");
  EXPECT_EQ(open_text(folder.file("none"), 256).error().code, "RN010");
  EXPECT_EQ(open_text("/dev/zero", 256).error().code, "RN010");
}

TEST(TextData, AFileThatBecomesShorterIsToldNotRead) {
  const Folder folder;
  write_whole(folder.file("t"), std::string(100000, 'a'));
  const auto source = open_text(folder.file("t"), 256);
  ASSERT_TRUE(source.ok());
  std::filesystem::resize_file(folder.file("t"), 10);
  Tokens tokens(20);
  const Status read = source.value()->read(50000, tokens);
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code, "RN010");
  EXPECT_NE(read.error().message.find("10 bytes of 100000 are left"), std::string::npos)
      << read.error().message;
}

TEST(TextData, AnotherFileUnderTheNameChangesNothing) {
  const Folder folder;
  write_whole(folder.file("t"), std::string(100, 'a'));
  const auto source = open_text(folder.file("t"), 256);
  ASSERT_TRUE(source.ok());
  write_whole(folder.file("new"), "b");
  std::filesystem::rename(folder.file("new"), folder.file("t"));
  EXPECT_EQ(tokens_of(*source.value(), 98, 2), (Tokens{'a', 'a'}));
}

TEST(TextData, APipeIsRefusedNotWaitedFor) {
  const Folder folder;
  ASSERT_EQ(mkfifo(folder.file("pipe").c_str(), 0600), 0);
  EXPECT_EQ(open_text(folder.file("pipe"), 256).error().code, "RN010");
}

std::string shard(std::int64_t magic, std::int64_t version, std::int64_t count,
                  std::initializer_list<std::int64_t> tokens, int width) {
  return bytes_of({magic, version, count}, 4) + std::string(253 * 4, '\0') + bytes_of(tokens, width);
}

TEST(TokenShards, ReadsLlmCFilesOneAfterTheOther) {
  const Folder folder;
  write_whole(folder.file("train_000.bin"), shard(20240520, 1, 3, {1, 2, 65535}, 2));
  write_whole(folder.file("train_001.bin"), shard(20240801, 7, 2, {70000, 5}, 4));
  write_whole(folder.file("val_000.bin"), shard(20240520, 1, 1, {9}, 2));
  for (const std::string& path : {folder.file("train_*.bin")}) {
    const auto source = open_token_shards(path);
    ASSERT_TRUE(source.ok()) << source.error().message;
    EXPECT_EQ(source.value()->count(), 5u);
    EXPECT_EQ(tokens_of(*source.value(), 0, 5), (Tokens{1, 2, 65535, 70000, 5}));
    EXPECT_EQ(tokens_of(*source.value(), 2, 2), (Tokens{65535, 70000}));
  }
  EXPECT_EQ(open_token_shards(folder.path()).value()->count(), 6u);
  EXPECT_EQ(open_token_shards(folder.file("val_000.bin")).value()->count(), 1u);
}

TEST(TokenShards, RefusesBrokenHeaders) {
  const Folder folder;
  const auto code = [&](const std::string& bytes) {
    write_whole(folder.file("x.bin"), bytes);
    const auto source = open_token_shards(folder.file("x.bin"));
    return source.ok() ? std::string("accepted") : source.error().code;
  };
  EXPECT_EQ(code(shard(20240520, 1, 2, {1, 2}, 2)), "accepted");
  EXPECT_EQ(code(shard(20240520, 1, 3, {1, 2}, 2)), "RN010");
  EXPECT_EQ(code(shard(20240520, 1, 1, {1, 2}, 2)), "RN010");  // llm.c refuses more than is stated, too
  EXPECT_EQ(code(shard(20240520, 1, 2, {1, 2}, 2) + "x"), "RN010");
  EXPECT_EQ(code(shard(20240520, 1, -1, {1, 2}, 2)), "RN010");
  EXPECT_EQ(code(shard(20240520, 2, 2, {1, 2}, 2)), "RN010");
  EXPECT_EQ(code(shard(7, 1, 2, {1, 2}, 2)), "RN010");
  EXPECT_EQ(code(shard(20240520, 1, 0, {}, 2)), "RN011");
  EXPECT_EQ(code("short"), "RN010");
  EXPECT_EQ(open_token_shards(folder.file("nothing_*.bin")).error().code, "RN010");
}

std::string index(std::int64_t type, std::initializer_list<std::int64_t> lengths,
                  std::initializer_list<std::int64_t> pointers, std::int64_t version,
                  std::initializer_list<std::int64_t> documents) {
  const auto sequences = static_cast<std::int64_t>(lengths.size());
  return std::string("MMIDIDX\0\0", 9) + bytes_of({version}, 8) + bytes_of({type}, 1) +
         bytes_of({sequences, static_cast<std::int64_t>(documents.size())}, 8) + bytes_of(lengths, 4) +
         bytes_of(pointers, 8) + bytes_of(documents, 8);
}

std::string index(std::int64_t type, std::initializer_list<std::int64_t> lengths,
                  std::initializer_list<std::int64_t> pointers, std::int64_t version = 1) {
  return index(type, lengths, pointers, version, {0, static_cast<std::int64_t>(lengths.size())});
}

TEST(MegatronIndexed, JoinsItsSequencesInOrder) {
  const Folder folder;
  write_whole(folder.file("d.bin"), bytes_of({10, 11, 12, 13, 14, 15}, 2));
  write_whole(folder.file("d.idx"), index(8, {2, 0, 3}, {0, 4, 4}));
  auto source = open_megatron_indexed(folder.file("d"));
  ASSERT_TRUE(source.ok()) << source.error().message;
  EXPECT_EQ(source.value()->count(), 5u);
  EXPECT_EQ(tokens_of(*source.value(), 0, 5), (Tokens{10, 11, 12, 13, 14}));
  EXPECT_EQ(tokens_of(*source.value(), 2, 3), (Tokens{12, 13, 14}));
  write_whole(folder.file("d.idx"), index(8, {2, 2}, {8, 0}));  // sequences stand in any order
  EXPECT_EQ(tokens_of(*open_megatron_indexed(folder.file("d")).value(), 0, 4), (Tokens{14, 15, 10, 11}));
  write_whole(folder.file("d.idx"), index(4, {3}, {0}));
  EXPECT_EQ(tokens_of(*open_megatron_indexed(folder.file("d")).value(), 0, 1), (Tokens{10 | 11 << 16}));
}

TEST(MegatronIndexed, EitherFileOfThePairNamesIt) {
  const Folder folder;
  write_whole(folder.file("d.bin"), bytes_of({10, 11}, 2));
  write_whole(folder.file("d.idx"), index(8, {2}, {0}));
  for (const char* name : {"d", "d.bin", "d.idx"}) {
    const auto source = open_megatron_indexed(folder.file(name));
    ASSERT_TRUE(source.ok()) << source.error().message;
    EXPECT_EQ(source.value()->count(), 2u);
  }
  // A pair may be called `d.bin` itself.
  write_whole(folder.file("d.bin.bin"), bytes_of({1, 2, 3}, 2));
  write_whole(folder.file("d.bin.idx"), index(8, {3}, {0}));
  EXPECT_EQ(open_megatron_indexed(folder.file("d.bin")).value()->count(), 3u);
}

TEST(MegatronIndexed, ChecksTheIndexOfDocuments) {
  const Folder folder;
  write_whole(folder.file("d.bin"), bytes_of({1, 2, 3, 4}, 2));
  const auto message = [&](std::initializer_list<std::int64_t> documents, const std::string& more = "") {
    write_whole(folder.file("d.idx"), index(8, {2, 2}, {0, 4}, 1, documents) + more);
    const auto source = open_megatron_indexed(folder.file("d"));
    return source.ok() ? std::string("accepted") : source.error().code + source.error().message;
  };
  EXPECT_EQ(message({0, 1, 2}), "accepted");
  EXPECT_EQ(message({0, 1, 1, 2}), "accepted");  // a document without sequences
  EXPECT_EQ(message({0, 2}, "mm"), "accepted");  // a mode for each sequence
  EXPECT_NE(message({0, 2}, "m").find("1 bytes behind"), std::string::npos) << message({0, 2}, "m");
  // Megatron asserts that the last document ends with the last sequence.
  EXPECT_NE(message({0, 1}).find("ends its last document at sequence 1"), std::string::npos)
      << message({0, 1});
  EXPECT_NE(message({}).find("RN010"), std::string::npos);
  EXPECT_NE(message({1, 2}).find("ends document 0 at sequence 1"), std::string::npos);
  EXPECT_NE(message({0, 2, 1, 2}).find("ends document 2 at sequence 1"), std::string::npos);
  EXPECT_NE(message({0, 3}).find("RN010"), std::string::npos);
  EXPECT_NE(message({0, -1, 2}).find("RN010"), std::string::npos);
}

TEST(DataIdentity, FollowsWhatTheFilesHold) {
  const Folder folder;
  const auto identity = [&](const std::string& bytes) {
    write_whole(folder.file("t"), bytes);
    return open_text(folder.file("t"), 256).value()->identity();
  };
  const DataIdentity first = identity("abc");
  EXPECT_EQ(first.tokens, 3u);
  EXPECT_EQ(first.digest, identity("abc").digest);
  EXPECT_NE(first.digest, identity("abd").digest);
  EXPECT_NE(first.digest, identity("abcd").digest);
  // Of a large file the ends and parts between them are read, whatever its length.
  std::string large((std::size_t{16} << 20) + 12345, 'a');
  const DataIdentity whole = identity(large);
  large.back() = 'b';
  EXPECT_NE(identity(large).digest, whole.digest);
  large.back() = 'a';
  large.front() = 'b';
  EXPECT_NE(identity(large).digest, whole.digest);
  EXPECT_EQ(make_random_tokens(3, 10)->identity().digest, "");
}

TEST(MegatronIndexed, RefusesBrokenIndexes) {
  const Folder folder;
  write_whole(folder.file("d.bin"), bytes_of({1, 2, 3, 4}, 2));
  const auto code = [&](const std::string& bytes) {
    write_whole(folder.file("d.idx"), bytes);
    const auto source = open_megatron_indexed(folder.file("d"));
    return source.ok() ? std::string("accepted") : source.error().code;
  };
  const std::string good = index(8, {4}, {0});
  EXPECT_EQ(code(good), "accepted");
  EXPECT_EQ(code(index(8, {5}, {0})), "RN010");  // beyond the data
  EXPECT_EQ(code(index(8, {1}, {9})), "RN010");
  EXPECT_EQ(code(index(8, {-1}, {0})), "RN010");
  EXPECT_EQ(code(index(8, {1}, {-2})), "RN010");
  EXPECT_EQ(code(index(7, {1}, {0})), "RN010");  // floats
  EXPECT_EQ(code(index(8, {4}, {0}, 2)), "RN010");
  EXPECT_EQ(code(good.substr(0, 30)), "RN010");
  EXPECT_EQ(code(good.substr(0, good.size() - 20)), "RN010");
  EXPECT_EQ(code(std::string(good).replace(0, 1, "X")), "RN010");
  std::filesystem::remove(folder.file("d.bin"));
  EXPECT_EQ(code(good), "RN010");
}

TEST(Shuffle, IsAPermutationThatDependsOnSeedAndRound) {
  for (const std::uint64_t count : {1ull, 2ull, 3ull, 17ull, 64ull, 1000ull}) {
    std::set<std::uint64_t> seen;
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t place = shuffled(i, count, 5, 1);
      EXPECT_LT(place, count);
      seen.insert(place);
    }
    EXPECT_EQ(seen.size(), count);
  }
  const auto order = [](std::uint64_t seed, std::uint64_t round) {
    std::vector<std::uint64_t> places;
    for (std::uint64_t i = 0; i < 50; ++i) places.push_back(shuffled(i, 50, seed, round));
    return places;
  };
  EXPECT_EQ(order(1, 0), order(1, 0));
  EXPECT_NE(order(1, 0), order(2, 0));
  EXPECT_NE(order(1, 0), order(1, 1));
}

TEST(Sampler, GivesEachWindowOncePerEpochAndRefusesForeignTokens) {
  const Folder folder;
  std::string text;
  for (int i = 0; i < 101; ++i) text.push_back(static_cast<char>(i));  // 25 windows of 4 tokens and a target
  write_whole(folder.file("t"), text);
  plan::Plan plan;
  plan.dims.seq_length = 4;
  plan.dims.micro_batch = 5;
  plan.dims.micro_batches = 1;
  plan.dims.vocab = 101;
  plan.data = {"text", folder.file("t"), 9};
  const auto source = open_data(plan);
  ASSERT_TRUE(source.ok());
  const Sampler sampler(plan, *source.value());
  std::multiset<std::int32_t> starts;
  std::vector<std::int32_t> batch(25);
  for (std::uint64_t step = 0; step < 10; ++step) {  // two epochs
    ASSERT_TRUE(sampler.fill(step, batch).ok());
    for (int i = 0; i < 5; ++i) {
      starts.insert(batch[static_cast<std::size_t>(i * 5)]);
      for (int j = 1; j < 5; ++j)
        EXPECT_EQ(batch[static_cast<std::size_t>(i * 5 + j)], batch[static_cast<std::size_t>(i * 5)] + j);
    }
  }
  for (int window = 0; window < 25; ++window) EXPECT_EQ(starts.count(window * 4), 2u) << window;
  plan.dims.vocab = 60;
  const Sampler narrow(plan, *source.value());
  bool refused = false;
  for (std::uint64_t step = 0; step < 5; ++step) {
    const Status filled = narrow.fill(step, batch);
    refused = refused || (!filled.ok() && filled.error().code == "RN012");
  }
  EXPECT_TRUE(refused);
}

/// A batch of millions of samples takes minutes: it is no reason to keep a signal waiting.
TEST(SamplerDeathTest, AnOverdueSignalGivesUpABatch) {
  EXPECT_EXIT(
      {
        plan::Plan plan;
        plan.dims.seq_length = 4;
        plan.dims.micro_batch = 5;
        plan.dims.micro_batches = 1;
        plan.dims.vocab = 10;
        const auto source = make_random_tokens(3, 10);
        const Sampler sampler(plan, *source);
        std::vector<std::int32_t> batch(25);
        install_signal_handlers(std::chrono::milliseconds(0));
        const bool before = sampler.fill(0, batch).ok();
        std::raise(SIGTERM);
        const Status behind = sampler.fill(0, batch);
        std::fputs(before && !behind.ok() ? behind.error().code.c_str() : "not given up", stderr);
        std::_Exit(0);
      },
      ::testing::ExitedWithCode(0), "RN033");
}

TEST(RandomTokens, AreUniformAndRepeatable) {
  const auto source = make_random_tokens(3, 10);
  const Tokens all = tokens_of(*source, 0, 20000);
  std::vector<int> counts(10);
  for (const std::int32_t token : all) ++counts.at(static_cast<std::size_t>(token));
  for (const int count : counts) EXPECT_NEAR(count, 2000, 5 * std::sqrt(20000 * 0.09));
  EXPECT_EQ(tokens_of(*source, 7, 5), Tokens(all.begin() + 7, all.begin() + 12));
  EXPECT_NE(tokens_of(*make_random_tokens(4, 10), 0, 50), Tokens(all.begin(), all.begin() + 50));
}

}  // namespace
}  // namespace capstan::runtime::testing
