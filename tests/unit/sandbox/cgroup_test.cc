#include "gpu_worker/sandbox/cgroup.h"

#include <catch2/catch.hpp>

#include "absl/strings/str_cat.h"

namespace kmosaic {
namespace {

std::string Mountinfo(const std::string& root, const std::string& point, const std::string& type,
                      const std::string& options) {
  return absl::StrCat("30 23 0:26 ", root, " ", point, " rw,relatime shared:9 - ", type, " ", type,
                      " rw,", options, "\n");
}

TEST_CASE("version 1 groups are found below each controller's own folder") {
  auto place = LocateCgroups("9:memory:/jobs/a\n8:pids:/\n0::/\n",
                             Mountinfo("/", "/sys/fs/cgroup/memory", "cgroup", "memory") +
                                 Mountinfo("/", "/sys/fs/cgroup/pids", "cgroup", "pids") +
                                 Mountinfo("/", "/sys/fs/cgroup/unified", "cgroup2", "nsdelegate"));
  REQUIRE(place.ok());
  CHECK(place->version == 1);
  CHECK(place->memory == "/sys/fs/cgroup/memory/jobs/a");
  CHECK(place->pids == "/sys/fs/cgroup/pids");
}

TEST_CASE("version 2 is one folder") {
  auto place = LocateCgroups("0::/system.slice/worker.service\n",
                             Mountinfo("/", "/sys/fs/cgroup", "cgroup2", "nsdelegate"));
  REQUIRE(place.ok());
  CHECK(place->version == 2);
  CHECK(place->memory == "/sys/fs/cgroup/system.slice/worker.service");
  CHECK(place->pids == place->memory);
}

TEST_CASE("a mount of a part of the hierarchy is taken off the path") {
  auto place = LocateCgroups("0::/docker/abc/inner\n",
                             Mountinfo("/docker/abc", "/sys/fs/cgroup", "cgroup2", "x"));
  REQUIRE(place.ok());
  CHECK(place->memory == "/sys/fs/cgroup/inner");
}

TEST_CASE("a group outside of the namespace is the top that can be seen") {
  auto place = LocateCgroups("0::/../..\n", Mountinfo("/", "/sys/fs/cgroup", "cgroup2", "x"));
  REQUIRE(place.ok());
  CHECK(place->memory == "/sys/fs/cgroup");
}

TEST_CASE("controllers in one hierarchy share its folder") {
  auto place =
      LocateCgroups("4:cpu,memory,pids:/x\n", Mountinfo("/", "/c", "cgroup", "cpu,memory,pids"));
  REQUIRE(place.ok());
  CHECK(place->memory == "/c/x");
  CHECK(place->pids == "/c/x");
}

TEST_CASE("no controllers is said, not guessed") {
  CHECK(absl::IsNotFound(LocateCgroups("", "").status()));
  CHECK(absl::IsNotFound(
      LocateCgroups("9:memory:/\n", Mountinfo("/", "/m", "cgroup", "memory")).status()));
}

TEST_CASE("names of groups tell their daemon") {
  CHECK(CgroupName(1) != CgroupName(2));
  CHECK(CgroupName(1).find("kmosaic-") == 0);
}

}  // namespace
}  // namespace kmosaic
