#include "coordinator/dataset/filter.h"

#include <catch2/catch.hpp>
#include <limits>

#include "tests/unit/dataset/sample_record.h"

namespace kmosaic {
namespace {

v1::ExportRequest Trajectories() {
  v1::ExportRequest request;
  request.add_jobs("job-abc");
  request.set_format(v1::EXPORT_FORMAT_TRAJECTORY);
  return request;
}

TEST_CASE("an export has to make sense") {
  CHECK(CheckExport(Trajectories()).ok());
  v1::ExportRequest request = Trajectories();
  SECTION("jobs") { request.clear_jobs(); }
  SECTION("format") { request.set_format(v1::EXPORT_FORMAT_UNSPECIFIED); }
  SECTION("unverified solutions") {
    request.set_format(v1::EXPORT_FORMAT_DIRECT);
    request.set_include_unverified(true);
  }
  SECTION("speedup") { request.set_min_speedup(std::numeric_limits<double>::quiet_NaN()); }
  CHECK(absl::IsInvalidArgument(CheckExport(request)));
}

TEST_CASE("items are left out by their state") {
  v1::Item item = EmulatedSample().item;
  v1::ExportRequest request = Trajectories();
  CHECK_FALSE(WhyItemDropped(item, request).has_value());
  for (auto [state, reason] :
       {std::pair(v1::ITEM_STATE_READY, "unfinished"),
        std::pair(v1::ITEM_STATE_DELAYED, "unfinished"),
        std::pair(v1::ITEM_STATE_LEASED, "unfinished"), std::pair(v1::ITEM_STATE_FAILED, "failed"),
        std::pair(v1::ITEM_STATE_DEAD, "dead"), std::pair(v1::ITEM_STATE_CANCELLED, "cancelled")}) {
    item.set_state(state);
    CHECK(WhyItemDropped(item, request) == reason);
  }
  item.set_state(v1::ITEM_STATE_DONE);
  item.mutable_result()->set_verified(false);
  CHECK(WhyItemDropped(item, request) == "not_verified");
  request.set_include_unverified(true);
  CHECK_FALSE(WhyItemDropped(item, request).has_value());
}

TEST_CASE("what only an emulated device verified has to be asked for") {
  Record emulated = *EmulatedSample().Make();
  Record cuda = *CudaSample().Make();
  v1::ExportRequest request = Trajectories();
  CHECK(WhyRecordDropped(emulated, request) == "emulated");
  CHECK_FALSE(WhyRecordDropped(cuda, request).has_value());
  request.set_include_emulated(true);
  CHECK_FALSE(WhyRecordDropped(emulated, request).has_value());
}

TEST_CASE("a report without a device counts by the job's device") {
  Sample sample = EmulatedSample();
  for (v1::Step& step : sample.steps) {
    if (step.has_result()) step.mutable_result()->mutable_report()->clear_device();
  }
  CHECK(sample.Make()->Emulated());
}

TEST_CASE("a least speedup leaves out what is slower and what was not timed") {
  v1::ExportRequest request = Trajectories();
  request.set_include_emulated(true);
  Record cuda = *CudaSample().Make();
  request.set_min_speedup(2);
  CHECK_FALSE(WhyRecordDropped(cuda, request).has_value());
  request.set_min_speedup(2.1);
  CHECK(WhyRecordDropped(cuda, request) == "below_min_speedup");
  CHECK(WhyRecordDropped(*EmulatedSample().Make(), request) == "speedup_unknown");
}

TEST_CASE("a result that its steps do not bear out is malformed") {
  Sample sample = EmulatedSample();
  SECTION("no step") { sample.item.mutable_result()->clear_best_step(); }
  SECTION("a step that is not there") { sample.item.mutable_result()->set_best_step(99); }
  SECTION("a reply") { sample.item.mutable_result()->set_best_step(0); }
  SECTION("a step that did not pass") { sample.item.mutable_result()->set_best_step(1); }
  auto record = sample.Make();
  REQUIRE_FALSE(record.ok());
  CHECK(WhyNoRecord(record.status()) == "malformed");
}

TEST_CASE("an item without a reply has no conversation") {
  Sample sample = EmulatedSample();
  sample.steps.clear();
  CHECK(WhyNoRecord(sample.Make().status()) == "no_conversation");
}

}  // namespace
}  // namespace kmosaic
