// Starts a zygote and a role that leaves an orphan behind, prints a line, and waits.
#include <unistd.h>

#include <cstdio>

#include "tests/unit/sandbox/python_environment.h"

int main() {
  using namespace kmosaic;
  auto guard = MemoryGuard::Create(MemoryGuard::Mode::kAuto);
  if (!guard.ok()) return 2;
  auto zygote = Zygote::Start(ZygoteOptionsForTests(), guard->get());
  if (!zygote.ok()) return 3;
  auto role = (*zygote)->Fork(RoleKind::kCollect, RoleLimits(), {});
  if (!role.ok()) return 4;
  auto answer = (*role)->Call(
      {{"op", "collect"},
       {"failed", nlohmann::json::array()},
       {"source", "import os\nif os.fork() == 0:\n    os.setsid()\n    while True: pass\n"},
       {"init", nullptr},
       {"inputs", nullptr},
       {"device", "emulated"}},
      {}, absl::Seconds(30));
  std::printf("%d\n", (*role)->pid());
  std::fflush(stdout);
  pause();
  return answer.ok() ? 0 : 1;
}
