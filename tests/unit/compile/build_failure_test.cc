#include "gpu_worker/compile/build_failure.h"

#include <catch2/catch.hpp>

namespace kmosaic {
namespace {

namespace v1 = kernelmosaic::v1;

BuildFailure Classify(const std::string& output, int exit_code = 1,
                      CommandResult::Limit limit = CommandResult::Limit::kNone) {
  CommandRequest request;
  request.argv = {"/usr/bin/nvcc"};
  request.memory_bytes = uint64_t{1} << 30;
  CommandResult result;
  result.exit_code = exit_code;
  result.output = output;
  result.limit = limit;
  return ClassifyFailure(request, result);
}

TEST_CASE("trouble of the machine is not the candidate's") {
  std::string output = GENERATE(
      "In file included from <command-line>:\n/usr/local/cuda/include/crt/host_config.h:139:2: "
      "error: #error -- unsupported GNU version! gcc versions later than 15 are not supported!\n",
      "k.cu: fatal error: error writing to /tmp/x.s: No space left on device\n",
      "nvcc fatal   : Unsupported gpu architecture 'compute_999'\n",
      "g++: fatal error: cannot execute 'cc1plus': execvp: No such file or directory\n",
      "nvcc: error while loading shared libraries: libfoo.so: cannot open\n");
  BuildFailure failure = Classify(output);
  CHECK(failure.verdict == v1::VERDICT_INFRASTRUCTURE);
  CHECK(failure.reason.find(';') != std::string::npos);
}

TEST_CASE("a program that is not there is the machine's trouble") {
  CHECK(Classify("", 127).verdict == v1::VERDICT_INFRASTRUCTURE);
}

TEST_CASE("a source cannot pass its error off as the machine's") {
  std::string output = GENERATE(
      "k.cu:3:2: error: #error No space left on device\n    3 | #error No space left on device\n",
      "k.cu:4:1: error: static assertion failed: unsupported GNU version\n",
      "k.cu:5:1: error: expected ';'\n    5 | // No space left on device\n");
  CHECK(Classify(output).verdict == v1::VERDICT_COMPILE_ERROR);
}

TEST_CASE("each limit has its verdict and is named") {
  using Limit = CommandResult::Limit;
  CHECK(Classify("", 137, Limit::kTime).verdict == v1::VERDICT_COMPILE_TIMEOUT);
  CHECK(Classify("", 137, Limit::kMemory).verdict == v1::VERDICT_COMPILE_RESOURCES);
  CHECK(Classify("", 137, Limit::kMemory).reason.find("1024 MiB") != std::string::npos);
  CHECK(Classify("", 153, Limit::kFileSize).verdict == v1::VERDICT_COMPILE_RESOURCES);
  CHECK(Classify("cc1plus: out of memory allocating 65536 bytes\n").verdict ==
        v1::VERDICT_COMPILE_RESOURCES);
  CHECK(Classify("internal compiler error: Segmentation fault\n", 139).verdict ==
        v1::VERDICT_COMPILE_ERROR);
}

}  // namespace
}  // namespace kmosaic
