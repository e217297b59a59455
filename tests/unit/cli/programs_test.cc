#include "cli/system/programs.h"

#include <catch2/catch.hpp>
#include <filesystem>

#include "tests/unit/cli/files.h"
#include "tests/unit/cli/test_host.h"

using namespace kmosaic;
namespace fs = std::filesystem;

namespace {

void WriteProgram(const fs::path& path) {
  WriteFile(path, "#!/bin/sh\n");
  fs::permissions(path, fs::perms::owner_all);
}

}  // namespace

TEST_CASE("A sister program is found in KMOSAIC_HOME, beside this one, then in PATH") {
  TestHost test;
  std::string root = test.temp.path();
  auto found = [&] { return FindSisterProgram(test.host, "kmosaic-coordinator"); };
  test.host.env["PATH"] = root + "/none:" + root + "/path";
  CHECK(absl::IsNotFound(found().status()));
  WriteProgram(root + "/path/kmosaic-coordinator");
  CHECK(*found() == root + "/path/kmosaic-coordinator");
  WriteProgram(root + "/bin/kmosaic-coordinator");
  CHECK(*found() == root + "/bin/kmosaic-coordinator");
  test.host.env["KMOSAIC_HOME"] = root + "/home";
  CHECK(*found() == root + "/bin/kmosaic-coordinator");
  WriteProgram(root + "/home/bin/kmosaic-coordinator");
  CHECK(*found() == root + "/home/bin/kmosaic-coordinator");
}

TEST_CASE("Python: what the user named, the active environment, the .venv above, PATH") {
  TestHost test;
  std::string root = test.temp.path();
  test.host.executable = root + "/repo/build/dev/bin/kmosaic";
  test.host.env["PATH"] = root + "/path";
  CHECK_FALSE(FindPython(test.host));
  WriteProgram(root + "/path/python3");
  CHECK(FindPython(test.host)->path == root + "/path/python3");
  WriteProgram(root + "/repo/.venv/bin/python");
  CHECK(FindPython(test.host)->path == root + "/repo/.venv/bin/python");
  WriteProgram(root + "/active/bin/python");
  test.host.env["VIRTUAL_ENV"] = root + "/active";
  CHECK(FindPython(test.host)->path == root + "/active/bin/python");
  test.host.env["KMOSAIC_PYTHON"] = "/opt/python";
  CHECK(FindPython(test.host)->path == "/opt/python");
  CHECK(FindPython(test.host)->found_by == "KMOSAIC_PYTHON");
}

TEST_CASE("The toolkit: CUDA_HOME, nvcc in PATH, the wheels beside Python") {
  TestHost test;
  std::string root = test.temp.path();
  test.host.env["PATH"] = root + "/toolkit/bin";
  WriteProgram(root + "/venv/bin/python");
  WriteProgram(root + "/venv/lib/python3.11/site-packages/nvidia/cu13/bin/nvcc");
  if (!fs::exists("/usr/local/cuda/bin/nvcc")) {
    auto wheels = FindToolkit(test.host, root + "/venv/bin/python");
    REQUIRE(wheels);
    CHECK(wheels->path == root + "/venv/lib/python3.11/site-packages/nvidia/cu13");
  }
  WriteProgram(root + "/toolkit/bin/nvcc");
  CHECK(FindToolkit(test.host, "")->path == fs::canonical(root + "/toolkit").string());
  test.host.env["CUDA_HOME"] = "/cuda";
  CHECK(FindToolkit(test.host, "")->path == "/cuda");
}
