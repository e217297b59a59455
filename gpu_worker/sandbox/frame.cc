#include "gpu_worker/sandbox/frame.h"

#include <endian.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"

namespace kmosaic {
namespace {

constexpr size_t kHeaderBytes = 8;
constexpr size_t kMaxFds = 16;

// Deeper than any message; copying and destroying a tree of JSON takes stack for each level.
constexpr int kMaxDepth = 200;

// Whether brackets outside of strings nest deeper than that.
bool IsTooDeep(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kMaxDepth) return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

bool WouldBlock(int error) { return error == EAGAIN || error == EWOULDBLOCK; }

absl::Status PeerGone() { return absl::UnavailableError("the other process closed its socket"); }

absl::Status SocketError(int error, const char* what) {
  if (error == EPIPE || error == ECONNRESET) return PeerGone();
  return ErrnoStatus(error, what);
}

}  // namespace

FrameWriter::FrameWriter(const nlohmann::json& message, std::vector<int> fds)
    : fds_(std::move(fds)) {
  // Text that is not UTF-8 must not throw: it is replaced.
  std::string text = message.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  uint32_t header[2] = {htole32(static_cast<uint32_t>(text.size())),
                        htole32(static_cast<uint32_t>(fds_.size()))};
  bytes_.assign(reinterpret_cast<const char*>(header), sizeof header);
  bytes_ += text;
}

absl::StatusOr<bool> FrameWriter::Write(int socket) {
  while (sent_ < bytes_.size()) {
    iovec bytes{bytes_.data() + sent_, bytes_.size() - sent_};
    msghdr message{};
    message.msg_iov = &bytes;
    message.msg_iovlen = 1;
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMaxFds)] = {};
    if (sent_ == 0 && !fds_.empty()) {
      if (fds_.size() > kMaxFds) return absl::InternalError("too many descriptors for a frame");
      message.msg_control = control;
      message.msg_controllen = CMSG_SPACE(sizeof(int) * fds_.size());
      cmsghdr* header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(sizeof(int) * fds_.size());
      std::memcpy(CMSG_DATA(header), fds_.data(), sizeof(int) * fds_.size());
    }
    ssize_t count = sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0) {
      if (errno == EINTR) continue;
      if (WouldBlock(errno)) return false;
      return SocketError(errno, "send a frame");
    }
    sent_ += static_cast<size_t>(count);
  }
  return true;
}

absl::StatusOr<bool> FrameReader::ReadHeader(int socket) {
  while (header_.size() < kHeaderBytes) {
    char buffer[kHeaderBytes];
    iovec bytes{buffer, kHeaderBytes - header_.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMaxFds)];
    msghdr message{};
    message.msg_iov = &bytes;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    ssize_t count = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (count < 0) {
      if (errno == EINTR) continue;
      if (WouldBlock(errno)) return false;
      return SocketError(errno, "receive a frame");
    }
    for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
         header = CMSG_NXTHDR(&message, header)) {
      if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
      size_t fd_count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (size_t i = 0; i < fd_count; ++i) {
        int fd;
        std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof fd);
        fds_.emplace_back(fd);
      }
    }
    if (count == 0) return PeerGone();
    if ((message.msg_flags & MSG_CTRUNC) != 0 || fds_.size() > kMaxFds) {
      return absl::DataLossError(absl::StrCat("a frame with more than ", kMaxFds, " descriptors"));
    }
    header_.append(buffer, static_cast<size_t>(count));
  }
  return true;
}

absl::StatusOr<bool> FrameReader::Read(int socket) {
  auto header = ReadHeader(socket);
  if (!header.ok() || !*header) return header;
  uint32_t words[2];
  std::memcpy(words, header_.data(), sizeof words);
  size_t size = le32toh(words[0]);
  if (size > max_json_bytes_) {
    return absl::DataLossError(
        absl::StrCat("a frame of ", size, " bytes; at most ", max_json_bytes_, " are taken"));
  }
  if (le32toh(words[1]) != fds_.size()) {
    return absl::DataLossError(absl::StrCat("a frame that names ", le32toh(words[1]),
                                            " descriptors and carries ", fds_.size()));
  }
  // Grows with what really arrives, so that a header alone costs nothing.
  while (body_received_ < size) {
    if (body_.size() == body_received_) {
      body_.resize(std::min(size, std::max<size_t>(65536, body_.size() * 2)));
    }
    ssize_t count =
        recv(socket, body_.data() + body_received_, body_.size() - body_received_, MSG_DONTWAIT);
    if (count < 0) {
      if (errno == EINTR) continue;
      if (WouldBlock(errno)) return false;
      return SocketError(errno, "receive a frame");
    }
    if (count == 0) return PeerGone();
    body_received_ += static_cast<size_t>(count);
  }
  if (IsTooDeep(std::string_view(body_).substr(0, size))) {
    return absl::DataLossError(
        absl::StrCat("a frame of JSON nested deeper than ", kMaxDepth, " levels"));
  }
  frame_.message =
      nlohmann::json::parse(body_.begin(), body_.begin() + static_cast<ptrdiff_t>(size), nullptr,
                            /*allow_exceptions=*/false);
  frame_.fds = std::move(fds_);
  fds_.clear();
  header_.clear();
  body_.clear();
  body_received_ = 0;
  if (!frame_.message.is_object()) return absl::DataLossError("a frame that is no JSON object");
  return true;
}

Frame FrameReader::Take() { return std::exchange(frame_, Frame()); }

}  // namespace kmosaic
