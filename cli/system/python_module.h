// Commands whose work is done by this installation's Python package.
#ifndef KMOSAIC_CLI_SYSTEM_PYTHON_MODULE_H_
#define KMOSAIC_CLI_SYSTEM_PYTHON_MODULE_H_

#include <string>
#include <vector>

#include "cli/program/host.h"

namespace kmosaic {

// Runs `python -m kernelmosaic.MODULE ARGUMENTS` under the Python that FindPython names, with
// this process's standard streams, until it ends. An interrupt is passed on as SIGTERM.
// Returns its exit code, kExitInterrupted after an interrupt, or the one for what failed, which
// has been said.
int RunPythonModule(Host& host, const std::string& module,
                    const std::vector<std::string>& arguments);

}  // namespace kmosaic

#endif  // KMOSAIC_CLI_SYSTEM_PYTHON_MODULE_H_
