#include "common/base/text.h"

#include <catch2/catch.hpp>
#include <random>

namespace kmosaic {

TEST_CASE("valid UTF-8 is kept as it is") {
  std::string text = "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80";
  text += '\0';
  CHECK(ToValidUtf8(text) == text);
}

TEST_CASE("each run of bad bytes becomes one replacement character") {
  CHECK(ToValidUtf8("a\xFF\xFE"
                    "b") ==
        "a\xEF\xBF\xBD"
        "b");
  CHECK(ToValidUtf8("\xED\xA0\x80") == "\xEF\xBF\xBD");      // surrogate
  CHECK(ToValidUtf8("\xC0\xAF") == "\xEF\xBF\xBD");          // overlong
  CHECK(ToValidUtf8("x\xE2\x82") == "x\xEF\xBF\xBD");        // cut short
  CHECK(ToValidUtf8("\xF5\x80\x80\x80") == "\xEF\xBF\xBD");  // above U+10FFFF
}

TEST_CASE("cleaning is idempotent on any bytes") {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes(random() % 40, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    std::string once = ToValidUtf8(bytes);
    REQUIRE(ToValidUtf8(once) == once);
  }
}

TEST_CASE("truncation never cuts a character") {
  std::string text =
      "ab\xE2\x82\xAC"
      "cd";
  CHECK(TruncateUtf8(text, 2) == "ab");
  CHECK(TruncateUtf8(text, 3) == "ab");
  CHECK(TruncateUtf8(text, 4) == "ab");
  CHECK(TruncateUtf8(text, 5) == "ab\xE2\x82\xAC");
  CHECK(TruncateUtf8(text, 100) == text);
}

TEST_CASE("eliding keeps head and tail and counts what is gone") {
  std::string text = std::string(50, 'a') + std::string(50, 'b');
  std::string cut = ElideMiddle(text, 20);
  CHECK(cut == std::string(10, 'a') + "\n[... 80 bytes left out ...]\n" + std::string(10, 'b'));
  CHECK(ElideMiddle("short", 20) == "short");
}

}  // namespace kmosaic
