#include "grammar/source/sha256.h"

#include <gtest/gtest.h>

#include <string>

namespace capstan {
namespace {

// Vectors of FIPS 180-4 examples and NIST's SHAVS short messages.
TEST(Sha256, GivesThePublishedDigests) {
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, DoesNotDependOnHowTheTextWasCut) {
  // Lengths around the block size and around the place where the length still fits into the last block.
  for (const std::size_t length : {1u, 54u, 55u, 56u, 57u, 63u, 64u, 65u, 119u, 120u, 128u, 1000u}) {
    std::string text;
    for (std::size_t i = 0; i < length; ++i) text.push_back(static_cast<char>(i * 7 + 3));
    const std::string whole = sha256(text);
    for (const std::size_t piece : {1u, 3u, 63u, 64u, 65u}) {
      Sha256 hash;
      for (std::size_t at = 0; at < text.size(); at += piece)
        hash.update(std::string_view(text).substr(at, piece));
      EXPECT_EQ(hash.finish(), whole) << length << " in pieces of " << piece;
    }
  }
}

}  // namespace
}  // namespace capstan
