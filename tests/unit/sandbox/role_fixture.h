// A zygote shared by the tests of one program, and a way to run Python in a role.
#ifndef KMOSAIC_TESTS_UNIT_SANDBOX_ROLE_FIXTURE_H_
#define KMOSAIC_TESTS_UNIT_SANDBOX_ROLE_FIXTURE_H_

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "gpu_worker/sandbox/memory_guard.h"
#include "gpu_worker/sandbox/zygote.h"

namespace kmosaic {

// Nothing (after a warning) where there is no Python with torch.
Zygote* SharedZygote(MemoryGuard::Mode mode = MemoryGuard::Mode::kAuto);

// What a role answered, or why it did not, and what it printed.
struct RoleRun {
  absl::StatusOr<Frame> answer = absl::UnknownError("not run");
  std::optional<RoleFailure> failure;
  std::string output;
  pid_t pid = -1;
};

// Runs `source` as the text of a solution that a `collect` role imports.
RoleRun RunInRole(Zygote* zygote, const std::string& source, const RoleLimits& limits,
                  absl::Duration deadline = absl::Seconds(20));

}  // namespace kmosaic

#endif  // KMOSAIC_TESTS_UNIT_SANDBOX_ROLE_FIXTURE_H_
