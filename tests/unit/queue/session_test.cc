// Sessions and extensions over a real connection.
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <thread>

#include "tests/unit/queue/served.h"

namespace kmosaic {
namespace {

// One open session.
class Session {
 public:
  explicit Session(Served& served) {
    SetDeadline(context_, absl::Minutes(1));
    stream_ = served.runners->Session(&context_);
  }

  static v1::SessionRequest Ask(uint64_t id, uint32_t free, int wait_seconds = 0) {
    v1::SessionRequest request;
    request.set_id(id);
    request.mutable_sync()->set_runner("runner");
    request.mutable_sync()->set_free(free);
    request.mutable_sync()->mutable_wait()->set_seconds(wait_seconds);
    return request;
  }
  // For threads other than the test's.
  bool Write(const v1::SessionRequest& request) { return stream_->Write(request); }
  bool Read(v1::SessionResponse& response) { return stream_->Read(&response); }
  void Send(const v1::SessionRequest& request) { REQUIRE(Write(request)); }
  v1::SessionResponse Receive() {
    v1::SessionResponse response;
    REQUIRE(Read(response));
    return response;
  }
  void Break() { context_.TryCancel(); }
  grpc::Status Close() {
    stream_->WritesDone();
    v1::SessionResponse rest;
    while (stream_->Read(&rest)) {
    }
    return stream_->Finish();
  }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::SessionRequest, v1::SessionResponse>> stream_;
};

TEST_CASE("completions and the next leases share a message") {
  Served served;
  std::string job = served.SubmitJob({.tasks = 5});
  Session session(served);
  session.Send(Session::Ask(1, 3));
  v1::SessionResponse first = session.Receive();
  CHECK(first.id() == 1);
  CHECK(first.sync_status().code() == 0);
  REQUIRE(first.sync().granted_size() == 3);
  CHECK(first.sync().jobs().count(job) == 1);

  v1::SessionRequest next = Session::Ask(2, 3);
  *next.add_steps() = ReplyStep(first.sync().granted(0).token(), 0);
  for (const v1::Lease& lease : first.sync().granted()) {
    *next.add_completions() = Completion(lease.token());
  }
  // One of them twice: a repetition is fine. And one that nobody holds.
  *next.add_completions() = Completion(first.sync().granted(0).token());
  v1::LeaseToken stale = first.sync().granted(0).token();
  stale.set_attempt(7);
  *next.add_releases() = Releasing(stale, v1::FAILURE_CLASS_FINAL);
  session.Send(next);
  v1::SessionResponse second = session.Receive();
  CHECK(second.id() == 2);
  REQUIRE(second.steps_size() == 1);
  CHECK(second.steps(0).code() == 0);
  REQUIRE(second.completions_size() == 4);
  for (const v1::CallStatus& status : second.completions()) CHECK(status.code() == 0);
  REQUIRE(second.releases_size() == 1);
  CHECK(second.releases(0).code() == static_cast<int>(grpc::StatusCode::FAILED_PRECONDITION));
  CHECK(second.sync().granted_size() == 2);
  // The runner has the job's spec already.
  CHECK(second.sync().jobs().empty());
  CHECK(served.Get(job).counts().done() == 3);
  CHECK(session.Close().ok());
  // What the runner holds outlives the session.
  CHECK(served.Get(job).counts().leased() == 2);
}

TEST_CASE("calls beside a sync that has to wait are answered at once") {
  Served served;
  std::string job = served.SubmitJob({});
  Session session(served);
  session.Send(Session::Ask(1, 1));
  v1::SessionResponse granted = session.Receive();
  REQUIRE(granted.sync().granted_size() == 1);
  v1::SessionRequest request = Session::Ask(2, 1, 30);
  *request.add_completions() = Completion(granted.sync().granted(0).token());
  session.Send(request);
  v1::SessionResponse calls = session.Receive();
  CHECK(calls.id() == 2);
  CHECK(calls.completions_size() == 1);
  CHECK_FALSE(calls.has_sync_status());
  served.SubmitJob({.prefix = "later"});
  v1::SessionResponse sync = session.Receive();
  CHECK(sync.id() == 2);
  CHECK(sync.completions().empty());
  CHECK(sync.sync().granted_size() == 1);
  CHECK(session.Close().ok());
  CHECK(served.Get(job).counts().done() == 1);
}

TEST_CASE("messages take effect in their order, however close they come") {
  constexpr uint32_t kSteps = 600;
  Served served;
  served.SubmitJob({});
  Session session(served);
  session.Send(Session::Ask(1, 1));
  v1::LeaseToken token = session.Receive().sync().granted(0).token();
  // A step is refused unless it is the next one.
  bool sent = true;
  std::thread sender([&] {
    for (uint32_t step = 0; step < kSteps; ++step) {
      v1::SessionRequest request;
      request.set_id(step + 2);
      *request.add_steps() = step % 2 == 0 ? ReplyStep(token, step) : ResultStep(token, step);
      sent = sent && session.Write(request);
    }
  });
  uint32_t answers = 0;
  uint32_t accepted = 0;
  v1::SessionResponse response;
  while (answers < kSteps && session.Read(response)) {
    ++answers;
    if (response.steps_size() == 1 && response.steps(0).code() == 0) ++accepted;
  }
  sender.join();
  CHECK(sent);
  CHECK(accepted == kSteps);
  CHECK(session.Close().ok());
}

TEST_CASE("a session that breaks while its sync waits gets no leases") {
  Served served;
  std::string job;
  {
    Session session(served);
    session.Send(Session::Ask(1, 1, 30));
    session.Send(Session::Ask(2, 0));
    // The later sync of the runner ends the earlier one, so both have been judged.
    CHECK(session.Receive().id() + session.Receive().id() == 3);
    session.Send(Session::Ask(3, 1, 30));
    session.Break();
    CHECK(session.Close().error_code() == grpc::StatusCode::CANCELLED);
  }
  job = served.SubmitJob({});
  // Whether the server has heard of the break yet or not, the item comes to the next one.
  Session next(served);
  for (uint64_t id = 1;; ++id) {
    REQUIRE(id < 30);
    v1::SessionRequest request = Session::Ask(id, 1, 2);
    request.mutable_sync()->set_runner("other");
    next.Send(request);
    if (next.Receive().sync().granted_size() == 1) break;
  }
  CHECK(next.Close().ok());
}

TEST_CASE("a job is extended over a stream, message by message") {
  Served served;
  std::string job = served.SubmitJob({.tasks = 1});
  grpc::ClientContext context;
  SetDeadline(context, absl::Minutes(1));
  auto stream = served.jobs->Extend(&context);
  for (uint32_t i = 1; i <= 3; ++i) {
    v1::ExtendJobRequest request;
    request.set_id(job);
    *request.add_tasks() = MakeTask("more" + std::to_string(i));
    REQUIRE(stream->Write(request));
    v1::ExtendJobResponse response;
    REQUIRE(stream->Read(&response));
    CHECK(response.first_item() == i);
    CHECK(response.items() == 1);
  }
  v1::ExtendJobRequest wrong;
  wrong.set_id(job);
  *wrong.add_tasks() = MakeTask("more1");
  REQUIRE(stream->Write(wrong));
  v1::ExtendJobResponse response;
  CHECK_FALSE(stream->Read(&response));
  CHECK(stream->Finish().error_code() == grpc::StatusCode::INVALID_ARGUMENT);
  CHECK(served.Get(job).counts().total() == 4);
}

}  // namespace
}  // namespace kmosaic
