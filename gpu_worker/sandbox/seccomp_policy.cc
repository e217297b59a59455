#include "gpu_worker/sandbox/seccomp_policy.h"

#include <asm/ioctls.h>
#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <cerrno>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"

namespace kmosaic {
namespace {

// Names that this libseccomp does not know yet are passed over: the kernel of such a
// system call is newer than the library, and none of them gives a way out by itself.
constexpr const char* kDenied[] = {
    // other processes
    "ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "kcmp", "pidfd_getfd",
    // kernel interfaces with a long list of faults
    "bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "io_uring_enter",
    "io_uring_register", "keyctl", "add_key", "request_key", "fanotify_init", "lookup_dcookie",
    // namespaces and mounts
    "mount", "umount", "umount2", "pivot_root", "chroot", "move_mount", "open_tree", "fsopen",
    "fsmount", "fsconfig", "fspick", "mount_setattr", "setns", "unshare",
    // the machine
    "kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module", "reboot",
    "swapon", "swapoff", "acct", "syslog", "quotactl", "quotactl_fd", "settimeofday", "stime",
    "clock_settime", "clock_adjtime", "adjtimex", "vhangup", "personality", "iopl", "ioperm",
    "sethostname", "setdomainname",
    // files by handle, past the mount tree
    "name_to_handle_at", "open_by_handle_at",
    // memory that belongs to no process, so no watchdog sees it
    "shmget"};

struct ReleaseContext {
  void operator()(void* context) const { seccomp_release(context); }
};
using Context = std::unique_ptr<void, ReleaseContext>;

absl::Status Check(int result, const std::string& what) {
  if (result == 0) return absl::OkStatus();
  return ErrnoStatus(-result, "seccomp rule for " + what);
}

absl::Status Deny(void* context, const char* name, uint32_t action) {
  int number = seccomp_syscall_resolve_name(name);
  if (number == __NR_SCMP_ERROR || number < 0) return absl::OkStatus();
  return Check(seccomp_rule_add(context, action, number, 0), name);
}

}  // namespace

absl::StatusOr<UniqueFd> MakeSeccompProgram() {
  Context context(seccomp_init(SCMP_ACT_ALLOW));
  if (context == nullptr) return absl::InternalError("seccomp_init failed");
  for (const char* name : kDenied) {
    KMOSAIC_RETURN_IF_ERROR(Deny(context.get(), name, SCMP_ACT_ERRNO(EPERM)));
  }
  KMOSAIC_RETURN_IF_ERROR(Deny(context.get(), "clone3", SCMP_ACT_ERRNO(ENOSYS)));
  for (uint64_t flag : {CLONE_NEWUSER, CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWNET, CLONE_NEWIPC,
                        CLONE_NEWUTS, CLONE_NEWCGROUP}) {
    KMOSAIC_RETURN_IF_ERROR(
        Check(seccomp_rule_add(context.get(), SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
                               SCMP_A0(SCMP_CMP_MASKED_EQ, flag, flag)),
              "clone into namespaces"));
  }
  // The kernel looks at the low 32 bits of the request only.
  KMOSAIC_RETURN_IF_ERROR(
      Check(seccomp_rule_add(context.get(), SCMP_ACT_ERRNO(EPERM), SCMP_SYS(ioctl), 1,
                             SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffffu, TIOCSTI)),
            "ioctl TIOCSTI"));
  KMOSAIC_RETURN_IF_ERROR(
      Check(seccomp_rule_add(context.get(), SCMP_ACT_ERRNO(EAFNOSUPPORT), SCMP_SYS(socket), 1,
                             SCMP_A0(SCMP_CMP_NE, AF_UNIX)),
            "socket"));

  UniqueFd fd(memfd_create("kmosaic-seccomp", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) return ErrnoStatus(errno, "memfd_create for the seccomp program");
  KMOSAIC_RETURN_IF_ERROR(Check(seccomp_export_bpf(context.get(), fd.get()), "export"));
  if (fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0 ||
      lseek(fd.get(), 0, SEEK_SET) < 0) {
    return ErrnoStatus(errno, "seal the seccomp program");
  }
  return fd;
}

}  // namespace kmosaic
