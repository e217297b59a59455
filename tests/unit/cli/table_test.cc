#include "cli/output/table.h"

#include <catch2/catch.hpp>

#include "cli/output/numbers.h"

using namespace kmosaic;

TEST_CASE("Width counts characters as a terminal shows them") {
  CHECK(DisplayWidth("abc") == 3);
  CHECK(DisplayWidth("müßig") == 5);
  CHECK(DisplayWidth("日本") == 4);
  CHECK(DisplayWidth("e\xcc\x81") == 1);
  CHECK(DisplayWidth("█░") == 2);
  CHECK(DisplayWidth("\x1b[32mok\x1b[0m") == 2);
  CHECK(DisplayWidth("\xff") == 1);
  CHECK(DisplayWidth("") == 0);
}

TEST_CASE("Text is shortened on a character's boundary") {
  CHECK(Shorten("abcdef", 6) == "abcdef");
  CHECK(Shorten("abcdef", 4) == "abc…");
  CHECK(Shorten("日本語", 4) == "日…");
  CHECK(Shorten("abc", 0) == "");
}

TEST_CASE("Columns are aligned and lines have no blanks at their end") {
  Table table({{"TASK"}, {"N", Align::kRight}, {"WHY"}});
  table.AddRow({"größe", "7", ""});
  table.AddRow({"a", "12345", "line\nbreak"});
  CHECK(table.Render() ==
        "TASK       N  WHY\n"
        "größe      7\n"
        "a      12345  line break\n");
}

TEST_CASE("The widest text columns give way until the table fits") {
  Table table({{"ID"}, {"REASON"}});
  table.AddRow({"short", "a reason that is much longer than there is room for"});
  std::string text = table.Render(30);
  CHECK(text ==
        "ID     REASON\n"
        "short  a reason that is much …\n");
  // Numbers are never cut, and no column gets narrower than eight.
  Table narrow({{"NUMBER", Align::kRight}, {"TEXT"}});
  narrow.AddRow({"123456789", "abcdefghijkl"});
  CHECK(narrow.Render(5) == "   NUMBER  TEXT\n123456789  abcdefg…\n");
}

TEST_CASE("Counts are written with three digits") {
  CHECK(ShortCount(0) == "0");
  CHECK(ShortCount(999) == "999");
  CHECK(ShortCount(1000) == "1.00k");
  CHECK(ShortCount(12345) == "12.3k");
  CHECK(ShortCount(99960) == "100k");
  CHECK(ShortCount(999600) == "1.00M");
  CHECK(ShortCount(4560000) == "4.56M");
  CHECK(ShortCount(2.5) == "2.5");
}

TEST_CASE("Durations are written with two units at most") {
  CHECK(ShortDuration(absl::Milliseconds(400)) == "0.4s");
  CHECK(ShortDuration(absl::Seconds(12)) == "12s");
  CHECK(ShortDuration(absl::Seconds(185)) == "3m05s");
  CHECK(ShortDuration(absl::Minutes(127)) == "2h07m");
  CHECK(ShortDuration(absl::Hours(76)) == "3d04h");
  CHECK(ShortDuration(-absl::Seconds(1)) == "0s");
  CHECK(ShortDuration(absl::Seconds(59.7)) == "1m00s");
}

TEST_CASE("Bytes and ages are written for people") {
  CHECK(ShortBytes(1023) == "1023 B");
  CHECK(ShortBytes(1536) == "1.5 KiB");
  CHECK(ShortBytes(uint64_t{3} << 30) == "3.0 GiB");
  absl::Time now = absl::FromUnixSeconds(1'700'000'000);
  CHECK(Ago(now, now) == "just now");
  CHECK(Ago(now - absl::Seconds(30), now) == "30s ago");
  CHECK(Ago(now - absl::Minutes(5), now) == "5m ago");
  CHECK(Ago(now - absl::Hours(47), now) == "47h ago");
  CHECK(Ago(now - absl::Hours(72), now) == "3d ago");
}
