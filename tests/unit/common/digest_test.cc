#include "common/base/digest.h"

#include <catch2/catch.hpp>
#include <set>

#include "absl/strings/escaping.h"
#include "common/base/ids.h"

namespace kmosaic {

// Vectors: FIPS 180-4 examples and RFC 4231, test case 2.
TEST_CASE("SHA-256 and HMAC agree with their standards' vectors") {
  CHECK(Sha256Hex("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(Sha256Hex("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(absl::BytesToHexString(HmacSha256("Jefe", "what do ya want for nothing?")) ==
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

TEST_CASE("a digest in pieces is the digest of the whole") {
  Sha256 sha;
  sha.Update("a");
  sha.Update("");
  sha.Update("bc");
  CHECK(sha.FinishHex() == Sha256Hex("abc"));
}

TEST_CASE("constant-time comparison tells length and content apart") {
  CHECK(ConstantTimeEquals("abc", "abc"));
  CHECK_FALSE(ConstantTimeEquals("abc", "abd"));
  CHECK_FALSE(ConstantTimeEquals("abc", "ab"));
}

TEST_CASE("random ids are distinct and safe in file names") {
  std::set<std::string> ids;
  for (int i = 0; i < 1000; ++i) ids.insert(RandomId("job"));
  CHECK(ids.size() == 1000);
  for (const std::string& id : ids) {
    REQUIRE(id.size() == 16);
    REQUIRE(id.find_first_not_of("abcdefghijklmnopqrstuvwxyz234567-") == std::string::npos);
  }
}

}  // namespace kmosaic
