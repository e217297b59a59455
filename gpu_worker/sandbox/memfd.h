// Memory handed between processes as a descriptor.
#ifndef KMOSAIC_GPU_WORKER_SANDBOX_MEMFD_H_
#define KMOSAIC_GPU_WORKER_SANDBOX_MEMFD_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "gpu_worker/sandbox/unique_fd.h"

namespace kmosaic {

// A memfd that holds `bytes` and that nobody can change any more (all seals set), so one
// descriptor may be given to several untrusted processes.
absl::StatusOr<UniqueFd> SealedMemfd(const std::string& name, std::string_view bytes);

// An empty, writable memfd of `size_bytes`: room for what another process leaves behind.
absl::StatusOr<UniqueFd> WritableMemfd(const std::string& name, uint64_t size_bytes);

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_SANDBOX_MEMFD_H_
