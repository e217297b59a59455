#include "gpu_worker/sandbox/seccomp_policy.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <functional>
#include <vector>

namespace kmosaic {
namespace {

// The error of `call` in a child under the filter; 0: it worked.
int ErrorUnderFilter(const std::function<long()>& call) {
  auto program = MakeSeccompProgram();
  REQUIRE(program.ok());
  struct stat info;
  REQUIRE(fstat(program->get(), &info) == 0);
  std::vector<sock_filter> filter(static_cast<size_t>(info.st_size) / sizeof(sock_filter));
  REQUIRE(pread(program->get(), filter.data(), static_cast<size_t>(info.st_size), 0) ==
          info.st_size);
  pid_t child = fork();
  if (child == 0) {
    sock_fprog loaded{static_cast<unsigned short>(filter.size()), filter.data()};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &loaded) != 0) _exit(255);
    errno = 0;
    _exit(call() < 0 ? errno : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  REQUIRE(WIFEXITED(status));
  return WEXITSTATUS(status);
}

TEST_CASE("ways out of the sandbox are refused") {
  CHECK(ErrorUnderFilter([] { return ptrace(PTRACE_TRACEME, 0, nullptr, nullptr); }) == EPERM);
  CHECK(ErrorUnderFilter([] { return static_cast<long>(unshare(CLONE_NEWUSER)); }) == EPERM);
  CHECK(ErrorUnderFilter([] { return static_cast<long>(setns(0, 0)); }) == EPERM);
  CHECK(ErrorUnderFilter([] { return syscall(SYS_mount, "x", "/", "tmpfs", 0, nullptr); }) ==
        EPERM);
  CHECK(ErrorUnderFilter([] { return syscall(SYS_bpf, 0, nullptr, 0); }) == EPERM);
  CHECK(ErrorUnderFilter([] { return syscall(SYS_io_uring_setup, 1, nullptr); }) == EPERM);
  CHECK(ErrorUnderFilter([] { return syscall(SYS_keyctl, 0, 0, 0, 0, 0); }) == EPERM);
  CHECK(ErrorUnderFilter([] { return static_cast<long>(shmget(IPC_PRIVATE, 4096, 0600)); }) ==
        EPERM);
  CHECK(ErrorUnderFilter([] {
          char c = 'x';
          return static_cast<long>(ioctl(0, TIOCSTI, &c));
        }) == EPERM);
  CHECK(ErrorUnderFilter([] { return syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0); }) ==
        EPERM);
}

TEST_CASE("clone3 does not exist, so that the C library falls back") {
  CHECK(ErrorUnderFilter([] { return syscall(SYS_clone3, nullptr, 0); }) == ENOSYS);
}

TEST_CASE("only local sockets can be made") {
  auto open_socket = [](int family) {
    return [family] { return static_cast<long>(socket(family, SOCK_STREAM, 0)); };
  };
  CHECK(ErrorUnderFilter(open_socket(AF_INET)) == EAFNOSUPPORT);
  CHECK(ErrorUnderFilter(open_socket(AF_INET6)) == EAFNOSUPPORT);
  CHECK(ErrorUnderFilter(open_socket(AF_NETLINK)) == EAFNOSUPPORT);
  CHECK(ErrorUnderFilter(open_socket(AF_UNIX)) == 0);
}

TEST_CASE("what torch, CUDA and compilers need goes on to work") {
  CHECK(ErrorUnderFilter([] { return static_cast<long>(memfd_create("x", 0)); }) == 0);
  CHECK(ErrorUnderFilter([] {
          pid_t child = fork();
          if (child == 0) _exit(0);
          return static_cast<long>(waitpid(child, nullptr, 0));
        }) == 0);
  CHECK(ErrorUnderFilter([] {
          cpu_set_t all;
          return static_cast<long>(sched_getaffinity(0, sizeof all, &all) ||
                                   sched_setaffinity(0, sizeof all, &all));
        }) == 0);
}

}  // namespace
}  // namespace kmosaic
