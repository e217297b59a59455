#include "gpu_worker/device/cuda_driver.h"

#include <catch2/catch.hpp>
#include <cstdlib>

#include "tests/unit/device/fake_driver.h"

namespace kmosaic {
namespace {

using testing::FakeDriver;
using testing::FakeGpu;
using testing::kFakeUuid;

TEST_CASE("a GPU is described by what the driver and NVML say") {
  auto gpu = DescribeGpu(FakeDriver({}), 0);
  REQUIRE(gpu.ok());
  CHECK(gpu->name == "NVIDIA H200");
  CHECK(gpu->uuid == std::string("GPU-") + kFakeUuid);
  CHECK(gpu->Arch() == "sm_90a");
  CHECK(gpu->device_node == 3);
  CHECK(gpu->driver == "580.159.03");
  CHECK(gpu->cuda_major == 13);
  CHECK_FALSE(gpu->is_mig);
}

TEST_CASE("numbered workers spread over the visible GPUs") {
  FakeGpu two;
  two.count = 2;
  std::vector<std::string> uuids;
  for (int index = 0; index < 4; ++index) {
    auto gpu = DescribeGpu(FakeDriver(two), index);
    REQUIRE(gpu.ok());
    uuids.push_back(gpu->uuid);
  }
  CHECK(uuids[0] == std::string("GPU-") + kFakeUuid);
  CHECK(uuids[1] != uuids[0]);
  CHECK(uuids[2] == uuids[0]);
  CHECK(uuids[3] == uuids[1]);
}

TEST_CASE("the suffix of an architecture is there where it has features of its own") {
  auto [major, minor, arch] = GENERATE(table<int, int, std::string>({{8, 0, "sm_80"},
                                                                     {8, 9, "sm_89"},
                                                                     {9, 0, "sm_90a"},
                                                                     {10, 0, "sm_100a"},
                                                                     {12, 0, "sm_120a"}}));
  FakeGpu gpu;
  gpu.major = major;
  gpu.minor = minor;
  CHECK(DescribeGpu(FakeDriver(gpu), 0)->Arch() == arch);
}

TEST_CASE("a slice of a GPU is named as such") {
  FakeGpu gpu;
  gpu.mig = true;
  auto described = DescribeGpu(FakeDriver(gpu), 0);
  REQUIRE(described.ok());
  CHECK(described->uuid == std::string("MIG-") + kFakeUuid);
  CHECK(described->is_mig);
}

TEST_CASE("each trouble of the driver has clear words") {
  auto [code, words] = GENERATE(table<int, std::string>({{100, "no GPU is visible"},
                                                         {304, "/dev/nvidia"},
                                                         {803, "different versions"},
                                                         {34, "stub library"},
                                                         {999, "kernel log"},
                                                         {12345, "12345"}}));
  FakeGpu gpu;
  gpu.init = code;
  absl::Status status = DescribeGpu(FakeDriver(gpu), 0).status();
  CHECK(status.code() == absl::StatusCode::kFailedPrecondition);
  CHECK(std::string(status.message()).find(words) != std::string::npos);
}

TEST_CASE("an empty CUDA_VISIBLE_DEVICES is named as the cause") {
  FakeGpu gpu;
  gpu.count = 0;
  setenv("CUDA_VISIBLE_DEVICES", "", 1);
  std::string message(DescribeGpu(FakeDriver(gpu), 0).status().message());
  unsetenv("CUDA_VISIBLE_DEVICES");
  CHECK(message.find("CUDA_VISIBLE_DEVICES=''") != std::string::npos);
}

TEST_CASE("a machine without a driver says so instead of failing to start") {
  auto driver = LoadDriver();
  if (driver.ok()) {
    WARN("SKIPPED: this machine has a CUDA driver");
    return;
  }
  CHECK(absl::IsNotFound(driver.status()));
  CHECK(std::string(driver.status().message()).find("install the NVIDIA driver") !=
        std::string::npos);
}

}  // namespace
}  // namespace kmosaic
