#include "runtime/data/token_source.h"
#include "runtime/ops/philox.h"

namespace capstan::runtime {
namespace {

class RandomTokens final : public TokenSource {
 public:
  RandomTokens(std::uint64_t seed, std::int64_t vocab)
      : key_(philox_key(seed)), vocab_(static_cast<std::uint64_t>(vocab)) {}
  std::uint64_t count() const override { return std::uint64_t{1} << 62; }
  Status read(std::uint64_t first, std::span<std::int32_t> out) const override {
    for (std::int32_t& token : out) {
      const std::uint64_t block = first / 4;
      // The third word keeps these numbers apart from dropout's (there a counter of micro-batches).
      const PhiloxBlock words =
          philox4x32_10({static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32),
                         0xdada0001u, 0x40000000u},
                        key_);
      token = static_cast<std::int32_t>(words[first % 4] * vocab_ >> 32);
      ++first;
    }
    return {};
  }
  const std::string& name() const override { return name_; }
  DataIdentity identity() const override { return {count(), {}}; }

 private:
  PhiloxKey key_;
  std::uint64_t vocab_;
  std::string name_ = "random tokens";
};

}  // namespace

std::unique_ptr<TokenSource> make_random_tokens(std::uint64_t seed, std::int64_t vocab) {
  return std::make_unique<RandomTokens>(seed, vocab);
}

}  // namespace capstan::runtime
