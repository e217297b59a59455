#include <catch2/catch.hpp>
#include <filesystem>

#include "tests/unit/cli/fake_services.h"
#include "tests/unit/cli/files.h"
#include "tests/unit/cli/test_host.h"

using namespace kmosaic;

namespace {

struct Fixture {
  FakeCoordinator fake;
  TestHost run;
  std::string out = run.temp.path() + "/out";

  int Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(),
                     {"--coordinator", fake.target(), "export", "job-1", "--out", out});
    return run.Run(arguments);
  }
  void AddRow(const std::string& split, const std::string& json) {
    v1::ExportRow& row = *fake.dataset.responses.emplace_back().mutable_row();
    row.set_split(split);
    row.set_json(json);
  }
  void AddSummary(uint64_t items, uint64_t rows) {
    v1::ExportSummary& summary = *fake.dataset.responses.emplace_back().mutable_summary();
    summary.set_items(items);
    summary.set_rows(rows);
    (*summary.mutable_dropped())["emulated"] = items - rows;
  }
  bool IsEmpty() const { return std::filesystem::is_empty(out); }
};

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE_METHOD(Fixture, "export writes the stream's rows and says what was left out") {
  AddRow("train", "{\"a\":1}");
  AddRow("test", "{\"a\":2}");
  AddSummary(5, 2);
  CHECK(Run({"--format", "direct", "--include-emulated", "--min-speedup", "1.5"}) == 0);
  CHECK(ReadFile(out + "/train.jsonl") == "{\"a\":1}\n");
  CHECK(ReadFile(out + "/test.jsonl") == "{\"a\":2}\n");
  CHECK(Contains(run.out.str(), "2 rows of 5 conversations"));
  CHECK(Contains(run.out.str(), "emulated"));
  CHECK(fake.dataset.request.format() == v1::EXPORT_FORMAT_DIRECT);
  CHECK(fake.dataset.request.include_emulated());
  CHECK(fake.dataset.request.min_speedup() == 1.5);
  CHECK(fake.dataset.request.jobs(0) == "job-1");
}

TEST_CASE_METHOD(Fixture,
                 "export tells rows that the emulated device verified from unverified ones") {
  auto add = [&] {
    fake.dataset.responses.clear();
    AddRow("train", "{\"verified\":true,\"emulated\":true}");
    AddRow("train", "{\"verified\":false,\"emulated\":true}");
    AddRow("test", "{\"verified\":false,\"emulated\":false}");
    AddRow("test", "{\"verified\":true,\"emulated\":false}");
    AddSummary(4, 4);
  };
  add();
  CHECK(Run({"--include-emulated", "--include-unverified"}) == 0);
  CHECK(Contains(run.out.str(),
                 "\n1 of them were verified on the emulated device only and say so.\n"
                 "2 of them hold no verified solution and say so.\n"));
  add();
  CHECK(Run({"--include-emulated", "--include-unverified", "-o", "json"}) == 0);
  CHECK(run.Json()["emulated"] == 1);
  CHECK(run.Json()["unverified"] == 2);
}

TEST_CASE_METHOD(Fixture, "Without a least speedup none is sent") {
  AddSummary(0, 0);
  CHECK(Run({"-o", "json"}) == 0);
  CHECK_FALSE(fake.dataset.request.has_min_speedup());
  CHECK(fake.dataset.request.format() == v1::EXPORT_FORMAT_TRAJECTORY);
  CHECK(run.Json()["rows"] == 0);
}

TEST_CASE_METHOD(Fixture, "A stream that breaks off leaves no file") {
  AddRow("train", "{\"a\":1}");
  fake.dataset.status = grpc::Status(grpc::StatusCode::UNAVAILABLE, "going down");
  CHECK(Run({}) == 3);
  CHECK(IsEmpty());
}

TEST_CASE_METHOD(Fixture, "A stream without its summary, or with another count, is not believed") {
  AddRow("train", "{\"a\":1}");
  CHECK(Run({}) == 3);
  CHECK(IsEmpty());
  AddSummary(2, 2);
  CHECK(Run({}) == 3);
  CHECK(Contains(run.err.str(), "counted 2 rows and 1 arrived"));
  CHECK(IsEmpty());
}

TEST_CASE_METHOD(Fixture, "Exporting a job that is not there is bad input") {
  fake.dataset.status = grpc::Status(grpc::StatusCode::NOT_FOUND, "there is no job job-1");
  CHECK(Run({}) == 2);
  CHECK(IsEmpty());
}

TEST_CASE_METHOD(Fixture, "A folder with somebody's own files is bad input") {
  WriteFile(out + "/README.md", "mine");
  AddSummary(0, 0);
  CHECK(Run({}) == 2);
  CHECK(ReadFile(out + "/README.md") == "mine");
}
