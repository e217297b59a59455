// The system calls that no sandboxed program may make.
#ifndef KMOSAIC_GPU_WORKER_SANDBOX_SECCOMP_POLICY_H_
#define KMOSAIC_GPU_WORKER_SANDBOX_SECCOMP_POLICY_H_

#include "absl/status/statusor.h"
#include "gpu_worker/sandbox/unique_fd.h"

namespace kmosaic {

// A sealed memfd with the filter program (struct sock_filter[], native byte order), as
// kmosaic_enter and bwrap's --seccomp take it. A deny list, made with libseccomp: tracing
// and reading other processes, namespaces and mounts, kernel keys, BPF, performance
// counters, userfaultfd, io_uring, modules, clocks, System V shared memory, opening by
// handle: EPERM; every socket but AF_UNIX: EAFNOSUPPORT; clone3: ENOSYS, so that the C
// library falls back to clone, whose flags can be looked at. What CUDA, nvcc and torch
// need (memfd_create, mlock, scheduling, ioctl on devices) stays.
absl::StatusOr<UniqueFd> MakeSeccompProgram();

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_SANDBOX_SECCOMP_POLICY_H_
