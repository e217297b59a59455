#include "gpu_worker/compile/toolchain.h"

#include <catch2/catch.hpp>
#include <filesystem>

#include "tests/unit/compile/temp_dir.h"

namespace kmosaic {
namespace {

namespace fs = std::filesystem;
using testing::TempDir;
using testing::Write;

void WriteProgram(const std::string& path, const std::string& script) {
  Write(path, "#!/bin/sh\n" + script);
  fs::permissions(path, fs::perms(0755));
}

struct Machine {
  TempDir dir;
  ToolchainSearch search;
  Machine() {
    WriteProgram(dir.path() + "/g++", "echo 12.2.0\n");
    search.gxx = dir.path() + "/g++";
    search.python = dir.path() + "/venv/bin/python";
    search.cuda_home = dir.path() + "/cuda";
    WriteHeaders(dir.path() + "/cuda");
  }
  static void WriteHeaders(const std::string& home) {
    Write(home + "/include/cuda_runtime_api.h", "");
    Write(home + "/include/crt/host_defines.h", "");
  }
};

TEST_CASE("versions are read from the compilers") {
  Machine m;
  WriteProgram(m.dir.path() + "/cuda/bin/nvcc",
               "echo 'nvcc: NVIDIA (R) Cuda compiler driver'\n"
               "echo 'Cuda compilation tools, release 13.0, V13.0.88'\n");
  auto found = FindToolchain(m.search);
  REQUIRE(found.ok());
  CHECK(found->gxx_version == "12.2.0");
  CHECK(found->nvcc_version == "13.0.88");
  CHECK(found->CudaName() == "nvcc 13.0.88, g++ 12.2.0");
  CHECK(found->HostName() == "g++ 12.2.0");
}

TEST_CASE("an nvcc that does not run counts as none") {
  Machine m;
  WriteProgram(m.dir.path() + "/cuda/bin/nvcc", "exit 1\n");
  auto found = FindToolchain(m.search);
  REQUIRE(found.ok());
  CHECK(found->nvcc.empty());
}

TEST_CASE("what is missing is named, with what to do") {
  Machine m;
  m.search.gxx = m.dir.path() + "/no-such-compiler";
  auto no_compiler = FindToolchain(m.search);
  CHECK(absl::IsNotFound(no_compiler.status()));
  CHECK(std::string(no_compiler.status().message()).find("install g++") != std::string::npos);
}

TEST_CASE("a toolkit without headers is refused by name") {
  Machine m;
  fs::remove_all(m.dir.path() + "/cuda/include");
  auto found = FindToolchain(m.search);
  CHECK(absl::IsNotFound(found.status()));
  CHECK(std::string(found.status().message()).find(m.dir.path() + "/cuda") != std::string::npos);
}

TEST_CASE("wheels with a part of the headers are passed over") {
  Machine m;
  m.search.cuda_home.clear();
  std::string wheels = m.dir.path() + "/venv/lib/python3.9/site-packages/nvidia";
  Write(wheels + "/cuda_runtime/include/cuda_runtime_api.h", "");
  Machine::WriteHeaders(wheels + "/cu13");
  std::string path = getenv("PATH");
  setenv("PATH", m.dir.path().c_str(), 1);
  unsetenv("CUDA_HOME");
  auto found = FindToolchain(m.search);
  setenv("PATH", path.c_str(), 1);
  REQUIRE(found.ok());
  CHECK(found->cuda_home == fs::canonical(wheels + "/cu13"));
}

TEST_CASE("a change of any header changes the digest") {
  TempDir dir;
  Write(dir.path() + "/a/one.h", "1");
  Write(dir.path() + "/a/sub/two.h", "2");
  std::string before = DigestHeaders({dir.path() + "/a"}, true);
  CHECK(DigestHeaders({dir.path() + "/a"}, true) == before);
  Write(dir.path() + "/a/sub/two.h", "3");
  CHECK(DigestHeaders({dir.path() + "/a"}, true) != before);
  // The same tree elsewhere is the same.
  fs::copy(dir.path() + "/a", dir.path() + "/b", fs::copy_options::recursive);
  CHECK(DigestHeaders({dir.path() + "/a"}, true) == DigestHeaders({dir.path() + "/b"}, true));
}

}  // namespace
}  // namespace kmosaic
