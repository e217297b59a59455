// LoadDriver over real shared libraries: what a table of lambdas cannot show is that the
// signatures are the libraries'.
#include <catch2/catch.hpp>

#include "gpu_worker/device/cuda_driver.h"

namespace kmosaic {

TEST_CASE("the first GPU is described through the libraries that the loader finds") {
  auto driver = LoadDriver();
  REQUIRE(driver.ok());
  auto gpu = DescribeGpu(*driver, 0);
  REQUIRE(gpu.ok());
  CHECK(gpu->name == "NVIDIA Stand-in");
  CHECK(gpu->uuid == "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f");
  CHECK_FALSE(gpu->is_mig);
  CHECK(gpu->device_node == 5);
  CHECK(gpu->Arch() == "sm_86");
  CHECK(gpu->multiprocessors == 82);
  CHECK(gpu->memory_bytes == uint64_t{24} << 30);
  CHECK(gpu->driver == "580.0");
  CHECK(gpu->cuda_major == 13);
}

}  // namespace kmosaic
