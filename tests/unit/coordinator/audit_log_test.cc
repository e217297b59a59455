#include "coordinator/service/audit_log.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "tests/testing/temp_dir.h"

namespace kmosaic {
namespace {

std::vector<nlohmann::json> Lines(const std::string& path) {
  std::vector<nlohmann::json> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

TEST_CASE("calls are noted with who, what and how it ended, over restarts") {
  TempDir directory;
  std::string path = directory.path() + "/audit.jsonl";
  FakeClock clock;
  {
    auto log = AuditLog::Open(path, clock);
    REQUIRE(log.ok());
    (*log)->Add({"ipv4:10.0.0.1:5", "cancel", "job-a", absl::OkStatus()});
  }
  auto log = AuditLog::Open(path, clock);
  REQUIRE(log.ok());
  (*log)->Add({"unix:", "delete", "job-\xff", absl::NotFoundError("no job \"b\"\n")});
  auto lines = Lines(path);
  REQUIRE(lines.size() == 2);
  CHECK(lines[0]["peer"] == "ipv4:10.0.0.1:5");
  CHECK(lines[0]["verb"] == "cancel");
  CHECK(lines[0]["subject"] == "job-a");
  CHECK(lines[0]["outcome"] == "OK");
  CHECK(lines[0].count("error") == 0);
  CHECK(lines[1]["outcome"] == "NOT_FOUND");
  CHECK(lines[1]["error"] == "no job \"b\"\n");
}

TEST_CASE("a full audit log is kept once") {
  TempDir directory;
  std::string path = directory.path() + "/audit.jsonl";
  FakeClock clock;
  auto log = AuditLog::Open(path, clock, 1000);
  REQUIRE(log.ok());
  for (int i = 0; i < 100; ++i) {
    (*log)->Add({"peer", "pause", "job-" + std::to_string(i), absl::OkStatus()});
  }
  auto before = Lines(path + ".1");
  auto now = Lines(path);
  REQUIRE_FALSE(now.empty());
  CHECK(now.back()["subject"] == "job-99");
  REQUIRE_FALSE(before.empty());
  CHECK(before.size() + now.size() < 30);
}

TEST_CASE("an audit log that cannot be opened says which") {
  FakeClock clock;
  auto log = AuditLog::Open("/nowhere/audit.jsonl", clock);
  CHECK(log.status().message().find("/nowhere/audit.jsonl") != std::string::npos);
}

}  // namespace
}  // namespace kmosaic
