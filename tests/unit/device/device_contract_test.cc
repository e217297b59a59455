// What every Device keeps to; runs on each kind that this machine can make.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <iostream>

#include "gpu_worker/compile/sandbox_runner.h"
#include "gpu_worker/device/cuda_device.h"
#include "gpu_worker/device/emulated_device.h"
#include "gpu_worker/sandbox/compiler_sandbox.h"
#include "tests/unit/compile/temp_dir.h"
#include "tests/unit/device/fake_driver.h"

namespace kmosaic {
namespace {

namespace v1 = kernelmosaic::v1;
using testing::FakeDriver;
using testing::FakeGpu;
using testing::TempDir;
using testing::Write;

// A toolkit that is only looked at, never run.
struct FakeToolkit {
  TempDir dir;
  Toolchain toolchain;
  FakeToolkit() {
    Write(dir.path() + "/bin/nvcc", "");
    Write(dir.path() + "/include/cuda_runtime.h", "");
    Write(dir.path() + "/include/cuda_runtime_api.h", "");
    Write(dir.path() + "/include/crt/host_defines.h", "");
    Write(dir.path() + "/lib64/libcudart.so", "");
    Write(dir.path() + "/g++", "");
    toolchain.gxx = dir.path() + "/g++";
    toolchain.gxx_version = "12.2.0";
    toolchain.nvcc = dir.path() + "/bin/nvcc";
    toolchain.nvcc_version = "13.0.88";
    toolchain.cuda_home = dir.path();
    toolchain.cuda_include = dir.path() + "/include";
  }
  absl::StatusOr<std::unique_ptr<Device>> Cuda(const FakeGpu& gpu = {}) {
    CudaDevice::Options options;
    options.toolchain = toolchain;
    options.torch_headers = KMOSAIC_SOURCE_DIR "/gpu_worker/torch_abi/include";
    options.lock_folder = dir.path();
    return CudaDevice::Create(options, FakeDriver(gpu));
  }
};

std::unique_ptr<Device> MakeEmulated(const std::string& cache) {
  const char* python = std::getenv("KMOSAIC_PYTHON");
  auto toolchain =
      FindToolchain({"", "", python != nullptr ? python : KMOSAIC_SOURCE_DIR "/.venv/bin/python"});
  if (!toolchain.ok()) {
    std::cerr << "SKIPPED: " << toolchain.status() << "\n";
    return nullptr;
  }
  auto guard = MemoryGuard::Create(MemoryGuard::Mode::kAuto);
  REQUIRE(guard.ok());
  auto sandbox = CompilerSandbox::Create(guard->get(), false);
  if (!sandbox.ok()) {
    std::cerr << "SKIPPED: " << sandbox.status() << "\n";
    return nullptr;
  }
  SandboxRunner runner(sandbox->get());
  EmulatedDevice::Options options;
  options.toolchain = *toolchain;
  options.paths.compiler = toolchain->gxx;
  options.paths.headers = KMOSAIC_SOURCE_DIR "/gpu_worker/emulation/include";
  options.paths.torch_headers = KMOSAIC_SOURCE_DIR "/gpu_worker/torch_abi/include";
  options.paths.support_sources = KMOSAIC_SOURCE_DIR "/gpu_worker/emulation/support";
  options.paths.toolkit_headers = toolchain->cuda_include;
  options.paths.runtime_library = KMOSAIC_EMULATION_RUNTIME;
  options.support_cache = cache;
  options.runner = &runner;
  auto device = EmulatedDevice::Create(options);
  INFO(device.status());
  REQUIRE(device.ok());
  return *std::move(device);
}

ExtensionSource VectorAdd() {
  ExtensionSource source;
  source.key = std::string(64, 'a');
  source.name = "add";
  source.functions = {"add"};
  source.cpp_sources = {"torch::Tensor add(torch::Tensor a);"};
  source.cuda_sources = {
      "#include <torch/extension.h>\n__global__ void k(float* a) { a[threadIdx.x] += 1; }\n"
      "torch::Tensor add(torch::Tensor a) { k<<<1, 32>>>(a.data_ptr<float>()); return a; }\n"};
  return source;
}

void CheckContract(const Device& device) {
  CHECK(device.info().kind() == device.kind());
  CHECK_FALSE(device.info().name().empty());
  CHECK_FALSE(device.info().toolchain().empty());
  CHECK(device.labels().at("device") ==
        (device.kind() == v1::DEVICE_KIND_CUDA ? "cuda" : "emulated"));
  CHECK(device.header_digest().size() == 64);
  CHECK(device.default_scale() > 0);
  CHECK(device.default_scale() <= 1);
  CHECK(device.is_emulated() == device.info().uuid().empty());

  auto plan = device.Plan(VectorAdd(), Device::Purpose::kRun);
  INFO(plan.status());
  REQUIRE(plan.ok());
  CHECK_FALSE(plan->files.empty());
  CHECK_FALSE(plan->commands.empty());
  CHECK_FALSE(plan->output.empty());
  for (const BuildPlan::File& file : plan->files) CHECK(file.name.find("..") == std::string::npos);
  for (const std::string& folder : plan->readable) CHECK(folder.substr(0, 1) == "/");
  // Plans are pure: the same source gives the same plan.
  CHECK(device.Plan(VectorAdd(), Device::Purpose::kRun)->commands == plan->commands);
  CHECK(device.PlanEntry("extern \"C\" void f() {}", Device::Purpose::kRun).ok());
  CHECK(device.Plan(VectorAdd(), Device::Purpose::kCount).ok() == device.is_emulated());

  auto shared = device.Lock(DeviceLock::Mode::kShared, [] { return false; });
  CHECK(shared.ok());
  CHECK(device.Lock(DeviceLock::Mode::kShared, [] { return false; }).ok());
  for (const std::string& variable : device.access().environment) {
    CHECK(variable.find('=') != std::string::npos);
  }
}

TEST_CASE("contract: the CUDA device") {
  FakeToolkit toolkit;
  auto device = toolkit.Cuda();
  INFO(device.status());
  REQUIRE(device.ok());
  CheckContract(**device);
}

TEST_CASE("contract: the emulated device") {
  TempDir cache;
  std::unique_ptr<Device> device = MakeEmulated(cache.path());
  if (device == nullptr) return;
  CheckContract(*device);
}

TEST_CASE("a GPU's labels, nodes and environment name this GPU alone") {
  FakeToolkit toolkit;
  auto device = toolkit.Cuda();
  REQUIRE(device.ok());
  auto labels = (*device)->labels();
  CHECK(labels["gpu"] == "H200");
  CHECK(labels["sm"] == "90");
  CHECK(labels["cuda"] == "13.0");
  CHECK(labels["vram_gb"] == "140");
  SandboxAccess access = (*device)->access();
  CHECK(std::count(access.nodes.begin(), access.nodes.end(), "/dev/nvidia3") == 1);
  CHECK(std::count(access.nodes.begin(), access.nodes.end(), "/dev/nvidia0") == 0);
  CHECK(access.environment[0] == std::string("CUDA_VISIBLE_DEVICES=GPU-") + testing::kFakeUuid);
}

TEST_CASE("a driver older than the toolkit and a missing nvcc are refused in words") {
  FakeToolkit toolkit;
  FakeGpu old;
  old.version = 12040;
  absl::Status status = toolkit.Cuda(old).status();
  CHECK(status.code() == absl::StatusCode::kFailedPrecondition);
  CHECK(std::string(status.message()).find("runs CUDA up to 12.4, the toolkit is 13.0.88") !=
        std::string::npos);
  toolkit.toolchain.nvcc.clear();
  CHECK(std::string(toolkit.Cuda().status().message()).find("no working nvcc") !=
        std::string::npos);
}

TEST_CASE("workers of one host agree on who has a GPU") {
  FakeToolkit toolkit;
  auto one = toolkit.Cuda();
  auto other = toolkit.Cuda();
  auto held = (*one)->Lock(DeviceLock::Mode::kExclusive, [] { return true; });
  REQUIRE(held.ok());
  CHECK(absl::IsCancelled((*other)->Lock(DeviceLock::Mode::kShared, [] { return true; }).status()));
}

}  // namespace
}  // namespace kmosaic
