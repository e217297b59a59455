#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <sstream>

#include "coordinator/dataset/direct.h"
#include "coordinator/dataset/trajectory.h"
#include "tests/unit/dataset/sample_record.h"

namespace kmosaic {
namespace {

using Json = nlohmann::ordered_json;

// Compares with golden/NAME. KMOSAIC_UPDATE_GOLDEN=1 writes it instead (and the change is
// for a reviewer to see).
void CheckGolden(const std::string& name, const Json& row) {
  std::string path = std::string(KMOSAIC_GOLDEN_DIR) + "/" + name;
  std::string text = row.dump(2) + "\n";
  if (std::getenv("KMOSAIC_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << text;
  std::ifstream file(path);
  REQUIRE(file.good());
  std::stringstream expected;
  expected << file.rdbuf();
  CHECK(text == expected.str());
}

Record Make(const Sample& sample) {
  auto record = sample.Make();
  INFO(record.status().ToString());
  REQUIRE(record.ok());
  return *std::move(record);
}

// Keys with the kinds of their values, so that two rows can be compared: null fits all.
Json Shape(const Json& value) {
  if (value.is_object()) {
    Json shape = Json::object();
    for (const auto& [key, inner] : value.items()) shape[key] = Shape(inner);
    return shape;
  }
  return nullptr;
}

TEST_CASE("a trajectory row is what its golden file says") {
  CheckGolden("trajectory.json", TrajectoryRow(Make(EmulatedSample())));
}

TEST_CASE("a direct row is what its golden file says") {
  CheckGolden("direct.json", DirectRow(Make(CudaSample())));
}

TEST_CASE("an unverified conversation is what its golden file says") {
  Sample sample = EmulatedSample();
  sample.steps.resize(3);  // ends with a reply that was not evaluated
  sample.item.mutable_result()->Clear();
  sample.item.mutable_result()->set_stop_reason(v1::STOP_REASON_RECORDING_ENDED);
  CheckGolden("unverified.json", TrajectoryRow(Make(sample)));
}

TEST_CASE("every row of a format has the same keys in the same order") {
  Json full = TrajectoryRow(Make(EmulatedSample()));
  Json other = TrajectoryRow(Make(CudaSample()));
  Sample bare;
  bare.task.set_id("t");
  bare.AddTurn(v1::STAGE_IMPLEMENT, "Do it.", "x\n", v1::VERDICT_UNSPECIFIED);
  Json empty = TrajectoryRow(Make(bare));
  CHECK(Shape(full).dump() == Shape(other).dump());
  CHECK(Shape(full).dump() == Shape(empty).dump());
  CHECK(Shape(full["turns"][0]).dump() == Shape(empty["turns"][0]).dump());
  CHECK(Shape(DirectRow(Make(EmulatedSample()))).dump() ==
        Shape(DirectRow(Make(CudaSample()))).dump());
}

TEST_CASE("what was not measured is null and never 0") {
  Json row = TrajectoryRow(Make(EmulatedSample()));
  for (const auto& [key, value] : row["timing"].items()) {
    INFO(key);
    CHECK(value.is_null());
  }
  row = TrajectoryRow(Make(CudaSample()));
  for (const auto& [key, value] : row["work"].items()) {
    INFO(key);
    CHECK(value.is_null());
  }
  CHECK(row["timing"]["floor_us"].is_null());
}

TEST_CASE("an infinite error is null") {
  Sample sample = CudaSample();
  sample.report().mutable_verify()->set_worst_error_ratio(std::numeric_limits<double>::infinity());
  CHECK(TrajectoryRow(Make(sample))["verification"]["worst_error_ratio"].is_null());
}

TEST_CASE("secret seeds are counted and not named") {
  std::string line = ToLine(TrajectoryRow(Make(EmulatedSample())));
  CHECK_THAT(line, Catch::Contains("\"secret_seeds\":5"));
  CHECK_THAT(line, !Catch::Contains("123456789"));
}

TEST_CASE("the final solution is the best version and not the last one") {
  Json row = TrajectoryRow(Make(EmulatedSample()));
  CHECK(row["solution"]["source"] == "better\n");
  CHECK(row["turns"][3]["best"] == true);
  CHECK(row["turns"][4]["rolled_back"] == true);
  CHECK(row["messages"][row["turns"][3]["message"].get<size_t>()]["content"] ==
        "Here it is.\n```python\nbetter\n```\n");
}

TEST_CASE("bytes that are not UTF-8 become valid UTF-8 on one line") {
  Sample sample = CudaSample();
  sample.steps[0].mutable_reply()->set_content("a\xff\xfe\n\xe2\x82");
  sample.steps[1].mutable_result()->mutable_solution()->set_source("\xc3(\n");
  sample.task.set_title("\xed\xa0\x80");
  std::string line = ToLine(TrajectoryRow(Make(sample)));
  CHECK(line.find('\n') == std::string::npos);
  Json parsed = Json::parse(line);  // throws on invalid UTF-8
  CHECK(parsed["messages"][2]["content"].get<std::string>().substr(0, 4) == "a\xef\xbf\xbd");
}

TEST_CASE("a direct row asks as the first turn did and answers with the final source") {
  Json row = DirectRow(Make(EmulatedSample()));
  REQUIRE(row["messages"].size() == 3);
  CHECK(row["messages"][0]["role"] == "system");
  CHECK(row["messages"][1]["content"] == "Write softmax.");
  CHECK(row["messages"][2]["content"] == "```python\nbetter\n```\n");
}

TEST_CASE("where the context was started anew a row shows the last one and loses no reply") {
  Sample sample = EmulatedSample();
  // The last turn was told of the best version alone.
  v1::ModelReply& last = *sample.steps[8].mutable_reply();
  const std::string feedback = last.added(0).content();
  last.clear_added();
  *last.add_added() = sample.steps[0].reply().added(0);
  *last.add_added() = sample.steps[0].reply().added(1);
  last.add_added()->set_role(v1::CHAT_ROLE_ASSISTANT);
  last.mutable_added(2)->set_content(sample.steps[6].reply().content());
  last.add_added()->set_role(v1::CHAT_ROLE_USER);
  last.mutable_added(3)->set_content(feedback);

  Json row = TrajectoryRow(Make(sample));
  REQUIRE(row["messages"].size() == 5);
  REQUIRE(row["turns"].size() == 5);
  for (size_t i : {0, 1, 2}) {
    CHECK(row["turns"][i]["message"].is_null());
    CHECK(row["turns"][i]["context"] == 0);
    CHECK(row["turns"][i]["left_out"] == sample.steps[2 * i].reply().content());
  }
  CHECK(row["turns"][3]["message"] == 2);
  CHECK(row["turns"][3]["best"] == true);
  CHECK(row["turns"][3]["left_out"].is_null());
  CHECK(row["turns"][4]["message"] == 4);
  CHECK(row["turns"][4]["context"] == 1);
  CHECK(DirectRow(Make(sample))["messages"][1]["content"] == "Write softmax.");
}

TEST_CASE("a fence is longer than what it fences") {
  v1::Solution solution;
  solution.set_contract(v1::CONTRACT_CUDA);
  solution.set_source("// ```` in a comment");
  CHECK(FencedSource(solution) == "`````cuda\n// ```` in a comment\n`````\n");
}

}  // namespace
}  // namespace kmosaic
