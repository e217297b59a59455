/* Entry of a forked process into the sandbox. Plain C over libc only, because it is
 * loaded into the Python process that forks the roles (harness/enter.py mirrors the
 * structure below; change both together).
 *
 * What kmosaic_enter builds, seen from the zygote that calls it in a fresh child:
 *
 *   zygote -- keeper -- init (pid 1 of a new pid namespace) -- role (kmosaic_enter returns here)
 *
 * The keeper holds init's pid until the daemon lets go of the status socket, so that the
 * number cannot be reused behind the daemon's back, and kills init when the daemon shuts
 * that socket down. Init reaps orphans and reports how the role ended. Each dies with its parent.
 *
 * Messages on the status socket (SOCK_SEQPACKET), first byte is the kind:
 *   'P' int32 pid of init, with its pidfd as SCM_RIGHTS     (keeper)
 *   'R' the sandbox stands, the role starts                 (init)
 *   'E' text: which step failed and what to do              (keeper or init)
 *   'X' int32 wait status of the role                       (init)
 *   'Z' int32 wait status of init                           (keeper)
 */
#ifndef KMOSAIC_GPU_WORKER_SANDBOX_ENTER_H_
#define KMOSAIC_GPU_WORKER_SANDBOX_ENTER_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
  /* Go on without /proc where the kernel refuses a fresh one (some pods mask it). */
  KMOSAIC_ENTER_ALLOW_NO_PROC = 1,
  /* No namespaces, no private root, no seccomp: limits and clean descriptors only. The
   * explicit override for machines that cannot isolate. */
  KMOSAIC_ENTER_UNSANDBOXED = 2,
};

struct kmosaic_enter_options {
  uint64_t size; /* sizeof(struct kmosaic_enter_options), checked */
  /* Canonical absolute paths (no symbolic link in them), none below another, shown
   * read-only at the same place; ends with NULL. */
  const char* const* readable;
  /* Symbolic links to make: path, target, path, target, ..., NULL. Their parents are
   * made; none lies below a readable path. */
  const char* const* links;
  /* Device nodes beyond null, zero, full, random, urandom; ends with NULL. With any of
   * them /sys is shown too (the CUDA driver reads it). */
  const char* const* devices;
  uint64_t tmp_bytes;   /* size of /tmp, and of /dev/shm */
  uint64_t processes;   /* RLIMIT_NPROC, threads included */
  uint64_t file_bytes;  /* RLIMIT_FSIZE */
  uint64_t cpu_seconds; /* RLIMIT_CPU, per process; 0: none */
  uint64_t open_files;  /* RLIMIT_NOFILE */
  const void* seccomp;  /* struct sock_filter[], native byte order */
  uint64_t seccomp_bytes;
  const int32_t* keep_fds; /* descriptors that the role keeps besides 0, 1, 2 */
  uint64_t keep_count;
  /* Open cgroup.procs files of the groups that init (and so the role) joins. */
  const int32_t* join_fds;
  uint64_t join_count;
  int32_t status_fd;
  int32_t output_fd; /* becomes 1 and 2 */
  uint32_t uid;      /* user and group seen inside, and taken on when root calls */
  uint32_t flags;
};

/* Call in a single-threaded forked child. Returns 0 in the role, and never in the other
 * processes: on failure an 'E' message is sent and the process exits with 125. */
int kmosaic_enter(const struct kmosaic_enter_options* options);

#ifdef __cplusplus
}
#endif

#endif /* KMOSAIC_GPU_WORKER_SANDBOX_ENTER_H_ */
