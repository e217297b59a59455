#include "gpu_worker/sandbox/frame.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <cstring>

#include "gpu_worker/sandbox/memfd.h"

namespace kmosaic {
namespace {

struct Pair {
  Pair() {
    int fds[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0);
    left = UniqueFd(fds[0]);
    right = UniqueFd(fds[1]);
  }
  UniqueFd left, right;
};

void SendRaw(int fd, uint32_t size, uint32_t count, const std::string& text) {
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &size, 4);
  std::memcpy(bytes.data() + 4, &count, 4);
  bytes += text;
  REQUIRE(send(fd, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
}

TEST_CASE("a frame arrives with its descriptors") {
  Pair pair;
  auto memory = SealedMemfd("x", "content");
  REQUIRE(memory.ok());
  FrameWriter writer({{"op", "x"}}, {memory->get()});
  CHECK(*writer.Write(pair.left.get()));
  FrameReader reader(1000);
  REQUIRE(*reader.Read(pair.right.get()));
  Frame frame = reader.Take();
  CHECK(frame.message["op"] == "x");
  REQUIRE(frame.fds.size() == 1);
  char text[16] = {};
  CHECK(pread(frame.fds[0].get(), text, sizeof text, 0) == 7);
  CHECK(std::string(text) == "content");
  CHECK((fcntl(frame.fds[0].get(), F_GETFD) & FD_CLOEXEC) != 0);
}

TEST_CASE("a large frame is sent and received piece by piece") {
  Pair pair;
  std::string large(3 << 20, 'x');
  FrameWriter writer({{"text", large}}, {});
  FrameReader reader(8 << 20);
  bool sent = false;
  bool received = false;
  for (int i = 0; i < 100000 && !received; ++i) {
    if (!sent) sent = *writer.Write(pair.left.get());
    received = *reader.Read(pair.right.get());
  }
  REQUIRE(received);
  CHECK(reader.Take().message["text"] == large);
}

TEST_CASE("two frames in a row are two frames") {
  Pair pair;
  for (int i : {1, 2}) CHECK(*FrameWriter({{"n", i}}, {}).Write(pair.left.get()));
  FrameReader reader(1000);
  REQUIRE(*reader.Read(pair.right.get()));
  CHECK(reader.Take().message["n"] == 1);
  REQUIRE(*reader.Read(pair.right.get()));
  CHECK(reader.Take().message["n"] == 2);
  CHECK_FALSE(*reader.Read(pair.right.get()));
}

TEST_CASE("what is no frame is refused without taking memory for it") {
  struct Bad {
    uint32_t size;
    uint32_t count;
    const char* text;
  };
  for (const Bad& bad : {Bad{0xffffffff, 0, ""}, Bad{3, 1, "{}x"}, Bad{3, 0, "[1]"},
                         Bad{3, 0, "{x}"}, Bad{0, 0, ""}, Bad{5, 0, "\xff\xfe\x00\x01\x02"}}) {
    Pair pair;
    SendRaw(pair.left.get(), bad.size, bad.count, std::string(bad.text).substr(0, bad.size));
    if (bad.size == 5) REQUIRE(send(pair.left.get(), "xxxxx", 5, 0) == 5);
    FrameReader reader(1000);
    CHECK(absl::IsDataLoss(reader.Read(pair.right.get()).status()));
  }
}

TEST_CASE("a tree that would take the stack of who copies it is refused") {
  auto sent = [](const std::string& text) {
    Pair pair;
    // Larger than a socket's buffer, so by turns.
    FrameReader reader(16 << 20);
    std::string bytes(8, '\0');
    uint32_t size = static_cast<uint32_t>(text.size());
    std::memcpy(bytes.data(), &size, 4);
    bytes += text;
    size_t done = 0;
    for (;;) {
      ssize_t count = send(pair.left.get(), bytes.data() + done, bytes.size() - done, 0);
      if (count > 0) done += static_cast<size_t>(count);
      auto read = reader.Read(pair.right.get());
      if (!read.ok()) return read.status();
      if (*read) return absl::OkStatus();
    }
  };
  auto nested = [](size_t depth) {
    return "{\"a\":" + std::string(depth, '[') + std::string(depth, ']') + "}";
  };
  CHECK(sent(nested(100)).ok());
  CHECK(absl::IsDataLoss(sent(nested(1000))));
  CHECK(absl::IsDataLoss(sent(nested(7 << 20))));
  // Brackets in a string are text.
  CHECK(sent("{\"a\":\"\\\"" + std::string(5000, '[') + "\"}").ok());
}

TEST_CASE("a peer that is gone is told apart from one that is slow") {
  Pair pair;
  FrameReader reader(1000);
  CHECK_FALSE(*reader.Read(pair.right.get()));
  pair.left.Reset();
  CHECK(absl::IsUnavailable(reader.Read(pair.right.get()).status()));
  FrameWriter writer({{"op", "x"}}, {});
  CHECK(absl::IsUnavailable(writer.Write(pair.right.get()).status()));
}

TEST_CASE("text that is not UTF-8 is replaced, not thrown") {
  Pair pair;
  FrameWriter writer({{"text", "\xff"}}, {});
  CHECK(*writer.Write(pair.left.get()));
  FrameReader reader(1000);
  REQUIRE(*reader.Read(pair.right.get()));
  CHECK(reader.Take().message["text"] == "\xEF\xBF\xBD");
}

TEST_CASE("a sealed memfd cannot be changed") {
  auto memory = SealedMemfd("x", "content");
  REQUIRE(memory.ok());
  CHECK(pwrite(memory->get(), "y", 1, 0) < 0);
  CHECK(ftruncate(memory->get(), 0) < 0);
  auto room = WritableMemfd("y", 10);
  REQUIRE(room.ok());
  CHECK(pwrite(room->get(), "y", 1, 0) == 1);
  CHECK(ftruncate(room->get(), 1 << 20) < 0);
}

}  // namespace
}  // namespace kmosaic
