#include "cli/system/python_module.h"

#include <signal.h>

#include <optional>

#include "absl/strings/str_cat.h"
#include "cli/program/exit_code.h"
#include "cli/system/programs.h"
#include "common/base/install.h"
#include "common/lifecycle/child_process.h"

namespace kmosaic {

int RunPythonModule(Host& host, const std::string& module,
                    const std::vector<std::string>& arguments) {
  std::optional<Finding> python = FindPython(host);
  if (!python) {
    return Fail(host, absl::FailedPreconditionError(
                          "there is no python3; install one, and name it with KMOSAIC_PYTHON"));
  }
  ChildProcess::Options options;
  options.argv = {python->path, "-m", absl::StrCat("kernelmosaic.", module)};
  options.argv.insert(options.argv.end(), arguments.begin(), arguments.end());
  options.env["PYTHONPATH"] = SharePath("python");
  options.env["PYTHONDONTWRITEBYTECODE"] = "1";
  options.own_process_group = true;
  absl::StatusOr<ChildProcess> child = ChildProcess::Start(options);
  if (!child.ok()) return Fail(host, child.status());
  Interrupt::Scope scope(*host.interrupt, [&child] { child->Signal(SIGTERM); });
  std::optional<int> code = child->Wait(absl::InfiniteDuration());
  if (host.interrupt->triggered()) return kExitInterrupted;
  return code.value_or(kExitNo);
}

}  // namespace kmosaic
