#include "cli/dataset/dataset_writer.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/testing/temp_dir.h"
#include "tests/unit/cli/files.h"

using namespace kmosaic;
namespace fs = std::filesystem;
namespace v1 = kernelmosaic::v1;

namespace {

v1::ExportRow Row(const std::string& split, const std::string& json) {
  v1::ExportRow row;
  row.set_split(split);
  row.set_json(json);
  return row;
}

v1::ExportSummary Summary(uint64_t items, uint64_t rows) {
  v1::ExportSummary summary;
  summary.set_items(items);
  summary.set_rows(rows);
  (*summary.mutable_dropped())["not verified"] = items - rows;
  return summary;
}

DatasetInfo Info() {
  DatasetInfo info;
  info.format = "trajectory";
  info.jobs = {"job-a"};
  info.include_emulated = true;
  info.created = absl::FromUnixSeconds(1'700'000'000);
  return info;
}

std::set<std::string> Names(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder))
    names.insert(entry.path().filename().string());
  return names;
}

}  // namespace

TEST_CASE("A finished export holds its rows, a manifest and a card, and nothing else") {
  TempDir temp;
  std::string folder = temp.path() + "/a/b";
  auto writer = DatasetWriter::Open(folder);
  REQUIRE(writer.ok());
  std::string emulated = "{\"id\":1,\"verified\":true,\"emulated\":true}";
  std::string measured = "{\"id\":2,\"verified\":true,\"emulated\":false}";
  REQUIRE((*writer)->Add(Row("train", emulated)).ok());
  REQUIRE((*writer)->Add(Row("train", measured)).ok());
  REQUIRE((*writer)->Add(Row("test", "{\"id\":3,\"verified\":false,\"emulated\":true}")).ok());
  REQUIRE((*writer)->Finish(Info(), Summary(5, 3)).ok());
  writer->reset();
  CHECK(Names(folder) ==
        std::set<std::string>{"README.md", "manifest.json", "test.jsonl", "train.jsonl"});
  CHECK(ReadFile(folder + "/train.jsonl") == emulated + "\n" + measured + "\n");
  auto manifest = nlohmann::json::parse(ReadFile(folder + "/manifest.json"));
  CHECK(manifest["rows"] == 3);
  CHECK(manifest["items"] == 5);
  CHECK(manifest["rows_verified_on_the_emulated_device_only"] == 1);
  CHECK(manifest["rows_without_a_verified_solution"] == 1);
  CHECK(manifest["splits"]["train"]["rows"] == 2);
  CHECK(manifest["dropped"]["not verified"] == 2);
  CHECK(manifest["filters"]["min_speedup"].is_null());
  std::string card = ReadFile(folder + "/README.md");
  CHECK(card.find("path: train.jsonl") != std::string::npos);
  CHECK(card.find("validation") == std::string::npos);
  CHECK(card.find("1 of the 3 rows were verified on the emulated device only") !=
        std::string::npos);
  CHECK(card.find("1 of the 3 rows hold no verified solution") != std::string::npos);
  CHECK(card.find("| not verified | 2 |") != std::string::npos);
}

TEST_CASE("An export that is not finished leaves nothing behind") {
  TempDir temp;
  {
    auto writer = DatasetWriter::Open(temp.path());
    REQUIRE(writer.ok());
    REQUIRE((*writer)->Add(Row("train", "{}")).ok());
    CHECK(Names(temp.path()).size() == 1);
  }
  CHECK(Names(temp.path()).empty());
}

TEST_CASE("A new export replaces the earlier one as a whole; an unfinished one leaves it alone") {
  TempDir temp;
  {
    auto first = DatasetWriter::Open(temp.path());
    REQUIRE(first.ok());
    REQUIRE((*first)->Add(Row("train", "{\"n\":1}")).ok());
    REQUIRE((*first)->Add(Row("validation", "{\"n\":2}")).ok());
    REQUIRE((*first)->Finish(Info(), Summary(2, 2)).ok());
  }
  {
    auto unfinished = DatasetWriter::Open(temp.path());
    REQUIRE(unfinished.ok());
    REQUIRE((*unfinished)->Add(Row("train", "{\"n\":9}")).ok());
  }
  CHECK(ReadFile(temp.path() + "/train.jsonl") == "{\"n\":1}\n");
  {
    auto second = DatasetWriter::Open(temp.path());
    REQUIRE(second.ok());
    REQUIRE((*second)->Add(Row("train", "{\"n\":3}")).ok());
    REQUIRE((*second)->Finish(Info(), Summary(1, 1)).ok());
  }
  CHECK(ReadFile(temp.path() + "/train.jsonl") == "{\"n\":3}\n");
  CHECK_FALSE(fs::exists(temp.path() + "/validation.jsonl"));
}

TEST_CASE("Files that are not an export of ours are never overwritten") {
  TempDir temp;
  WriteFile(temp.path() + "/train.jsonl", "mine\n");
  auto writer = DatasetWriter::Open(temp.path());
  REQUIRE_FALSE(writer.ok());
  CHECK(std::string(writer.status().message()).find("train.jsonl") != std::string::npos);
  CHECK(ReadFile(temp.path() + "/train.jsonl") == "mine\n");
}

TEST_CASE("A row that is not one JSON object on one line, or of an unknown split, is refused") {
  TempDir temp;
  auto writer = DatasetWriter::Open(temp.path());
  REQUIRE(writer.ok());
  for (const char* text : {"", "[1]", "{", "{\n}", "{} {}"}) {
    INFO(text);
    CHECK(absl::IsDataLoss((*writer)->Add(Row("train", text))));
  }
  CHECK(absl::IsDataLoss((*writer)->Add(Row("../train", "{}"))));
  CHECK((*writer)->counts().rows.empty());
}

TEST_CASE("An export without rows is a card and a manifest that say so") {
  TempDir temp;
  auto writer = DatasetWriter::Open(temp.path());
  REQUIRE(writer.ok());
  REQUIRE((*writer)->Finish(Info(), Summary(4, 0)).ok());
  CHECK(Names(temp.path()) == std::set<std::string>{"README.md", "manifest.json"});
}
