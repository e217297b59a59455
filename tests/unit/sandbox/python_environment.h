// Where the tests find a Python with torch, and the harness under test.
#ifndef KMOSAIC_TESTS_UNIT_SANDBOX_PYTHON_ENVIRONMENT_H_
#define KMOSAIC_TESTS_UNIT_SANDBOX_PYTHON_ENVIRONMENT_H_

#include <unistd.h>

#include <cstdlib>
#include <string>

#include "gpu_worker/sandbox/zygote.h"

namespace kmosaic {

// KMOSAIC_PYTHON, else the repository's .venv; empty when there is none.
inline std::string PythonForTests() {
  if (const char* given = std::getenv("KMOSAIC_PYTHON")) return given;
  std::string path = KMOSAIC_SOURCE_DIR "/.venv/bin/python";
  return access(path.c_str(), X_OK) == 0 ? path : "";
}

inline ZygoteOptions ZygoteOptionsForTests() {
  ZygoteOptions options;
  options.python = PythonForTests();
  options.harness_dir = KMOSAIC_SOURCE_DIR "/gpu_worker/harness";
  options.enter_library = KMOSAIC_ENTER_LIBRARY;
  return options;
}

}  // namespace kmosaic

#endif  // KMOSAIC_TESTS_UNIT_SANDBOX_PYTHON_ENVIRONMENT_H_
