// Files of /proc and of cgroups.
#ifndef KMOSAIC_GPU_WORKER_SANDBOX_KERNEL_FILE_H_
#define KMOSAIC_GPU_WORKER_SANDBOX_KERNEL_FILE_H_

#include <string>

namespace kmosaic {

// What the file holds; empty when it cannot be opened or read. Its process may end at any moment,
// also between two reads: std::ifstream throws then, this does not.
std::string ReadKernelFile(const std::string& path);

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_SANDBOX_KERNEL_FILE_H_
