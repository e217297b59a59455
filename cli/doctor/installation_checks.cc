#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cli/doctor/check.h"
#include "cli/output/numbers.h"
#include "cli/program/connection.h"
#include "cli/system/programs.h"
#include "cli/system/run_command.h"

namespace kmosaic {
namespace {

using nlohmann::json;

constexpr absl::Duration kShort = absl::Seconds(20);
constexpr absl::Duration kSelfTest = absl::Minutes(5);

using MajorMinor = std::pair<int, int>;
// The syntax and library that the harness keeps to (tests/lint/python_floor.py).
constexpr MajorMinor kOldestPython = {3, 9};
// The first with the unsigned types that the harness names.
constexpr MajorMinor kOldestTorch = {2, 3};

constexpr char kPythonFix[] =
    "install torch and numpy there, or name another Python with KMOSAIC_PYTHON";

std::string Text(MajorMinor version) { return absl::StrCat(version.first, ".", version.second); }

// Of "2.8.0+cu128"; false for what is no version, which the self-test will judge.
bool OlderThan(const std::string& version, MajorMinor oldest) {
  std::vector<std::string> parts = absl::StrSplit(version, absl::MaxSplits('.', 2));
  MajorMinor found;
  if (parts.size() < 2 || !absl::SimpleAtoi(parts[0], &found.first) ||
      !absl::SimpleAtoi(parts[1], &found.second))
    return false;
  return found < oldest;
}

// The first line that the program prints; nothing when it does not run or fails.
std::optional<std::string> Version(const std::vector<std::string>& argv) {
  auto output = RunCommand(argv, kShort);
  if (!output.ok() || output->exit_code != 0 || output->lines.empty()) return std::nullopt;
  return output->lines.front();
}

Check Programs(const Host& host) {
  std::vector<std::string> missing;
  std::string folder;
  for (const char* name : {"kmosaic-coordinator", "kmosaic-gpu-worker", "kmosaic-agent-runner"}) {
    auto path = FindSisterProgram(host, name);
    if (!path.ok()) {
      missing.push_back(name);
    } else {
      folder = path->substr(0, path->rfind('/'));
    }
  }
  if (missing.empty()) return {"programs", CheckResult::kOk, absl::StrCat("in ", folder), ""};
  return {"programs", CheckResult::kFail, absl::StrCat("not found: ", absl::StrJoin(missing, ", ")),
          "build them with ./dev build, or put them beside kmosaic"};
}

Check Bubblewrap(const Host& host) {
  // A bundle brings its own.
  auto program = FindSisterProgram(host, "bwrap");
  if (auto version = Version({program.ok() ? *program : "bwrap", "--version"})) {
    return {"bubblewrap", CheckResult::kOk, *version, ""};
  }
  return {"bubblewrap", CheckResult::kFail, "no bwrap that runs; compilers are run under it",
          "install bubblewrap (apt-get install bubblewrap)"};
}

Check HostCompiler() {
  if (auto version = Version({"g++", "-dumpfullversion"}))
    return {"g++", CheckResult::kOk, *version, ""};
  return {"g++", CheckResult::kFail, "no g++ that runs; the emulated device compiles with it",
          "install g++ (apt-get install g++)"};
}

Check CudaCompiler(const Host& host, const std::string& python) {
  auto toolkit = FindToolkit(host, python);
  std::string fix =
      "set CUDA_HOME, or install the toolkit's wheels: pip install nvidia-cuda-nvcc "
      "nvidia-cuda-crt "
      "nvidia-cuda-runtime nvidia-cuda-cccl nvidia-nvvm";
  if (!toolkit)
    return {"nvcc", CheckResult::kFail, "none in CUDA_HOME, PATH, /usr/local/cuda or beside Python",
            fix};
  auto output = RunCommand({toolkit->path + "/bin/nvcc", "--version"}, kShort);
  if (!output.ok() || output->exit_code != 0 || output->lines.empty()) {
    return {"nvcc", CheckResult::kFail,
            absl::StrCat(toolkit->path, "/bin/nvcc (by ", toolkit->found_by, ") does not run"),
            fix};
  }
  return {
      "nvcc", CheckResult::kOk,
      absl::StrCat(output->lines.back(), " in ", toolkit->path, " (by ", toolkit->found_by, ")"),
      ""};
}

Check PythonWithTorch(const std::optional<Finding>& python) {
  if (!python)
    return {"Python", CheckResult::kFail, "no python3", "install python3 with torch and numpy"};
  // Asks for the versions without importing torch, which takes seconds.
  auto output = RunCommand({python->path, "-c",
                            "import sys, importlib.metadata as m\n"
                            "print(sys.version.split()[0])\n"
                            "print(m.version('torch'))\n"
                            "print(m.version('numpy'))\n"},
                           kShort);
  std::string where = absl::StrCat(python->path, " (by ", python->found_by, ")");
  if (!output.ok())
    return {"Python", CheckResult::kFail, absl::StrCat(where, " does not run"), kPythonFix};
  return JudgePython(where, output->lines);
}

}  // namespace

Check JudgePython(const std::string& where, const std::vector<std::string>& lines) {
  if (lines.empty())
    return {"Python", CheckResult::kFail, absl::StrCat(where, " fails"), kPythonFix};
  if (OlderThan(lines[0], kOldestPython)) {
    return {"Python", CheckResult::kFail,
            absl::StrCat(lines[0], " is too old: ", Text(kOldestPython), " or newer is needed, ",
                         where),
            "name a newer Python that has torch and numpy with KMOSAIC_PYTHON"};
  }
  if (lines.size() < 3) {
    const char* missing = lines.size() == 1 ? "torch" : "numpy";
    return {"Python", CheckResult::kFail, absl::StrCat(lines[0], " without ", missing, ", ", where),
            kPythonFix};
  }
  if (OlderThan(lines[1], kOldestTorch)) {
    return {"Python", CheckResult::kFail,
            absl::StrCat("torch ", lines[1], " is too old: ", Text(kOldestTorch),
                         " or newer is needed, ", where),
            absl::StrCat("pip install 'torch>=", Text(kOldestTorch),
                         "' there, or name another Python with KMOSAIC_PYTHON")};
  }
  return {"Python", CheckResult::kOk,
          absl::StrCat(lines[0], ", torch ", lines[1], ", numpy ", lines[2], ", ", where), ""};
}

std::vector<Check> InstallationChecks(const Host& host) {
  auto python = FindPython(host);
  return {Programs(host), Bubblewrap(host), HostCompiler(),
          CudaCompiler(host, python ? python->path : ""), PythonWithTorch(python)};
}

Check JudgeSelfTest(int exit_code, const std::vector<std::string>& lines) {
  for (const std::string& line : lines) {
    json summary = json::parse(line, nullptr, false);
    if (!summary.is_object() || !summary.contains("self_test")) continue;
    const json& test = summary["self_test"];
    if (exit_code == 0 && test.is_object() && test.value("passed", false)) {
      std::string limits = summary.contains("limits") && summary["limits"].is_string()
                               ? summary["limits"].get<std::string>()
                               : "";
      return {"self-test", CheckResult::kOk,
              absl::StrCat("known kernels pass on ", summary.value("name", "the device"), " in ",
                           ShortDuration(absl::Seconds(test.value("seconds", 0.0))), "; sandbox ",
                           summary.value("sandbox", "unknown"), limits.empty() ? "" : ", ", limits),
              ""};
    }
    std::string cause = test.is_object() ? test.value("cause", "") : "";
    return {"self-test", CheckResult::kFail,
            cause.empty() ? absl::StrCat("failed with exit code ", exit_code) : cause,
            "mend what is named; the checks above may say how"};
  }
  return {"self-test", CheckResult::kFail,
          absl::StrCat("kmosaic-gpu-worker --self-test ended with exit code ", exit_code,
                       " and said nothing"),
          "run it by hand to see its log"};
}

Check SelfTestCheck(const Host& host) {
  auto worker = FindSisterProgram(host, "kmosaic-gpu-worker");
  if (!worker.ok()) {
    return {"self-test", CheckResult::kFail, "there is no kmosaic-gpu-worker to ask",
            "build it with ./dev build"};
  }
  std::vector<std::string> argv = {*worker, "--self-test"};
  if (auto python = FindPython(host)) {
    argv.push_back("--python=" + python->path);
    if (auto toolkit = FindToolkit(host, python->path))
      argv.push_back("--cuda-home=" + toolkit->path);
  }
  auto output = RunCommand(argv, kSelfTest);
  if (!output.ok()) {
    return {"self-test", CheckResult::kFail, std::string(output.status().message()),
            "run kmosaic-gpu-worker --self-test by hand"};
  }
  return JudgeSelfTest(output->exit_code, output->lines);
}

Check CoordinatorCheck(const Host& host, const std::string& flag) {
  auto connection = FindCoordinator(host, flag);
  if (!connection.ok()) {
    return {"coordinator", CheckResult::kWarn, "none is running that this user would find",
            "start one with `kmosaic up`, or give --coordinator"};
  }
  bool reached = connection->channel->WaitForConnected(std::chrono::system_clock::now() +
                                                       std::chrono::seconds(3));
  std::string found = absl::StrCat(connection->target, " (by ", connection->named_by, ")");
  if (reached) return {"coordinator", CheckResult::kOk, found, ""};
  return {"coordinator", CheckResult::kWarn, absl::StrCat(found, " cannot be reached"),
          "check the address and that it runs"};
}

}  // namespace kmosaic
