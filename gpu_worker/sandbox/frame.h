// Frames on a stream socket between the daemon and its Python processes: two
// little-endian u32 (bytes of JSON, number of descriptors), then JSON in UTF-8; the
// descriptors ride on the header.
#ifndef KMOSAIC_GPU_WORKER_SANDBOX_FRAME_H_
#define KMOSAIC_GPU_WORKER_SANDBOX_FRAME_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gpu_worker/sandbox/unique_fd.h"

namespace kmosaic {

struct Frame {
  nlohmann::json message;
  std::vector<UniqueFd> fds;
};

// Sends one frame over a non-blocking socket, piece by piece. The descriptors must stay
// open until it is done.
class FrameWriter {
 public:
  FrameWriter(const nlohmann::json& message, std::vector<int> fds);

  // True when all is sent, false when the socket takes no more now. UNAVAILABLE when the
  // peer is gone.
  absl::StatusOr<bool> Write(int socket);

 private:
  std::string bytes_;
  std::vector<int> fds_;
  size_t sent_ = 0;
};

// Receives frames over a non-blocking socket from a peer that is not trusted.
class FrameReader {
 public:
  explicit FrameReader(uint32_t max_json_bytes) : max_json_bytes_(max_json_bytes) {}

  // True when a frame is complete: Take() it. False when the socket has nothing more now.
  // UNAVAILABLE: the peer closed the connection. DATA_LOSS: what came is no frame (too
  // large, not JSON, not an object, descriptors missing).
  absl::StatusOr<bool> Read(int socket);

  Frame Take();

 private:
  absl::StatusOr<bool> ReadHeader(int socket);

  uint32_t max_json_bytes_;
  std::string header_;
  std::string body_;
  size_t body_received_ = 0;
  std::vector<UniqueFd> fds_;
  Frame frame_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_SANDBOX_FRAME_H_
