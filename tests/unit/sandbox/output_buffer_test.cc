#include "gpu_worker/sandbox/output_buffer.h"

#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>

namespace kmosaic {
namespace {

TEST_CASE("what fits is kept as it is") {
  OutputBuffer buffer(4, 4);
  buffer.Append("abc");
  buffer.Append("defgh");
  CHECK(buffer.Text() == "abcdefgh");
  CHECK(buffer.dropped_bytes() == 0);
}

TEST_CASE("the middle is dropped and counted") {
  OutputBuffer buffer(4, 4);
  for (char c = 'a'; c <= 'z'; ++c) buffer.Append(std::string(1, c));
  CHECK(buffer.total_bytes() == 26);
  CHECK(buffer.dropped_bytes() == 18);
  CHECK(buffer.Text() == "abcd\n[... 18 bytes left out ...]\nwxyz");
}

TEST_CASE("one large piece is cut like many small ones") {
  OutputBuffer buffer(4, 4);
  buffer.Append("abcdefghijklmnopqrstuvwxyz");
  CHECK(buffer.Text() == "abcd\n[... 18 bytes left out ...]\nwxyz");
}

TEST_CASE("the text is valid UTF-8 wherever it is cut") {
  std::string text;
  for (int i = 0; i < 20; ++i) text += "\xE2\x82\xAC";  // EURO SIGN
  for (size_t head = 3; head < 7; ++head) {
    OutputBuffer buffer(head, 5);
    buffer.Append(text);
    std::string shown = buffer.Text();
    INFO(shown);
    CHECK(shown.find("\xAC\n[") != std::string::npos);
    CHECK(shown.substr(shown.size() - 3) == "\xE2\x82\xAC");
  }
}

TEST_CASE("a pipe is drained without waiting, up to its end") {
  int fds[2];
  REQUIRE(pipe2(fds, O_NONBLOCK) == 0);
  OutputBuffer buffer(100, 100);
  CHECK_FALSE(*buffer.Drain(fds[0]));
  REQUIRE(write(fds[1], "text", 4) == 4);
  CHECK_FALSE(*buffer.Drain(fds[0]));
  close(fds[1]);
  CHECK(*buffer.Drain(fds[0]));
  CHECK(buffer.Text() == "text");
  close(fds[0]);
}

}  // namespace
}  // namespace kmosaic
