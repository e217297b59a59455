// What programs try, and how each ends.
#include <signal.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/time/clock.h"
#include "common/lifecycle/child_process.h"
#include "gpu_worker/sandbox/process_tree.h"
#include "tests/testing/temp_dir.h"
#include "tests/unit/sandbox/role_fixture.h"

namespace kmosaic {
namespace {

using Kind = RoleFailure::Kind;

// Runs Python that ends with raise RuntimeError(text) and gives that text.
std::string Probe(Zygote* zygote, const std::string& source) {
  RoleRun run = RunInRole(zygote, source, RoleLimits());
  INFO(run.output);
  REQUIRE(run.answer.ok());
  return run.answer->message["error"].get<std::string>();
}

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

Kind EndOf(Zygote* zygote, const std::string& source, const RoleLimits& limits,
           absl::Duration deadline = absl::Seconds(20)) {
  RoleRun run = RunInRole(zygote, source, limits, deadline);
  INFO(run.output);
  if (run.answer.ok()) FAIL("it answered " << run.answer->message.dump());
  INFO(run.answer.status().ToString());
  REQUIRE(run.failure.has_value());
  // Nothing of the sandbox is left, whatever it forked.
  CHECK(Descendants(ListProcesses(), run.pid).empty());
  return run.failure->kind;
}

constexpr char kForkBomb[] = R"(
import os, time
while True:
    try:
        if os.fork() == 0:
            time.sleep(1000)
    except OSError:
        pass
)";
constexpr char kMemoryBomb[] = R"(
hoard = []
while True:
    hoard.append(bytearray(16 << 20))
)";
constexpr char kChildMemoryBomb[] = R"(
import os
if os.fork() == 0:
    os.setsid()
    hoard = []
    while True:
        hoard.append(bytearray(16 << 20))
while True:
    os.sched_yield()
)";

TEST_CASE("files of the host beyond what is allowed do not exist in a role") {
  Zygote* zygote = SharedZygote();
  if (zygote == nullptr) return;
  TempDir data;
  std::ofstream(data.path() + "/secret") << "canary";
  std::string seen = Probe(
      zygote, "import os\nraise RuntimeError(str([os.path.exists(p) for p in ('" + data.path() +
                  "/secret', '/root/.bashrc', '/home', '/etc/shadow', "
                  "'/var', '/boot')] + [os.listdir('/tmp') != []]))");
  CHECK(Contains(seen, "[False, False, False, False, False, False, True]"));
}

TEST_CASE("a role may read a folder that it was given, and not write it") {
  Zygote* zygote = SharedZygote();
  if (zygote == nullptr) return;
  TempDir given;
  // Roles of a daemon that runs as root are another user.
  std::filesystem::permissions(given.path(), std::filesystem::perms(0755));
  std::ofstream(given.path() + "/artifact") << "content";
  auto role = zygote->Fork(RoleKind::kCollect, RoleLimits(), {given.path()});
  REQUIRE(role.ok());
  auto answer = (*role)->Call(
      {{"op", "collect"},
       {"failed", nlohmann::json::array()},
       {"source",
        "text = open('" + given.path() + "/artifact').read()\ntry:\n    open('" + given.path() +
            "/x', 'w')\nexcept OSError as e:\n    raise RuntimeError(text + str(e.errno))"},
       {"init", nullptr},
       {"inputs", nullptr},
       {"device", "emulated"}},
      {}, absl::Seconds(20));
  REQUIRE(answer.ok());
  INFO(answer->message.dump());
  CHECK(Contains(answer->message["error"], "content30"));  // EROFS
}

TEST_CASE("a role sees no environment of the daemon and no process of others") {
  Zygote* zygote = SharedZygote();
  if (zygote == nullptr) return;
  REQUIRE(getenv("KMOSAIC_TEST_CANARY") != nullptr);
  std::string seen = Probe(zygote, R"(
import os, glob
environments = b''
for path in glob.glob('/proc/[0-9]*/environ'):
    try:
        environments += open(path, 'rb').read()
    except OSError:
        pass
names = sorted(os.environ)
pids = sorted(int(p) for p in os.listdir('/proc') if p.isdigit())
raise RuntimeError(f"{b'canary-value' in environments} {'KMOSAIC_TEST_CANARY' in names} {pids} {os.getuid()}")
)");
  CHECK(Contains(seen, "False False [1, 2] 65534"));
}

TEST_CASE("a role has no network and no way to more rights") {
  Zygote* zygote = SharedZygote();
  if (zygote == nullptr) return;
  std::string seen = Probe(zygote, R"(
import ctypes, os, socket
libc = ctypes.CDLL(None, use_errno=True)
def errno_of(call):
    ctypes.set_errno(0)
    return ctypes.get_errno() if call() < 0 else 0
try:
    socket.socket()
    net = 'open'
except OSError as e:
    net = e.errno
status = dict(line.split(':', 1) for line in open('/proc/self/status') if ':' in line)
def opens(path):
    try:
        os.close(os.open(path, os.O_RDWR))
        return True
    except OSError:
        return False
facts = [net, errno_of(lambda: libc.unshare(0x10000000)), errno_of(lambda: libc.ptrace(16, 1, 0, 0)),
         errno_of(lambda: libc.mount(b'x', b'/tmp', b'tmpfs', 0, None)),
         status['CapEff'].strip(), status['CapBnd'].strip(), status['NoNewPrivs'].strip(),
         status['Seccomp'].strip(), opens('/proc/1/mem'), opens('/proc/self/mem')]
raise RuntimeError(repr(facts))
)");
  CHECK(Contains(seen,
                 "[97, 1, 1, 1, '0000000000000000', '0000000000000000', '1', '2', False, True]"));
}

TEST_CASE("a role inherits no descriptor beyond its socket") {
  Zygote* zygote = SharedZygote();
  if (zygote == nullptr) return;
  std::string seen = Probe(zygote, R"(
import os
kinds = []
for fd in sorted(int(x) for x in os.listdir('/proc/self/fd')):
    try:
        kinds.append(os.readlink(f'/proc/self/fd/{fd}').split(':')[0])
    except OSError:
        pass
raise RuntimeError(repr(kinds))
)");
  CHECK(Contains(seen, "['/dev/null', 'pipe', 'pipe', 'socket']"));
}

TEST_CASE("bombs end typed and leave no process") {
  for (MemoryGuard::Mode mode : {MemoryGuard::Mode::kAuto, MemoryGuard::Mode::kWatchdog}) {
    Zygote* zygote = SharedZygote(mode);
    if (zygote == nullptr) return;
    RoleLimits limits;
    limits.memory_bytes = 200 << 20;
    limits.processes = 24;
    limits.file_bytes = 8 << 20;
    limits.tmp_bytes = 16 << 20;
    limits.output_bytes = 1 << 20;
    RoleLimits few = limits;
    few.memory_bytes = uint64_t{2} << 30;  // children of a Python take some memory each
    CHECK(EndOf(zygote, kForkBomb, few) == Kind::kProcessLimit);
    CHECK(EndOf(zygote, kMemoryBomb, limits) == Kind::kMemory);
    CHECK(EndOf(zygote, kChildMemoryBomb, limits) == Kind::kMemory);
    CHECK(EndOf(zygote, "while True: print('x' * 1000)", limits) == Kind::kOutputLimit);
    CHECK(EndOf(zygote, "f = open('/tmp/f', 'wb')\nwhile True: f.write(bytes(1 << 20))", limits) ==
          Kind::kDiskLimit);
  }
}

TEST_CASE("a full private disk is an error of the program, typed") {
  Zygote* zygote = SharedZygote();
  if (zygote == nullptr) return;
  RoleLimits limits;
  limits.tmp_bytes = 4 << 20;
  RoleRun run = RunInRole(zygote, R"(
for i in range(100):
    with open(f'/tmp/f{i}', 'wb') as f:
        f.write(bytes(1 << 20))
)",
                          limits);
  REQUIRE(run.answer.ok());
  CHECK(run.answer->message["verdict"] == "DISK_LIMIT");
}

TEST_CASE("a deadline ends descendants that left the session") {
  Zygote* zygote = SharedZygote();
  if (zygote == nullptr) return;
  CHECK(EndOf(zygote, R"(
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        while True: pass
    os._exit(0)
while True: time.sleep(1)
)",
              RoleLimits(), absl::Seconds(2)) == Kind::kDeadline);
}

TEST_CASE("the way that a role ended is told") {
  Zygote* zygote = SharedZygote();
  if (zygote == nullptr) return;
  RoleRun run = RunInRole(zygote, "import os\nos._exit(0)", RoleLimits());
  REQUIRE(run.failure.has_value());
  CHECK(run.failure->kind == Kind::kExited);
  CHECK(run.failure->exit_code == 0);
  run = RunInRole(zygote, "import os\nos.abort()", RoleLimits());
  REQUIRE(run.failure.has_value());
  CHECK(run.failure->kind == Kind::kSignaled);
  CHECK(run.failure->signal_number == SIGABRT);
  run = RunInRole(zygote, "import ctypes\nctypes.string_at(0)", RoleLimits());
  REQUIRE(run.failure.has_value());
  CHECK(run.failure->signal_number == SIGSEGV);
  run = RunInRole(zygote, "print('last words', flush=True)\nimport os\nos._exit(7)", RoleLimits());
  CHECK(run.failure->exit_code == 7);
  CHECK(Contains(run.output, "last words"));
}

TEST_CASE("an answer that is no frame is a breach of protocol") {
  Zygote* zygote = SharedZygote();
  if (zygote == nullptr) return;
  CHECK(EndOf(zygote,
              "import os, time\nos.write(3, b'\\xff' * 64) if False else [os.write(fd, "
              "b'\\xff' * 64) for fd in range(3, 32) if os.path.exists(f'/proc/self/fd/{fd}')"
              " and 'socket' in os.readlink(f'/proc/self/fd/{fd}')]\ntime.sleep(100)",
              RoleLimits()) == Kind::kProtocol);
}

TEST_CASE("a daemon that is killed takes everything with it") {
  if (SharedZygote() == nullptr) return;
  ChildProcess::Options options;
  options.argv = {KMOSAIC_ZYGOTE_HOST};
  options.pipe_stdout = true;
  auto host = ChildProcess::Start(options);
  REQUIRE(host.ok());
  // It prints the pids of its zygote and of a role whose orphans loop.
  auto line = host->ReadLine(absl::Minutes(2));
  REQUIRE(line.ok());
  auto family = Descendants(ListProcesses(), host->pid());
  CHECK(family.size() >= 5);  // host, zygote, keeper, init, role, its orphan
  host->Signal(SIGKILL);
  host->Wait(absl::Seconds(10));
  absl::Time patience = absl::Now() + absl::Seconds(10);
  size_t left = family.size();
  while (left > 0 && absl::Now() < patience) {
    left = 0;
    for (pid_t pid : family) {
      auto process = ReadProcess(pid);
      if (process.ok() && !process->zombie) ++left;
    }
  }
  CHECK(left == 0);
}

}  // namespace
}  // namespace kmosaic
