// The worker as it runs: real compiler, real sandbox, real Python, emulated device.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <iostream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/enum_names.h"
#include "common/base/status.h"
#include "common/log/log.h"
#include "common/rpc/channel.h"
#include "gpu_worker/server.h"
#include "kernelmosaic/v1/kernel.grpc.pb.h"
#include "tests/unit/compile/temp_dir.h"

namespace kmosaic {
namespace {

using testing::TempDir;

std::string PythonForTests() {
  if (const char* given = std::getenv("KMOSAIC_PYTHON")) return given;
  std::string path = KMOSAIC_SOURCE_DIR "/.venv/bin/python";
  return access(path.c_str(), X_OK) == 0 ? path : "";
}

// One worker for all tests of this program. Its cache outlives the program: what is in it
// is found by content, and the support of the emulated device takes long to build.
WorkerServer* SharedWorker() {
  static std::unique_ptr<WorkerServer> shared;
  if (shared != nullptr) return shared.get();
  std::string python = PythonForTests();
  if (python.empty()) {
    std::cerr << "SKIPPED: no Python with torch (set KMOSAIC_PYTHON, or run ./dev build)\n";
    return nullptr;
  }
  StartLog("test", LogLevel::kError);
  WorkerOptions options;
  options.device = "emulated";
  options.python = python;
  options.cache_dir = KMOSAIC_TEST_CACHE;
  options.no_grants = true;
  options.no_self_test = true;
  options.run_limit = absl::Seconds(20);
  auto started = WorkerServer::Start(options);
  INFO(started.status());
  REQUIRE(started.ok());
  shared = *std::move(started);
  return shared.get();
}

// y = 2 x + 1 over any shape.
constexpr char kReference[] = R"(
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return 2 * x + 1

def get_inputs():
    return [torch.randn(50, 37)]

def get_init_inputs():
    return []
)";

// KERNEL, BODY and HEAD are filled in.
constexpr char kSolution[] = R"(
import os, sys, torch
from torch.utils.cpp_extension import load_inline
HEAD
cuda = r'''
#include <torch/extension.h>
#include <cstdio>
#include <cstdlib>
#include <unistd.h>
KERNEL
'''
module = load_inline(name="affine", cpp_sources="torch::Tensor affine(torch::Tensor x);",
                     cuda_sources=cuda, functions=["affine"])

class ModelNew(torch.nn.Module):
    def forward(self, x):
        BODY
)";

constexpr char kHonest[] = R"(
__global__ void k(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2.0f * x[i] + 1.0f;
}
torch::Tensor affine(torch::Tensor x) {
  auto y = torch::empty_like(x);
  int n = x.numel();
  k<<<(n + 127) / 128, 128>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
  return y;
}
)";

std::string Solution(const std::string& kernel, const std::string& body = "return module.affine(x)",
                     const std::string& head = "") {
  return absl::StrReplaceAll(kSolution, {{"KERNEL", kernel}, {"BODY", body}, {"HEAD", head}});
}

std::string Kernel(const std::string& from, const std::string& to) {
  std::string text = absl::StrReplaceAll(kHonest, {{from, to}});
  REQUIRE(text != kHonest);
  return text;
}

v1::EvaluationReport Evaluate(const std::string& solution,
                              const std::string& reference = kReference,
                              v1::Role last = v1::ROLE_VERIFY) {
  auto stub = v1::KernelService::NewStub(MakeChannel(SharedWorker()->grpc_target()));
  v1::EvaluateRequest request;
  request.set_last_stage(last);
  v1::KernelRequest& kernel = *request.mutable_request();
  kernel.mutable_oracle()->set_reference(reference);
  kernel.mutable_solution()->set_contract(v1::CONTRACT_MODELNEW);
  kernel.mutable_solution()->set_source(solution);
  kernel.mutable_options()->set_scale(1);
  kernel.mutable_options()->set_secret_seeds(5);
  grpc::ClientContext context;
  SetDeadline(context, absl::Minutes(5));
  v1::KernelResponse response;
  absl::Status status = FromGrpc(stub->Evaluate(&context, request, &response));
  INFO(status);
  REQUIRE(status.ok());
  return response.report();
}

v1::Verdict Verdict(const std::string& solution, const std::string& reference = kReference) {
  v1::EvaluationReport report = Evaluate(solution, reference);
  UNSCOPED_INFO(VerdictName(report.verdict()) << ": " << report.reason() << "\n"
                                              << report.compile().log());
  return report.verdict();
}

#define REQUIRE_WORKER() \
  if (SharedWorker() == nullptr) return

TEST_CASE("an honest kernel passes, with a report that says what was done") {
  REQUIRE_WORKER();
  v1::EvaluationReport report = Evaluate(Solution(kHonest));
  INFO(report.ShortDebugString());
  REQUIRE(report.verdict() == v1::VERDICT_PASSED);
  CHECK(report.verify().secret_seeds() == 5);
  CHECK(report.verify().seeds_size() == 5);
  CHECK(report.compile().abi() == "emulated");
  CHECK(report.device().kind() == v1::DEVICE_KIND_EMULATED);
  CHECK_FALSE(report.unsandboxed());
  CHECK_FALSE(report.has_benchmark());
  CHECK(report.work().launches() == 1);
  // 1850 floats are read once and written once.
  CHECK(report.work().global_load_bytes() == 1850 * 4);
  CHECK(report.work().global_store_bytes() == 1850 * 4);
  v1::EvaluationReport again = Evaluate(Solution(kHonest));
  CHECK(again.compile().cached());
  CHECK(again.compile().artifact_digest() == report.compile().artifact_digest());
}

// Two extensions, of which the one named `broken` does not compile.
std::string TwoExtensions(const std::string& body) {
  std::string broken =
      "told = ''\n"
      "broken = None\n"
      "try:\n"
      "    broken = load_inline(name='broken', cpp_sources='', cuda_sources='int f() { nope }',\n"
      "                         functions=['f'])\n"
      "except RuntimeError as error:\n"
      "    told = str(error)\n";
  return Solution(kHonest, body, broken);
}

TEST_CASE("an extension that does not compile raises, and the verdict is about what ran") {
  REQUIRE_WORKER();
  SECTION("the other extension does the work") {
    v1::EvaluationReport report = Evaluate(TwoExtensions(
        "assert 'building extension' in told and 'nope' in told; return module.affine(x)"));
    INFO(report.ShortDebugString());
    CHECK(report.verdict() == v1::VERDICT_PASSED);
    REQUIRE(report.compile().notes_size() == 1);
    CHECK(report.compile().notes(0).find("1 of 2 extensions") != std::string::npos);
    CHECK(report.compile().log().find("nope") != std::string::npos);
  }
  SECTION("plain torch does the work") {
    v1::EvaluationReport report = Evaluate(TwoExtensions("return 2 * x + 1"));
    CHECK(report.verdict() == v1::VERDICT_COMPILE_ERROR);
    CHECK(report.reason().find("'broken'") != std::string::npos);
    CHECK(report.compile().log().find("nope") != std::string::npos);
  }
  SECTION("the program needs it") {
    v1::EvaluationReport report = Evaluate(TwoExtensions("return broken.f(module.affine(x))"));
    CHECK(report.verdict() == v1::VERDICT_COMPILE_ERROR);
  }
  SECTION("the other one is wrong") {
    CHECK(Verdict(TwoExtensions("return module.affine(x) + 1")) == v1::VERDICT_WRONG_OUTPUT);
  }
  SECTION("the only one, with plain torch in its place") {
    v1::EvaluationReport report = Evaluate(
        "import torch\nfrom torch.utils.cpp_extension import load_inline\n"
        "try:\n  load_inline(name='broken', cpp_sources='int f() { nope }', functions=['f'])\n"
        "except RuntimeError:\n  pass\n"
        "class ModelNew(torch.nn.Module):\n  def forward(self, x): return 2 * x + 1\n");
    CHECK(report.verdict() == v1::VERDICT_COMPILE_ERROR);
    CHECK_FALSE(report.has_verify());
  }
  SECTION("another one that its handler builds") {
    std::string retry = absl::StrReplaceAll(
        Solution(kHonest), {{"module = load_inline(name=\"affine\"",
                             "try:\n  load_inline(name='fast', cpp_sources='', cuda_sources='nope')"
                             "\nexcept RuntimeError:\n  module = load_inline(name=\"affine\""}});
    CHECK(Verdict(retry) == v1::VERDICT_PASSED);
  }
}

TEST_CASE("cheats and faults are told apart") {
  REQUIRE_WORKER();
  SECTION("zeros") {
    CHECK(Verdict(Solution(Kernel("2.0f * x[i] + 1.0f", "0.0f"))) == v1::VERDICT_WRONG_OUTPUT);
  }
  SECTION("a constant") {
    CHECK(Verdict(Solution(Kernel("2.0f * x[i] + 1.0f", "1.0f"))) == v1::VERDICT_WRONG_OUTPUT);
  }
  SECTION("an empty kernel") {
    v1::EvaluationReport report =
        Evaluate(Solution(Kernel("y[i] = 2.0f * x[i] + 1.0f", "(void)0")));
    CHECK(report.verdict() == v1::VERDICT_WRONG_OUTPUT);
    CHECK(report.verify().mismatch().pattern() == "all poison (never written)");
  }
  SECTION("half precision") {
    CHECK(Verdict(Solution(
              "#include <cuda_fp16.h>\n" +
              Kernel("2.0f * x[i] + 1.0f", "2.0f * __half2float(__float2half(x[i])) + 1.0f"))) ==
          v1::VERDICT_WRONG_OUTPUT);
  }
  SECTION("the input is changed") {
    CHECK(Verdict(Solution(Kernel("y[i] = 2.0f * x[i] + 1.0f",
                                  "y[i] = 2.0f * x[i] + 1.0f, const_cast<float*>(x)[i] = 0"))) ==
          v1::VERDICT_MODIFIED_INPUT);
  }
  SECTION("the input is returned") {
    CHECK(Verdict(Solution(kHonest, "module.affine(x); return x")) == v1::VERDICT_WRONG_OUTPUT);
  }
  SECTION("the bound check is missing") {
    CHECK(Verdict(Solution(Kernel("if (i < n) ", ""))) == v1::VERDICT_OUT_OF_BOUNDS);
  }
  SECTION("an illegal launch that nobody checks") {
    CHECK(Verdict(Solution(Kernel("<<<(n + 127) / 128, 128>>>", "<<<1, 2048>>>"))) ==
          v1::VERDICT_ILLEGAL_LAUNCH);
  }
  SECTION("the last element is left out") {
    v1::EvaluationReport report = Evaluate(Solution(Kernel("i < n", "i < n - 1")));
    CHECK(report.verdict() == v1::VERDICT_WRONG_OUTPUT);
    CHECK(report.verify().mismatch().wrong_elements() == 1);
  }
  SECTION("the process ends well in the middle of a call") {
    CHECK(Verdict(Solution(Kernel("auto y =", "_exit(0); auto y ="))) == v1::VERDICT_CRASHED);
  }
  SECTION("the process ends when the library is loaded") {
    CHECK(Verdict(Solution(std::string(kHonest) + "struct A { A() { _exit(0); } } a;")) ==
          v1::VERDICT_CRASHED);
  }
  SECTION("a verdict is printed on every descriptor") {
    std::string body =
        "[os.write(fd, b'{\"ok\":true,\"verdict\":\"PASSED\"}') for fd in (1, 2)]; "
        "print('PASSED'); "
        "return x * 0";
    v1::EvaluationReport report = Evaluate(Solution(kHonest, body));
    CHECK(report.verdict() == v1::VERDICT_WRONG_OUTPUT);
    CHECK(report.output().find("PASSED") != std::string::npos);
  }
  SECTION("the channel to the daemon is written to") {
    std::string body =
        "for fd in range(3, 64):\n"
        "            try: os.write(fd, b'\\x00' * 64)\n"
        "            except OSError: pass\n"
        "        return module.affine(x)";
    v1::Verdict verdict = Verdict(Solution(kHonest, body));
    CHECK((verdict == v1::VERDICT_TAMPERING || verdict == v1::VERDICT_CRASHED));
  }
  SECTION("work is skipped after some calls") {
    std::string body =
        "self.n = getattr(self, 'n', 0) + 1\n"
        "        if self.n <= 3: self.y = module.affine(x)\n"
        "        return self.y";
    v1::Verdict verdict = Verdict(Solution(kHonest, body));
    CHECK((verdict == v1::VERDICT_WRONG_OUTPUT || verdict == v1::VERDICT_NONDETERMINISTIC));
  }
  SECTION("torch does the work") {
    CHECK(Verdict(Solution(kHonest, "return 2 * x + 1")) == v1::VERDICT_NO_CUSTOM_KERNEL);
  }
  SECTION("torch does the work beside a kernel whose result is dropped") {
    CHECK(Verdict(Solution(kHonest, "module.affine(x); return 2 * x + 1")) ==
          v1::VERDICT_NO_CUSTOM_KERNEL);
  }
  SECTION("clocks are replaced") {
    CHECK(Verdict(Solution(kHonest, "return module.affine(x)",
                           "import time; time.perf_counter_ns = lambda: 0")) ==
          v1::VERDICT_TAMPERING);
  }
  SECTION("torch does the work after an exception") {
    std::string body =
        "try: raise RuntimeError('no')\n        except RuntimeError: return 2 * x + 1";
    v1::EvaluationReport report = Evaluate(Solution(kHonest, body));
    CHECK(report.verdict() == v1::VERDICT_NO_CUSTOM_KERNEL);
    REQUIRE(report.labels_size() == 1);
    CHECK(report.labels(0).substr(0, 10) == "try/except");
  }
  SECTION("no CUDA at all") {
    CHECK(Verdict("import torch\nclass ModelNew(torch.nn.Module):\n"
                  "    def forward(self, x): return 2 * x + 1\n") == v1::VERDICT_NO_CUSTOM_KERNEL);
  }
  SECTION("another shape") {
    CHECK(Verdict(Solution(kHonest, "return module.affine(x).flatten()")) ==
          v1::VERDICT_WRONG_SHAPE);
  }
  SECTION("another dtype") {
    CHECK(Verdict(Solution(kHonest, "return module.affine(x).double()")) ==
          v1::VERDICT_WRONG_DTYPE);
  }
  SECTION("a Python error") {
    v1::EvaluationReport report = Evaluate(Solution(kHonest, "return module.affine(x, x)"));
    CHECK(report.verdict() == v1::VERDICT_RUNTIME_ERROR);
    CHECK(report.reason().find("TypeError") != std::string::npos);
  }
  SECTION("a syntax error of Python") {
    CHECK(Verdict("def broken(:\n") == v1::VERDICT_LOAD_ERROR);
  }
  SECTION("an undeclared name") {
    v1::EvaluationReport report = Evaluate(Solution(Kernel("2.0f * x[i]", "two * x[i]")));
    CHECK(report.verdict() == v1::VERDICT_COMPILE_ERROR);
    CHECK(report.compile().log().find("two") != std::string::npos);
    CHECK(report.compile().log().find("/build/") == std::string::npos);
    CHECK(Evaluate(Solution(Kernel("2.0f * x[i]", "two * x[i]"))).compile().cached());
  }
  SECTION("a call that never ends") {
    CHECK(Verdict(Solution(kHonest, "\n        while True: pass")) == v1::VERDICT_TIME_LIMIT);
  }
  SECTION("a missing barrier") {
    std::string kernel = R"(
__global__ void k(const float* x, float* y, int n) {
  __shared__ float s[128];
  int i = blockIdx.x * 128 + threadIdx.x;
  s[threadIdx.x] = i < n ? x[i] : 0.0f;
  float left = threadIdx.x > 0 ? s[threadIdx.x - 1] : 0.0f;
  if (i < n) y[i] = 2.0f * x[i] + 1.0f + (threadIdx.x > 0 && i < n ? left - x[i - 1] : 0.0f);
}
torch::Tensor affine(torch::Tensor x) {
  auto y = torch::empty_like(x);
  int n = x.numel();
  k<<<(n + 127) / 128, 128>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
  return y;
})";
    CHECK(Verdict(Solution(kernel)) == v1::VERDICT_DATA_RACE);
  }
}

TEST_CASE("a candidate cannot see the reference, the daemon or the network") {
  REQUIRE_WORKER();
  setenv("KMOSAIC_TEST_CANARY", "canary-value", 1);
  std::string body =
      "import gc, socket\n"
      "        for path in ('/proc/1/environ', '/proc/self/environ'):\n"
      "            try: assert 'canary' not in open(path).read()\n"
      "            except PermissionError: pass\n"
      "        try: socket.create_connection(('127.0.0.1', 80), 1); assert False, 'network'\n"
      "        except OSError: pass\n"
      "        assert not any('class Model(' in o for o in gc.get_objects() if isinstance(o, "
      "str))\n"
      "        return module.affine(x)";
  CHECK(Verdict(Solution(kHonest, body)) == v1::VERDICT_PASSED);
}

TEST_CASE("a reference that does not run refuses the task with its Python error") {
  REQUIRE_WORKER();
  v1::EvaluationReport report =
      Evaluate(Solution(kHonest), absl::StrReplaceAll(kReference, {{"2 * x", "two * x"}}));
  CHECK(report.verdict() == v1::VERDICT_INVALID_TASK);
  CHECK(report.reason().find("name 'two' is not defined") != std::string::npos);
}

TEST_CASE("the right kernel passes at once after a bad one") {
  REQUIRE_WORKER();
  CHECK(Verdict(Solution(Kernel("if (i < n) ", ""))) == v1::VERDICT_OUT_OF_BOUNDS);
  for (int i = 0; i < 3; ++i) CHECK(Verdict(Solution(kHonest)) == v1::VERDICT_PASSED);
}

TEST_CASE("a caller that goes away ends the work") {
  REQUIRE_WORKER();
  auto stub = v1::KernelService::NewStub(MakeChannel(SharedWorker()->grpc_target()));
  v1::EvaluateRequest request;
  request.set_last_stage(v1::ROLE_VERIFY);
  v1::KernelRequest& kernel = *request.mutable_request();
  kernel.mutable_oracle()->set_reference(kReference);
  kernel.mutable_solution()->set_contract(v1::CONTRACT_MODELNEW);
  kernel.mutable_solution()->set_source(Solution(kHonest, "\n        while True: pass"));
  kernel.mutable_options()->set_scale(1);
  grpc::ClientContext context;
  SetDeadline(context, absl::Seconds(3));
  v1::KernelResponse response;
  absl::Status status = FromGrpc(stub->Evaluate(&context, request, &response));
  CHECK(absl::IsDeadlineExceeded(status));
  // The slot is free again: an honest call is served.
  CHECK(Verdict(Solution(kHonest)) == v1::VERDICT_PASSED);
}

TEST_CASE("requests that make no sense are refused by name") {
  REQUIRE_WORKER();
  auto stub = v1::KernelService::NewStub(MakeChannel(SharedWorker()->grpc_target()));
  v1::KernelRequest request;
  request.mutable_oracle()->set_reference(kReference);
  request.mutable_solution()->set_contract(v1::CONTRACT_MODELNEW);
  request.mutable_solution()->set_source(Solution(kHonest));
  auto code = [&](auto change) {
    v1::KernelRequest bad = request;
    change(bad);
    grpc::ClientContext context;
    v1::KernelResponse response;
    return FromGrpc(stub->Compile(&context, bad, &response)).code();
  };
  using absl::StatusCode;
  CHECK(code([](auto& r) { r.mutable_options()->set_scale(2); }) == StatusCode::kInvalidArgument);
  CHECK(code([](auto& r) { r.mutable_solution()->clear_source(); }) ==
        StatusCode::kInvalidArgument);
  CHECK(code([](auto& r) { r.mutable_solution()->clear_contract(); }) ==
        StatusCode::kInvalidArgument);
  CHECK(code([](auto& r) { r.mutable_solution()->set_contract(v1::CONTRACT_CUDA); }) ==
        StatusCode::kInvalidArgument);
  CHECK(code([](auto& r) { r.mutable_oracle()->clear_reference(); }) ==
        StatusCode::kInvalidArgument);
  CHECK(code([](auto& r) { r.mutable_options()->set_device(v1::DEVICE_KIND_CUDA); }) ==
        StatusCode::kFailedPrecondition);
}

TEST_CASE("a worker that cannot work does not start") {
  StartLog("test", LogLevel::kError);
  TempDir dir;
  WorkerOptions options;
  options.device = "emulated";
  options.cache_dir = dir.path();
  SECTION("without a coordinator") {
    CHECK(absl::IsInvalidArgument(WorkerServer::Start(options).status()));
  }
  options.no_grants = true;
  SECTION("with a Python that is not there") {
    options.python = dir.path() + "/python";
    CHECK_FALSE(WorkerServer::Start(options).ok());
  }
  SECTION("with a device that is unknown") {
    options.device = "tpu";
    options.python = "/bin/sh";
    CHECK_FALSE(WorkerServer::Start(options).ok());
  }
}

}  // namespace
}  // namespace kmosaic
