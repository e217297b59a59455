#include <catch2/catch.hpp>
#include <sstream>

#include "cli/output/print_json.h"
#include "cli/output/wire_json.h"
#include "cli/score/score_report.h"
#include "kernelmosaic/v1/admin.pb.h"
#include "kernelmosaic/v1/job.pb.h"

using namespace kmosaic;
using nlohmann::ordered_json;

TEST_CASE("What was not measured is null, never 0") {
  v1::EvaluationReport report;
  report.set_verdict(v1::VERDICT_WRONG_OUTPUT);
  report.set_reason("one is off");
  report.mutable_compile()->set_seconds(0.5);
  report.mutable_compile()->set_abi("emulated");
  ordered_json json = ScoreJson("k1", "", report);
  CHECK(json["id"] == "k1");
  CHECK(json["verdict"] == "WRONG_OUTPUT");
  CHECK(json["reason"] == "one is off");
  CHECK(json["compile"]["seconds"] == 0.5);
  CHECK(json["compile"]["abi"] == "emulated");
  CHECK(json["compile"]["cached"] == false);
  CHECK(json["verify"].is_null());
  CHECK(json["benchmark"].is_null());
  CHECK(json["device"].is_null());
  CHECK_FALSE(json.contains("label"));
}

TEST_CASE("A measured speedup is a number and an unmeasured one null") {
  v1::EvaluationReport report;
  report.mutable_benchmark()->set_median_us(10);
  CHECK(ScoreJson("a", "", report)["benchmark"]["speedup"].is_null());
  report.mutable_benchmark()->set_speedup(1.5);
  CHECK(ScoreJson("a", "", report)["benchmark"]["speedup"] == 1.5);
}

TEST_CASE("Enums have their short names, unset ones are null") {
  v1::Worker worker;
  worker.set_state(v1::WORKER_STATE_DRAINING);
  worker.add_slots()->set_role(v1::ROLE_VERIFY);
  ordered_json json = ToJson(worker);
  CHECK(json["state"] == "draining");
  CHECK(json["slots"][0]["role"] == "verify");
  CHECK(ToJson(v1::Worker())["state"].is_null());
}

TEST_CASE("Times are RFC 3339, durations seconds, maps sorted objects") {
  v1::Job job;
  job.mutable_created()->set_seconds(1'700'000'000);
  job.mutable_created()->set_nanos(250'000'000);
  job.mutable_spec()->mutable_endpoint()->mutable_timeout()->set_seconds(90);
  (*job.mutable_spec()->mutable_evaluation()->mutable_require())["z"] = "1";
  (*job.mutable_spec()->mutable_evaluation()->mutable_require())["a"] = "2";
  ordered_json json = ToJson(job);
  CHECK(json["created"] == "2023-11-14T22:13:20.250Z");
  CHECK(json["finished"].is_null());
  CHECK(json["spec"]["endpoint"]["timeout"] == 90.0);
  CHECK(json["spec"]["evaluation"]["require"].dump() == "{\"a\":\"2\",\"z\":\"1\"}");
}

TEST_CASE("Of a oneof only what is set appears") {
  v1::JobEvent event;
  event.mutable_item()->set_task("t");
  ordered_json json = ToJson(event);
  CHECK(json["item"]["task"] == "t");
  CHECK_FALSE(json.contains("job_state"));
  event.set_job_state(v1::JOB_STATE_FINISHED);
  json = ToJson(event);
  CHECK(json["job_state"] == "finished");
  CHECK_FALSE(json.contains("item"));
}

TEST_CASE("A number that JSON does not have is null") {
  v1::Mismatch mismatch;
  mismatch.set_got(std::numeric_limits<double>::quiet_NaN());
  CHECK(ToJson(mismatch)["got"].is_null());
}

TEST_CASE("jsonl prints one line for each element and for anything else one") {
  std::ostringstream out;
  PrintJson(out, OutputFormat::kJsonl, ordered_json::array({1, {{"a", 2}}}));
  PrintJson(out, OutputFormat::kJsonl, {{"b", "\xff"}});
  CHECK(out.str() == "1\n{\"a\":2}\n{\"b\":\"\xef\xbf\xbd\"}\n");
}
