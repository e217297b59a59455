#include "tests/unit/sandbox/role_fixture.h"

#include <cstdlib>
#include <iostream>
#include <map>

#include "tests/unit/sandbox/python_environment.h"

namespace kmosaic {
namespace {

struct Shared {
  std::unique_ptr<MemoryGuard> guard;
  std::unique_ptr<Zygote> zygote;
};

}  // namespace

Zygote* SharedZygote(MemoryGuard::Mode mode) {
  static std::map<MemoryGuard::Mode, Shared> all;
  Shared& shared = all[mode];
  if (shared.zygote != nullptr) return shared.zygote.get();
  if (PythonForTests().empty()) {
    std::cerr << "SKIPPED: no Python with torch (set KMOSAIC_PYTHON, or run ./dev build)\n";
    return nullptr;
  }
  // The daemon's environment holds secrets; roles must not see them.
  setenv("KMOSAIC_TEST_CANARY", "canary-value", 1);
  auto guard = MemoryGuard::Create(mode);
  if (!guard.ok()) throw std::runtime_error(guard.status().ToString());
  shared.guard = *std::move(guard);
  auto zygote = Zygote::Start(ZygoteOptionsForTests(), shared.guard.get());
  if (!zygote.ok()) throw std::runtime_error(zygote.status().ToString());
  shared.zygote = *std::move(zygote);
  return shared.zygote.get();
}

RoleRun RunInRole(Zygote* zygote, const std::string& source, const RoleLimits& limits,
                  absl::Duration deadline) {
  RoleRun run;
  auto role = zygote->Fork(RoleKind::kCollect, limits, {});
  if (!role.ok()) {
    run.answer = role.status();
    return run;
  }
  run.pid = (*role)->pid();
  run.answer = (*role)->Call({{"op", "collect"},
                              {"failed", nlohmann::json::array()},
                              {"source", source},
                              {"init", nullptr},
                              {"inputs", nullptr},
                              {"device", "emulated"}},
                             {}, deadline);
  run.failure = (*role)->failure();
  run.output = (*role)->Output();
  return run;
}

}  // namespace kmosaic
