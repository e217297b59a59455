// One thing that `kmosaic doctor` looks at.
#ifndef KMOSAIC_CLI_DOCTOR_CHECK_H_
#define KMOSAIC_CLI_DOCTOR_CHECK_H_

#include <string>
#include <vector>

#include "cli/program/host.h"

namespace kmosaic {

enum class CheckResult { kOk, kWarn, kFail };

struct Check {
  std::string name;
  CheckResult result;
  // What was found.
  std::string found;
  // What to do; empty when it is fine.
  std::string fix;
};

std::string CheckResultName(CheckResult result);  // "ok", "warn", "fail"

// What this machine gives: namespaces, control groups, loopback, disk, GPU driver.
std::vector<Check> MachineChecks(const std::string& data);

// What is installed: our programs, bubblewrap, g++, nvcc, Python with torch and numpy.
std::vector<Check> InstallationChecks(const Host& host);

// The worker's own self-test: it compiles and runs known kernels in the sandbox.
Check SelfTestCheck(const Host& host);

// Whether a coordinator is found and how it was named; never a failure.
Check CoordinatorCheck(const Host& host, const std::string& flag);

// What an interpreter at `where` printed of its version, torch's and numpy's, one a line; without
// the rest when one is not there. Pure.
Check JudgePython(const std::string& where, const std::vector<std::string>& lines);

// What the worker's self-test printed. Pure.
Check JudgeSelfTest(int exit_code, const std::vector<std::string>& lines);

}  // namespace kmosaic

#endif  // KMOSAIC_CLI_DOCTOR_CHECK_H_
