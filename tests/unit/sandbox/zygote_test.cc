#include "gpu_worker/sandbox/zygote.h"

#include <signal.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gpu_worker/sandbox/process_tree.h"
#include "tests/unit/sandbox/python_environment.h"
#include "tests/unit/sandbox/role_fixture.h"

namespace kmosaic {
namespace {

constexpr char kSolution[] = R"(
import torch
from torch.utils.cpp_extension import load_inline
module = load_inline(name="scale", cpp_sources="torch::Tensor scale(torch::Tensor x);",
                     cuda_sources="__global__ void k() {}", functions=["scale"])
class ModelNew(torch.nn.Module):
    def forward(self, x):
        return module.scale(x)
)";

TEST_CASE("a collect role answers with what the file hands to load_inline") {
  Zygote* zygote = SharedZygote();
  if (zygote == nullptr) return;
  RoleRun run = RunInRole(zygote, kSolution, RoleLimits());
  REQUIRE(run.answer.ok());
  const nlohmann::json& message = run.answer->message;
  INFO(message.dump());
  REQUIRE(message["ok"] == true);
  REQUIRE(message["extensions"].size() == 1);
  CHECK(message["extensions"][0]["functions"] == nlohmann::json{"scale"});
}

TEST_CASE("a role sees the harness and nothing of what lies beside it") {
  Zygote* zygote = SharedZygote();
  if (zygote == nullptr) return;
  std::string program = absl::StrCat("import os\nraise RuntimeError(sorted(os.listdir('",
                                     KMOSAIC_SOURCE_DIR, "/gpu_worker')))");
  RoleRun run = RunInRole(zygote, program, RoleLimits());
  REQUIRE(run.answer.ok());
  std::string error = run.answer->message.value("error", "");
  INFO(error);
  CHECK(absl::StrContains(error, "RuntimeError: ['harness']"));
}

TEST_CASE("a role takes one request after another") {
  Zygote* zygote = SharedZygote();
  if (zygote == nullptr) return;
  auto role = zygote->Fork(RoleKind::kReference, RoleLimits(), {});
  REQUIRE(role.ok());
  nlohmann::json load = {{"op", "load"},
                         {"source",
                          "import torch\nclass Model(torch.nn.Module):\n"
                          "    def forward(self, x):\n        return x * 2\n"
                          "def get_inputs():\n    return [torch.rand(5)]\n"
                          "def get_init_inputs():\n    return []\n"},
                         {"device", "emulated"},
                         {"scale", 1.0},
                         {"memory", "host"},
                         {"scaled_shapes", nlohmann::json::object()},
                         {"weight_seed", 1}};
  auto loaded = (*role)->Call(load, {}, absl::Seconds(30));
  REQUIRE(loaded.ok());
  INFO(loaded->message.dump());
  REQUIRE(loaded->message["ok"] == true);
  for (int seed : {1, 2}) {
    auto answer = (*role)->Call({{"op", "case"}, {"seed", seed}, {"family", "native"}}, {},
                                absl::Seconds(30));
    REQUIRE(answer.ok());
    CHECK(answer->message["expected"]["shape"] == nlohmann::json{5});
    CHECK(answer->fds.size() == 3);
  }
  CHECK_FALSE((*role)->failure().has_value());
}

TEST_CASE("several roles are forked and used at once") {
  Zygote* zygote = SharedZygote();
  if (zygote == nullptr) return;
  std::vector<std::thread> threads;
  std::atomic<int> answered{0};
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([&] {
      if (RunInRole(zygote, kSolution, RoleLimits()).answer.ok()) ++answered;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(answered == 6);
}

TEST_CASE("a zygote that was killed is started again") {
  Zygote* zygote = SharedZygote();
  if (zygote == nullptr) return;
  uint64_t before = zygote->restarts();
  auto role = zygote->Fork(RoleKind::kCollect, RoleLimits(), {});
  REQUIRE(role.ok());
  kill(zygote->pid(), SIGKILL);
  auto lost = (*role)->Call({{"op", "collect"},
                             {"failed", nlohmann::json::array()},
                             {"source", "while True: pass"},
                             {"init", nullptr},
                             {"inputs", nullptr},
                             {"device", "emulated"}},
                            {}, absl::Seconds(20));
  CHECK_FALSE(lost.ok());
  REQUIRE((*role)->failure().has_value());
  CHECK((*role)->failure()->kind == RoleFailure::Kind::kInfrastructure);
  RoleRun run = RunInRole(zygote, kSolution, RoleLimits());
  CHECK(run.answer.ok());
  CHECK(zygote->restarts() == before + 1);
}

TEST_CASE("a Python without torch is refused with what it printed") {
  auto guard = MemoryGuard::Create(MemoryGuard::Mode::kWatchdog);
  REQUIRE(guard.ok());
  ZygoteOptions options;
  options.python = "/nonexistent/python";
  auto zygote = Zygote::Start(options, guard->get());
  REQUIRE(zygote.status().code() == absl::StatusCode::kFailedPrecondition);
  CHECK(std::string(zygote.status().message()).find("/nonexistent/python") != std::string::npos);
}

TEST_CASE("Kill ends a call that is under way") {
  Zygote* zygote = SharedZygote();
  if (zygote == nullptr) return;
  auto role = zygote->Fork(RoleKind::kCollect, RoleLimits(), {});
  REQUIRE(role.ok());
  std::thread killer([&] { (*role)->Kill(); });
  auto answer = (*role)->Call({{"op", "collect"},
                               {"failed", nlohmann::json::array()},
                               {"source", "while True: pass"},
                               {"init", nullptr},
                               {"inputs", nullptr},
                               {"device", "emulated"}},
                              {}, absl::Seconds(60));
  killer.join();
  REQUIRE_FALSE(answer.ok());
  CHECK((*role)->failure()->kind == RoleFailure::Kind::kCancelled);
}

TEST_CASE("the override runs roles without a sandbox, within their limits") {
  if (PythonForTests().empty()) return;
  auto guard = MemoryGuard::Create(MemoryGuard::Mode::kAuto);
  REQUIRE(guard.ok());
  ZygoteOptions options = ZygoteOptionsForTests();
  options.unsandboxed = true;
  auto zygote = Zygote::Start(options, guard->get());
  REQUIRE(zygote.ok());
  CHECK((*zygote)->unsandboxed());
  CHECK(RunInRole(zygote->get(), kSolution, RoleLimits()).answer.ok());
  RoleLimits limits;
  limits.memory_bytes = 100 << 20;
  RoleRun run =
      RunInRole(zygote->get(), "x = []\nwhile True: x.append(bytearray(1 << 22))", limits);
  REQUIRE(run.failure.has_value());
  CHECK(run.failure->kind == RoleFailure::Kind::kMemory);
  run = RunInRole(zygote->get(), "import os\nos.fork()\nwhile True: pass", RoleLimits(),
                  absl::Seconds(1));
  REQUIRE(run.failure.has_value());
  CHECK(run.failure->kind == RoleFailure::Kind::kDeadline);
  CHECK(Descendants(ListProcesses(), run.pid).empty());
  run = RunInRole(zygote->get(), "import os\nos._exit(3)", RoleLimits());
  CHECK(run.failure->exit_code == 3);
}

TEST_CASE("what roles without a sandbox leave in their temporary folder goes with the zygote") {
  if (PythonForTests().empty()) return;
  auto guard = MemoryGuard::Create(MemoryGuard::Mode::kAuto);
  REQUIRE(guard.ok());
  ZygoteOptions options = ZygoteOptionsForTests();
  options.unsandboxed = true;
  auto zygote = Zygote::Start(options, guard->get());
  REQUIRE(zygote.ok());
  RoleRun run = RunInRole(zygote->get(),
                          "import tempfile\nraise RuntimeError('<' + tempfile.gettempdir() + '>')",
                          RoleLimits());
  REQUIRE(run.answer.ok());
  std::string error = run.answer->message.value("error", "");
  INFO(error);
  std::string folder = error.substr(error.rfind('<') + 1);
  folder.resize(folder.find('>'));
  CHECK(std::filesystem::path(folder) != std::filesystem::temp_directory_path());
  CHECK_FALSE(std::filesystem::is_empty(folder));  // the program's own file
  zygote->reset();
  CHECK_FALSE(std::filesystem::exists(folder));
}

}  // namespace
}  // namespace kmosaic
