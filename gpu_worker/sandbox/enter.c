#define _GNU_SOURCE
#include "gpu_worker/sandbox/enter.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/mount.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif

enum { kSetupFailed = 125, kPathBytes = 4096 };

/* Where the host's root hangs while the new one is built. */
#define OLD_ROOT "/old"
#define NEW_ROOT "/new"

static void send_status(int fd, const void* bytes, size_t size) {
  while (send(fd, bytes, size, MSG_NOSIGNAL) < 0 && errno == EINTR) {
  }
}

static void send_wait_status(int fd, char kind, int32_t value) {
  char message[1 + sizeof value];
  message[0] = kind;
  memcpy(message + 1, &value, sizeof value);
  send_status(fd, message, sizeof message);
}

__attribute__((format(printf, 2, 3), noreturn)) static void fail(int status_fd, const char* format,
                                                                 ...) {
  char message[1500];
  message[0] = 'E';
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(message + 1, sizeof message - 1, format, arguments);
  va_end(arguments);
  if (length < 0) length = 0;
  if ((size_t)length > sizeof message - 2) length = (int)sizeof message - 2;
  send_status(status_fd, message, (size_t)length + 1);
  _exit(kSetupFailed);
}

static int pidfd_open_(pid_t pid) { return (int)syscall(SYS_pidfd_open, pid, 0); }

static void pidfd_kill(int pidfd) { syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0); }

/* Closes every descriptor that is not in `keep`. */
static void close_all_but(const int32_t* keep, size_t count, int status_fd) {
  unsigned next = 0;
  for (;;) {
    /* The lowest kept descriptor that is not below `next`. */
    unsigned lowest = ~0u;
    for (size_t i = 0; i < count; i++) {
      if (keep[i] >= 0 && (unsigned)keep[i] >= next && (unsigned)keep[i] < lowest) {
        lowest = (unsigned)keep[i];
      }
    }
    if (lowest == ~0u) {
      if (syscall(SYS_close_range, next, ~0u, 0) < 0) {
        fail(status_fd, "close_range: %s (Linux 5.9 or newer is needed)", strerror(errno));
      }
      return;
    }
    if (lowest > next) syscall(SYS_close_range, next, lowest - 1, 0);
    next = lowest + 1;
  }
}

/* The kernel kills this process when `parent` (a pidfd) ends; ends now if it already has. */
static void die_with(int parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  struct pollfd gone = {.fd = parent, .events = POLLIN};
  if (poll(&gone, 1, 0) != 0) _exit(kSetupFailed);
}

static void set_limit(int status_fd, int which, const char* name, uint64_t soft, uint64_t hard) {
  struct rlimit current;
  if (getrlimit(which, &current) == 0 && current.rlim_max != RLIM_INFINITY) {
    if (hard > current.rlim_max) hard = current.rlim_max;
    if (soft > hard) soft = hard;
  }
  struct rlimit limit = {.rlim_cur = soft, .rlim_max = hard};
  if (setrlimit(which, &limit) < 0) {
    fail(status_fd, "setrlimit %s to %llu: %s", name, (unsigned long long)soft, strerror(errno));
  }
}

static void set_limits(const struct kmosaic_enter_options* o) {
  /* One byte: no file, and no call of a core_pattern program either, which 0 would make. */
  set_limit(o->status_fd, RLIMIT_CORE, "CORE", 1, 1);
  set_limit(o->status_fd, RLIMIT_FSIZE, "FSIZE", o->file_bytes, o->file_bytes);
  set_limit(o->status_fd, RLIMIT_NOFILE, "NOFILE", o->open_files, o->open_files);
  set_limit(o->status_fd, RLIMIT_NPROC, "NPROC", o->processes, o->processes);
  if (o->cpu_seconds != 0) {
    set_limit(o->status_fd, RLIMIT_CPU, "CPU", o->cpu_seconds, o->cpu_seconds + 5);
  }
}

static void write_proc_file(int status_fd, int proc_fd, const char* path, const char* text,
                            int required) {
  int fd = openat(proc_fd, path, O_WRONLY | O_CLOEXEC);
  ssize_t written = fd < 0 ? -1 : write(fd, text, strlen(text));
  if (written < 0 && required) {
    fail(status_fd,
         "write /proc/%s: %s. User namespaces may be restricted here; see "
         "user.max_user_namespaces and kernel.apparmor_restrict_unprivileged_userns",
         path, strerror(errno));
  }
  if (fd >= 0) close(fd);
}

/* Maps `inside` in this process's new user namespace to `outside`. */
static void map_user(int status_fd, int proc_fd, uid_t inside, uid_t outside_uid,
                     gid_t outside_gid) {
  char line[64];
  /* Absent before Linux 3.19 only. */
  write_proc_file(status_fd, proc_fd, "self/setgroups", "deny", 0);
  snprintf(line, sizeof line, "%u %u 1", inside, outside_gid);
  write_proc_file(status_fd, proc_fd, "self/gid_map", line, 1);
  snprintf(line, sizeof line, "%u %u 1", inside, outside_uid);
  write_proc_file(status_fd, proc_fd, "self/uid_map", line, 1);
}

static void join_path(int status_fd, char* out, const char* base, const char* path) {
  if (snprintf(out, kPathBytes, "%s%s", base, path) >= kPathBytes) {
    fail(status_fd, "path too long: %s", path);
  }
}

/* Makes the directories above `path`, which lies in the new root. */
static void make_parents(int status_fd, char* path) {
  for (char* slash = strchr(path + sizeof NEW_ROOT, '/'); slash; slash = strchr(slash + 1, '/')) {
    *slash = '\0';
    if (mkdir(path, 0755) < 0 && errno != EEXIST) {
      fail(status_fd, "mkdir %s: %s", path, strerror(errno));
    }
    *slash = '/';
  }
}

static void bind_path(int status_fd, const char* path, int read_only) {
  char from[kPathBytes], to[kPathBytes];
  join_path(status_fd, from, OLD_ROOT, path);
  join_path(status_fd, to, NEW_ROOT, path);
  // Not stat(): its symbol would bind this library to glibc 2.33 and later.
  struct statx info;
  if (statx(AT_FDCWD, from, 0, STATX_TYPE, &info) < 0) {
    fail(status_fd,
         "cannot reach %s: %s. It must exist, and where the worker may not use mount as root "
         "every folder above it must be open to user %u",
         path, strerror(errno), geteuid());
  }
  make_parents(status_fd, to);
  if (S_ISDIR(info.stx_mode)) {
    if (mkdir(to, 0755) < 0 && errno != EEXIST)
      fail(status_fd, "mkdir %s: %s", path, strerror(errno));
  } else {
    int fd = open(to, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0) fail(status_fd, "create %s: %s", path, strerror(errno));
    close(fd);
  }
  if (mount(from, to, NULL, MS_BIND | MS_REC, NULL) < 0) {
    fail(status_fd, "bind mount of %s: %s", path, strerror(errno));
  }
  if (!read_only) return;
  struct mount_attr attributes = {.attr_set =
                                      MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV};
  if (syscall(SYS_mount_setattr, AT_FDCWD, to, AT_RECURSIVE, &attributes, sizeof attributes) < 0) {
    fail(status_fd, "mount_setattr read-only on %s: %s (Linux 5.12 or newer is needed)", path,
         strerror(errno));
  }
}

static void mount_tmpfs(int status_fd, const char* path, const char* mode, uint64_t bytes) {
  char options[128];
  snprintf(options, sizeof options, "mode=%s,size=%llu,nr_inodes=65536", mode,
           (unsigned long long)bytes);
  if (mkdir(path, 0755) < 0 && errno != EEXIST)
    fail(status_fd, "mkdir %s: %s", path, strerror(errno));
  if (mount("tmpfs", path, "tmpfs", MS_NOSUID | MS_NODEV, options) < 0) {
    fail(status_fd, "mount tmpfs on %s: %s", path, strerror(errno));
  }
}

static void make_link(int status_fd, const char* target, const char* path) {
  char to[kPathBytes];
  join_path(status_fd, to, NEW_ROOT, path);
  make_parents(status_fd, to);
  if (symlink(target, to) < 0 && errno != EEXIST) {
    fail(status_fd, "symlink %s: %s", path, strerror(errno));
  }
}

static void make_file(int status_fd, const char* path, const char* text) {
  int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0 || write(fd, text, strlen(text)) < 0) {
    fail(status_fd, "write %s: %s", path, strerror(errno));
  }
  close(fd);
}

static void make_devices(const struct kmosaic_enter_options* o) {
  static const char* const kNodes[] = {"/dev/null",   "/dev/zero",    "/dev/full",
                                       "/dev/random", "/dev/urandom", NULL};
  mount_tmpfs(o->status_fd, NEW_ROOT "/dev", "0755", 65536);
  for (const char* const* node = kNodes; *node; node++) bind_path(o->status_fd, *node, 0);
  for (const char* const* node = o->devices; *node; node++) bind_path(o->status_fd, *node, 0);
  make_link(o->status_fd, "/proc/self/fd", "/dev/fd");
  make_link(o->status_fd, "/proc/self/fd/0", "/dev/stdin");
  make_link(o->status_fd, "/proc/self/fd/1", "/dev/stdout");
  make_link(o->status_fd, "/proc/self/fd/2", "/dev/stderr");
  mount_tmpfs(o->status_fd, NEW_ROOT "/dev/shm", "1777", o->tmp_bytes);
  if (mount(NULL, NEW_ROOT "/dev", NULL,
            MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0) {
    fail(o->status_fd, "make /dev read-only: %s", strerror(errno));
  }
  if (*o->devices) {
    bind_path(o->status_fd, "/sys", 1);
    /* Absent where cgroups are not mounted. */
    mount("tmpfs", NEW_ROOT "/sys/fs/cgroup", "tmpfs", MS_NOSUID | MS_NODEV | MS_RDONLY, "size=4k");
  }
}

static void mount_proc(const struct kmosaic_enter_options* o) {
  if (mkdir(NEW_ROOT "/proc", 0755) < 0) fail(o->status_fd, "mkdir /proc: %s", strerror(errno));
  if (mount("proc", NEW_ROOT "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) == 0) return;
  if (o->flags & KMOSAIC_ENTER_ALLOW_NO_PROC) return;
  fail(o->status_fd,
       "mount a fresh /proc: %s. Container runtimes that mask parts of /proc forbid it: run the "
       "worker's container with an unmasked /proc, or allow sandboxes without /proc",
       strerror(errno));
}

/* Builds the new root and moves into it. Runs as pid 1 of the new pid namespace, in a
 * mount namespace of its own. */
static void build_root(const struct kmosaic_enter_options* o) {
  int s = o->status_fd;
  char account[128];
  if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) {
    fail(s, "make mounts private: %s", strerror(errno));
  }
  mount_tmpfs(s, "/tmp", "0755", 1 << 20);
  if (mkdir("/tmp" OLD_ROOT, 0755) < 0) fail(s, "mkdir old root: %s", strerror(errno));
  if (syscall(SYS_pivot_root, "/tmp", "/tmp" OLD_ROOT) < 0 || chdir("/") < 0) {
    fail(s, "pivot_root: %s (a root on an initial ramdisk cannot be left)", strerror(errno));
  }
  mount_tmpfs(s, NEW_ROOT, "0755", 1 << 20);
  mount_proc(o);
  make_devices(o);
  mount_tmpfs(s, NEW_ROOT "/tmp", "1777", o->tmp_bytes);
  /* After /tmp, since some may lie below it. */
  for (const char* const* path = o->readable; *path; path++) bind_path(s, *path, 1);
  for (const char* const* link = o->links; *link; link += 2) make_link(s, link[1], link[0]);
  if (mkdir(NEW_ROOT "/etc", 0755) < 0 && errno != EEXIST)
    fail(s, "mkdir /etc: %s", strerror(errno));
  snprintf(account, sizeof account, "sandbox:x:%u:%u::/tmp:/nonexistent\n", o->uid, o->uid);
  make_file(s, NEW_ROOT "/etc/passwd", account);
  snprintf(account, sizeof account, "sandbox:x:%u:\n", o->uid);
  make_file(s, NEW_ROOT "/etc/group", account);
  if (chdir(NEW_ROOT) < 0 || syscall(SYS_pivot_root, ".", ".") < 0 ||
      umount2(".", MNT_DETACH) < 0 || chdir("/") < 0) {
    fail(s, "leave the host's root: %s", strerror(errno));
  }
  if (mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV, NULL) < 0) {
    fail(s, "make / read-only: %s", strerror(errno));
  }
}

static void join_groups(const struct kmosaic_enter_options* o) {
  for (uint64_t i = 0; i < o->join_count; i++) {
    if (write(o->join_fds[i], "0", 1) < 0) {
      fail(o->status_fd, "join the control group: %s", strerror(errno));
    }
  }
}

static void drop_capabilities(int status_fd) {
  for (int capability = 0; capability < 64; capability++) {
    if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) < 0 && errno == EINVAL) break;
  }
  prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct none[2];
  memset(none, 0, sizeof none);
  if (syscall(SYS_capset, &header, none) < 0) {
    fail(status_fd, "capset: %s", strerror(errno));
  }
}

static void install_filter(const struct kmosaic_enter_options* o) {
  struct sock_fprog program = {
      .len = (unsigned short)(o->seccomp_bytes / sizeof(struct sock_filter)),
      .filter = (struct sock_filter*)(uintptr_t)o->seccomp};
  if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0) {
    fail(o->status_fd, "seccomp filter: %s (the kernel needs CONFIG_SECCOMP_FILTER)",
         strerror(errno));
  }
}

/* Turns a process that real root started into user `uid` without any privilege outside. */
static void leave_root(const struct kmosaic_enter_options* o, int proc_fd) {
  if (setgroups(0, NULL) < 0 || setresgid(o->uid, o->uid, o->uid) < 0 ||
      setresuid(o->uid, o->uid, o->uid) < 0) {
    fail(o->status_fd, "become user %u: %s", o->uid, strerror(errno));
  }
  prctl(PR_SET_DUMPABLE, 1); /* else /proc/self/uid_map belongs to root */
  if (unshare(CLONE_NEWUSER) < 0) {
    fail(o->status_fd, "unshare user namespace: %s. Allow it: sysctl user.max_user_namespaces",
         strerror(errno));
  }
  map_user(o->status_fd, proc_fd, o->uid, o->uid, o->uid);
}

/* Pid 1 of the sandbox from here on: reaps whatever ends, reports the role's end. */
__attribute__((noreturn)) static void run_init(int status_fd, pid_t role) {
  close_all_but(&status_fd, 1, status_fd);
  prctl(PR_SET_DUMPABLE, 0); /* the role shares our user: keep it out of /proc/1 */
  for (;;) {
    int status;
    pid_t ended = waitpid(-1, &status, 0);
    if (ended == role) {
      send_wait_status(status_fd, 'X', status);
      _exit(0);
    }
    if (ended < 0 && errno != EINTR) _exit(kSetupFailed);
  }
}

/* Stays outside the namespaces; `child` is init (or the role, unsandboxed). */
__attribute__((noreturn)) static void run_keeper(const struct kmosaic_enter_options* o, pid_t child,
                                                 int pidfd) {
  char kind_and_pid[1 + sizeof(int32_t)] = {'P'};
  int32_t pid = child;
  memcpy(kind_and_pid + 1, &pid, sizeof pid);
  struct iovec bytes = {.iov_base = kind_and_pid, .iov_len = sizeof kind_and_pid};
  union {
    char buffer[CMSG_SPACE(sizeof(int))];
    struct cmsghdr align;
  } control;
  memset(&control, 0, sizeof control);
  struct msghdr message = {.msg_iov = &bytes,
                           .msg_iovlen = 1,
                           .msg_control = control.buffer,
                           .msg_controllen = sizeof control.buffer};
  struct cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  memcpy(CMSG_DATA(header), &pidfd, sizeof pidfd);
  while (sendmsg(o->status_fd, &message, MSG_NOSIGNAL) < 0 && errno == EINTR) {
  }

  int32_t keep[2] = {o->status_fd, pidfd};
  close_all_but(keep, 2, o->status_fd);
  int ended = 0;
  for (;;) {
    struct pollfd events[2] = {{.fd = o->status_fd, .events = POLLRDHUP},
                               {.fd = ended ? -1 : pidfd, .events = POLLIN}};
    if (poll(events, 2, -1) < 0) continue;
    if (events[1].revents) {
      /* Left a zombie on purpose: its number stays taken until the daemon lets go. */
      siginfo_t info;
      memset(&info, 0, sizeof info);
      waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT);
      int status =
          info.si_code == CLD_EXITED ? (info.si_status & 0xff) << 8 : info.si_status & 0x7f;
      if (o->flags & KMOSAIC_ENTER_UNSANDBOXED) {
        kill(-child, SIGKILL); /* what is left of its session's first group */
        send_wait_status(o->status_fd, 'X', status);
      }
      send_wait_status(o->status_fd, 'Z', status);
      ended = 1;
    }
    if (events[0].revents) {
      if (o->flags & KMOSAIC_ENTER_UNSANDBOXED) kill(-child, SIGKILL);
      pidfd_kill(pidfd);
      waitpid(child, NULL, 0);
      _exit(0);
    }
  }
}

/* Last steps in the role itself. */
static void become_role(const struct kmosaic_enter_options* o) {
  setsid();
  int null = open("/dev/null", O_RDONLY);
  if (null < 0) fail(o->status_fd, "open /dev/null: %s", strerror(errno));
  if (dup2(null, 0) < 0 || dup2(o->output_fd, 1) < 0 || dup2(o->output_fd, 2) < 0) {
    fail(o->status_fd, "dup2 of the output pipe: %s", strerror(errno));
  }
  int32_t keep[64] = {0, 1, 2};
  size_t count = 3;
  for (uint64_t i = 0; i < o->keep_count && count < 64; i++) keep[count++] = o->keep_fds[i];
  prctl(PR_SET_DUMPABLE, 1); /* it may look at its own /proc */
  close_all_but(keep, count, o->status_fd);
}

static int enter_unsandboxed(const struct kmosaic_enter_options* o, int zygote) {
  int self = pidfd_open_(getpid());
  pid_t role = fork();
  if (role < 0) fail(o->status_fd, "fork: %s", strerror(errno));
  if (role > 0) {
    die_with(zygote);
    run_keeper(o, role, pidfd_open_(role));
  }
  die_with(self);
  join_groups(o);
  set_limits(o);
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  send_status(o->status_fd, "R", 1);
  become_role(o);
  return 0;
}

int kmosaic_enter(const struct kmosaic_enter_options* o) {
  int s = o->status_fd;
  if (o->size != sizeof *o) {
    fail(s, "enter options of %llu bytes, expected %zu: harness and library are not of one build",
         (unsigned long long)o->size, sizeof *o);
  }
  signal(SIGCHLD, SIG_DFL); /* the zygote ignores it; waiting needs it */
  int zygote = pidfd_open_(getppid());
  int self = pidfd_open_(getpid());
  if (zygote < 0 || self < 0)
    fail(s, "pidfd_open: %s (Linux 5.3 or newer is needed)", strerror(errno));
  die_with(zygote);
  if (o->flags & KMOSAIC_ENTER_UNSANDBOXED) return enter_unsandboxed(o, zygote);

  int proc_fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (proc_fd < 0) fail(s, "open /proc: %s", strerror(errno));
  /* Real root can mount without a user namespace and so reach folders (a home of mode
   * 0700) that the sandbox's own user could not. */
  int privileged = geteuid() == 0 && unshare(CLONE_NEWPID | CLONE_NEWNS) == 0;
  if (!privileged) {
    if (geteuid() == 0 && (setgroups(0, NULL) < 0 || setresgid(o->uid, o->uid, o->uid) < 0 ||
                           setresuid(o->uid, o->uid, o->uid) < 0)) {
      fail(s, "become user %u: %s", o->uid, strerror(errno));
    }
    prctl(PR_SET_DUMPABLE, 1);
    uid_t uid = geteuid();
    gid_t gid = getegid();
    if (unshare(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC |
                CLONE_NEWUTS) < 0) {
      fail(
          s,
          "unshare user, pid, mount, network, IPC and UTS namespaces: %s. Unprivileged user "
          "namespaces must be allowed (user.max_user_namespaces above 0, "
          "kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0), or "
          "the worker run as root with CAP_SYS_ADMIN; a container's default seccomp profile "
          "forbids both",
          strerror(errno));
    }
    map_user(s, proc_fd, o->uid, uid, gid);
    die_with(zygote); /* a change of user clears it */
  }
  pid_t init = fork();
  if (init < 0) fail(s, "fork into the pid namespace: %s", strerror(errno));
  if (init > 0) {
    int pidfd = pidfd_open_(init);
    if (pidfd < 0) fail(s, "pidfd_open: %s", strerror(errno));
    run_keeper(o, init, pidfd);
  }

  die_with(self);
  join_groups(o);
  if (privileged && unshare(CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS) < 0) {
    fail(s, "unshare network, IPC and UTS namespaces: %s", strerror(errno));
  }
  if (sethostname("sandbox", 7) < 0) fail(s, "sethostname: %s", strerror(errno));
  build_root(o);
  if (privileged) leave_root(o, proc_fd);
  close(proc_fd);
  if (chdir("/tmp") < 0) fail(s, "chdir /tmp: %s", strerror(errno));
  set_limits(o);
  drop_capabilities(s);
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) fail(s, "no_new_privs: %s", strerror(errno));
  die_with(self); /* leave_root cleared it */
  install_filter(o);
  pid_t role = fork();
  if (role < 0) fail(s, "fork of the role: %s", strerror(errno));
  if (role > 0) {
    send_status(s, "R", 1);
    run_init(s, role);
  }
  become_role(o);
  return 0;
}
