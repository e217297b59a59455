#include "coordinator/queue/submission.h"

#include <catch2/catch.hpp>
#include <functional>
#include <limits>

#include "tests/unit/queue/queue_fixture.h"

namespace kmosaic {
namespace {

absl::Status Check(const std::function<void(v1::SubmitRequest&)>& change) {
  v1::SubmitRequest request = MakeSubmit({.tasks = 3});
  change(request);
  SubmissionBuilder builder({});
  if (absl::Status status = builder.Add(request); !status.ok()) return status;
  return builder.Finish().status();
}

void CheckRefused(const std::string& field, const std::function<void(v1::SubmitRequest&)>& change) {
  INFO(field);
  absl::Status status = Check(change);
  CHECK(status.code() == absl::StatusCode::kInvalidArgument);
  INFO(status.ToString());
  CHECK(std::string(status.message()).find(field) != std::string::npos);
}

TEST_CASE("a malformed submission is refused with the field, and the task, that is wrong") {
  CheckRefused("spec", [](auto& r) { r.clear_spec(); });
  CheckRefused("spec.kind", [](auto& r) { r.mutable_spec()->set_kind("dance"); });
  CheckRefused("spec.views", [](auto& r) { r.mutable_spec()->clear_views(); });
  CheckRefused("spec.views[0]", [](auto& r) { r.mutable_spec()->mutable_views(0)->clear_views(); });
  CheckRefused("spec.views[1]",
               [](auto& r) { *r.mutable_spec()->add_views() = r.spec().views(0); });
  CheckRefused("spec.views[0]",
               [](auto& r) { r.mutable_spec()->mutable_views(0)->add_views(v1::VIEW_REFERENCE); });
  CheckRefused("spec.views[0]", [](auto& r) {
    r.mutable_spec()->mutable_views(0)->add_views(v1::VIEW_UNSPECIFIED);
  });
  CheckRefused("spec.samples", [](auto& r) { r.mutable_spec()->set_samples(1001); });
  CheckRefused("spec.weight", [](auto& r) { r.mutable_spec()->set_weight(1001); });
  CheckRefused("spec.priority", [](auto& r) { r.mutable_spec()->set_priority(10); });
  CheckRefused("spec.max_attempts", [](auto& r) { r.mutable_spec()->set_max_attempts(101); });
  CheckRefused("spec.target_speedup", [](auto& r) {
    r.mutable_spec()->set_target_speedup(std::numeric_limits<double>::quiet_NaN());
  });
  CheckRefused("spec.evaluation.scale",
               [](auto& r) { r.mutable_spec()->mutable_evaluation()->set_scale(1.5); });
  CheckRefused("spec.endpoint.kind", [](auto& r) { r.mutable_spec()->clear_endpoint(); });
  CheckRefused("spec.endpoint.url", [](auto& r) {
    r.mutable_spec()->mutable_endpoint()->set_kind(v1::ENDPOINT_KIND_OPENAI);
  });
  CheckRefused("tasks", [](auto& r) { r.clear_tasks(); });
  CheckRefused("tasks[1].id", [](auto& r) { r.mutable_tasks(1)->set_id(""); });
  CheckRefused("tasks[1].id", [](auto& r) { r.mutable_tasks(1)->set_id("../etc"); });
  CheckRefused("tasks[1].id", [](auto& r) { r.mutable_tasks(1)->set_id(std::string(129, 'a')); });
  CheckRefused("tasks[2] (task0).id", [](auto& r) { r.mutable_tasks(2)->set_id("task0"); });
  CheckRefused("tasks[2] (task2).oracle.reference",
               [](auto& r) { r.mutable_tasks(2)->clear_oracle(); });
  CheckRefused("tasks[0] (task0).contract", [](auto& r) { r.mutable_tasks(0)->clear_contract(); });
  CheckRefused("tasks[0] (task0).oracle.entry",
               [](auto& r) { r.mutable_tasks(0)->set_contract(v1::CONTRACT_CUDA); });
  CheckRefused("tasks[1] (task1).reference",
               [](auto& r) { r.mutable_tasks(1)->clear_reference(); });
  CheckRefused("total_tasks", [](auto& r) { r.set_total_tasks(4); });
  CHECK(Check([](auto& r) { r.set_total_tasks(3); }).ok());
}

TEST_CASE("a task needs only the views that it would be shown") {
  auto change = [](v1::SubmitRequest& request) {
    request.mutable_spec()->add_views()->add_views(v1::VIEW_SPEC);
    request.mutable_spec()->set_assign(v1::VIEW_ASSIGNMENT_ROUND_ROBIN);
    request.mutable_tasks(1)->set_spec("y = x");
    request.mutable_tasks(1)->clear_reference();
  };
  CHECK(Check(change).ok());
  CheckRefused("tasks[0] (task0).spec", [&](v1::SubmitRequest& request) {
    change(request);
    request.mutable_spec()->set_assign(v1::VIEW_ASSIGNMENT_ALL);
  });
}

TEST_CASE("how a stream is cut into messages does not matter, its content does") {
  v1::SubmitRequest whole = MakeSubmit({.tasks = 5, .request_id = "id"});
  SubmissionBuilder one({});
  REQUIRE(one.Add(whole).ok());
  auto first = one.Finish();

  SubmissionBuilder two({});
  v1::SubmitRequest head = whole;
  head.clear_tasks();
  REQUIRE(two.Add(head).ok());
  for (const v1::TaskSpec& task : whole.tasks()) {
    v1::SubmitRequest part;
    *part.add_tasks() = task;
    REQUIRE(two.Add(part).ok());
  }
  auto second = two.Finish();
  REQUIRE(first.ok());
  REQUIRE(second.ok());
  CHECK(first->digest == second->digest);
  CHECK(first->tasks.size() == 5);
  CHECK(second->request_id == "id");

  whole.mutable_tasks(3)->set_title("another");
  SubmissionBuilder three({});
  REQUIRE(three.Add(whole).ok());
  CHECK(three.Finish()->digest != first->digest);
}

TEST_CASE("spec and request id belong in the first message") {
  SubmissionBuilder builder({});
  REQUIRE(builder.Add(MakeSubmit({.tasks = 1})).ok());
  CHECK(builder.Add(MakeSubmit({.tasks = 1, .prefix = "x"})).code() ==
        absl::StatusCode::kInvalidArgument);
  SubmissionBuilder empty({});
  CHECK(empty.Finish().status().code() == absl::StatusCode::kInvalidArgument);
}

TEST_CASE("limits of a submission are RESOURCE_EXHAUSTED and named") {
  SubmissionBuilder tasks({.max_tasks = 2});
  CHECK(tasks.Add(MakeSubmit({.tasks = 3})).code() == absl::StatusCode::kResourceExhausted);
  SubmissionBuilder bytes({.max_bytes = 200});
  CHECK(bytes.Add(MakeSubmit({.tasks = 3})).code() == absl::StatusCode::kResourceExhausted);
  SubmissionBuilder items({.max_items = 5});
  REQUIRE(items.Add(MakeSubmit({.tasks = 3, .samples = 2})).ok());
  CHECK(items.Finish().status().code() == absl::StatusCode::kResourceExhausted);
}

TEST_CASE("what a client leaves out has its default") {
  v1::SubmitRequest request = MakeSubmit({});
  request.mutable_spec()->clear_samples();
  request.mutable_spec()->clear_weight();
  request.mutable_spec()->clear_max_attempts();
  SubmissionBuilder builder({});
  REQUIRE(builder.Add(request).ok());
  auto submission = builder.Finish();
  REQUIRE(submission.ok());
  CHECK(submission->spec->samples() == 1);
  CHECK(submission->spec->weight() == 1);
  CHECK(submission->spec->max_attempts() == 3);
}

}  // namespace
}  // namespace kmosaic
