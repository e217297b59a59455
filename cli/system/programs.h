// Where the sister programs, Python and the CUDA toolkit are on this machine.
#ifndef KMOSAIC_CLI_SYSTEM_PROGRAMS_H_
#define KMOSAIC_CLI_SYSTEM_PROGRAMS_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "cli/program/host.h"

namespace kmosaic {

// Path of "kmosaic-coordinator" and the like: in KMOSAIC_HOME/bin (an unpacked bundle), else
// beside this program, else in PATH. NOT_FOUND
// says where it was looked for.
absl::StatusOr<std::string> FindSisterProgram(const Host& host, const std::string& name);

struct Finding {
  std::string path;
  // "KMOSAIC_PYTHON", "the active environment", ...
  std::string found_by;
};

// The Python that the worker is to use: KMOSAIC_PYTHON, the active virtual environment
// (VIRTUAL_ENV), a .venv in a folder above this program, python3 in PATH. Nothing when there
// is none; whether it has torch is not asked here.
std::optional<Finding> FindPython(const Host& host);

// The CUDA toolkit (a folder with bin/nvcc): CUDA_HOME, nvcc in PATH, /usr/local/cuda, the
// wheels beside `python`. Nothing when there is none.
std::optional<Finding> FindToolkit(const Host& host, const std::string& python);

// Path of an executable file called `name` in the PATH of `host`; "" when there is none.
std::string FindInPath(const Host& host, const std::string& name);

}  // namespace kmosaic

#endif  // KMOSAIC_CLI_SYSTEM_PROGRAMS_H_
