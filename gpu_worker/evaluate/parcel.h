// A value on its way between processes.
#ifndef KMOSAIC_GPU_WORKER_EVALUATE_PARCEL_H_
#define KMOSAIC_GPU_WORKER_EVALUATE_PARCEL_H_

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "gpu_worker/evaluate/value.h"
#include "gpu_worker/sandbox/unique_fd.h"

namespace kmosaic {

// Where the tensors of calls lie while they go from process to process.
enum class BlockMemory {
  kHost,    // memfds, copied into our own memory on the way
  kDevice,  // memory of the GPU, of which we hold descriptors (harness/device_memory.py)
};
// "host", "device": "memory" of the roles' messages.
std::string BlockMemoryName(BlockMemory memory);

// A value as it came and as it goes on: JSON, the tensors' bytes, and both parsed. Memory of
// a GPU stays writable for who made it and for all it is passed on to.
struct Parcel {
  nlohmann::json node;
  // The bytes, in our own memory; null when they lie on a GPU.
  std::shared_ptr<const std::string> block;
  // Keeps memory of a GPU alive, from its start to where the last tensor ends.
  std::shared_ptr<const UniqueFd> device_block;
  uint64_t device_bytes = 0;
  // Without bytes when they lie on a GPU.
  Value value;

  bool on_device() const { return device_block != nullptr; }
  uint64_t size_bytes() const {
    return on_device() ? device_bytes : block == nullptr ? 0 : block->size();
  }
  // For another process: a sealed copy, or the same memory of a GPU.
  absl::StatusOr<UniqueFd> ToDescriptor(const std::string& name) const;
};

// Takes the next descriptor for `node` of a reply; `next` counts them. Whether memory of a
// GPU is there is seen when it is first looked at. INVALID_ARGUMENT: not as agreed.
absl::StatusOr<Parcel> ReadParcel(const nlohmann::json& node, const std::vector<UniqueFd>& fds,
                                  size_t* next, uint64_t max_bytes, BlockMemory memory);

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_EVALUATE_PARCEL_H_
