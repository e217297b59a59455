#include "coordinator/service/score_service.h"

#include <catch2/catch.hpp>
#include <set>
#include <thread>

#include "common/rpc/channel.h"
#include "common/rpc/grant.h"
#include "common/rpc/server.h"
#include "tests/unit/coordinator/fake_kernel_worker.h"

namespace kmosaic {
namespace {

PlacementTable::Options Patient() {
  PlacementTable::Options options;
  // The fakes sync once.
  options.lost_after = absl::Hours(1);
  return options;
}

class Scoring {
 public:
  explicit Scoring(const ScoreService::Options& options = {})
      : placement(Patient(), clock), service(options, placement, clock, metrics) {
    RpcServer::Options rpc;
    rpc.services = {&service};
    server = RpcServer::Start(rpc).value();
    stub = v1::ScoreService::NewStub(MakeChannel(server->target()));
  }

  // What a stream came to: the answers in the order in which they came, and its end.
  struct Streamed {
    std::vector<v1::ScoreResponse> answers;
    grpc::Status status;
  };
  // Sends candidates with these ids. From any thread: checks nothing.
  Streamed Stream(const std::vector<std::string>& ids, const v1::ScoreOptions& options = {}) {
    grpc::ClientContext context;
    auto stream = stub->Score(&context);
    std::thread writer([&] {
      for (const std::string& id : ids) stream->Write(Candidate(id, options));
      stream->WritesDone();
    });
    Streamed streamed;
    v1::ScoreResponse response;
    while (stream->Read(&response)) streamed.answers.push_back(response);
    writer.join();
    streamed.status = stream->Finish();
    return streamed;
  }

  // The answers by id.
  std::map<std::string, v1::EvaluationReport> Score(const std::vector<std::string>& ids,
                                                    const v1::ScoreOptions& options = {}) {
    Streamed streamed = Stream(ids, options);
    std::map<std::string, v1::EvaluationReport> answers;
    for (const v1::ScoreResponse& response : streamed.answers) {
      CHECK(answers.emplace(response.id(), response.report()).second);
    }
    INFO(streamed.status.error_message());
    CHECK(streamed.status.ok());
    return answers;
  }

  static v1::ScoreRequest Candidate(const std::string& id, const v1::ScoreOptions& options = {}) {
    v1::ScoreRequest request;
    request.set_id(id);
    request.mutable_solution()->set_source("source of " + id);
    request.mutable_oracle()->set_reference("reference");
    *request.mutable_evaluation() = options;
    return request;
  }

  std::string MetricsText() const { return registry.Serialize(); }

  SystemClock clock;
  Metrics registry{"test"};
  ScoreMetrics metrics{registry};
  Placement placement;
  ScoreService service;
  std::unique_ptr<RpcServer> server;
  std::unique_ptr<v1::ScoreService::Stub> stub;
};

TEST_CASE("every candidate is answered once, by its id") {
  Scoring scoring;
  FakeKernelWorker worker("w1", 2, scoring.placement);
  std::vector<std::string> ids;
  for (int i = 0; i < 200; ++i) ids.push_back("c" + std::to_string(i));
  auto answers = scoring.Score(ids);
  CHECK(answers.size() == ids.size());
  for (const auto& [id, report] : answers) CHECK(report.verdict() == v1::VERDICT_PASSED);
  CHECK(scoring.placement.Figures().roles[v1::ROLE_VERIFY].used == 0);
  CHECK_THAT(scoring.MetricsText(),
             Catch::Contains("kmosaic_score_answers_total{verdict=\"PASSED\"} 200"));
}

TEST_CASE("a worker gets the candidate, the options and a grant for its slot") {
  Scoring scoring;
  FakeKernelWorker worker("w1", 1, scoring.placement);
  v1::WorkerSyncRequest again;
  v1::EvaluateRequest seen;
  worker.AnswerWith([&](const v1::EvaluateRequest& request, v1::KernelResponse* response) {
    seen = request;
    response->mutable_report()->set_verdict(v1::VERDICT_WRONG_OUTPUT);
    return grpc::Status::OK;
  });
  v1::ScoreOptions options;
  options.set_device(v1::DEVICE_KIND_EMULATED);
  options.set_scale(0.25);
  options.set_public_seeds(2);
  options.set_secret_seeds(3);
  options.set_compile_baseline(true);
  auto answers = scoring.Score({"a"}, options);
  CHECK(answers["a"].verdict() == v1::VERDICT_WRONG_OUTPUT);
  CHECK(seen.request().solution().source() == "source of a");
  CHECK(seen.request().oracle().reference() == "reference");
  CHECK(seen.request().options().scale() == 0.25);
  CHECK(seen.request().options().public_seeds() == 2);
  CHECK(seen.request().options().secret_seeds() == 3);
  CHECK(seen.request().options().compile_baseline());
  CHECK(seen.last_stage() == v1::ROLE_VERIFY);
  CHECK_FALSE(seen.request().grant().empty());
}

TEST_CASE("a candidate whose worker dies in the middle is answered by another one") {
  Scoring scoring;
  FakeKernelWorker dying("w1", 1, scoring.placement);
  dying.Hang();
  std::map<std::string, v1::EvaluationReport> answers;
  std::thread client([&] { answers = scoring.Score({"a"}); });
  dying.WaitForCalls(1);
  FakeKernelWorker other("w2", 1, scoring.placement);
  dying.Die();
  client.join();
  CHECK(answers["a"].verdict() == v1::VERDICT_PASSED);
  CHECK(answers["a"].device().worker() == "w2");
  CHECK_THAT(scoring.MetricsText(),
             Catch::Contains("kmosaic_score_retries_total{reason=\"worker_unreachable\"} 1"));
}

TEST_CASE("a candidate whose only worker dies waits for it to come back") {
  Scoring scoring;
  auto worker = std::make_unique<FakeKernelWorker>("w1", 1, scoring.placement);
  worker->Die();
  std::map<std::string, v1::EvaluationReport> answers;
  std::thread client([&] { answers = scoring.Score({"a"}); });
  // The failed call made it suspect; the wait for it is in the queue then.
  while (scoring.placement.Figures().roles[v1::ROLE_VERIFY].waiting == 0) {
    std::this_thread::yield();
  }
  worker = std::make_unique<FakeKernelWorker>("w1", 1, scoring.placement);
  client.join();
  CHECK(answers["a"].verdict() == v1::VERDICT_PASSED);
}

TEST_CASE("an infrastructure report is tried elsewhere") {
  Scoring scoring;
  FakeKernelWorker sick("w1", 1, scoring.placement);
  sick.AnswerWith([](const v1::EvaluateRequest&, v1::KernelResponse* response) {
    response->mutable_report()->set_verdict(v1::VERDICT_INFRASTRUCTURE);
    response->mutable_report()->set_reason("disk full");
    return grpc::Status::OK;
  });
  SECTION("and answered there") {
    FakeKernelWorker well("w2", 1, scoring.placement);
    for (const std::string& id : {std::string("a"), std::string("b")}) {
      auto answers = scoring.Score({id});
      CHECK(answers[id].verdict() == v1::VERDICT_PASSED);
      CHECK(answers[id].device().worker() == "w2");
    }
  }
  SECTION("and three times at most") {
    auto answers = scoring.Score({"a"});
    CHECK(answers["a"].verdict() == v1::VERDICT_INFRASTRUCTURE);
    CHECK(answers["a"].reason() == "tried 3 times: w1: disk full; w1: disk full; w1: disk full");
    CHECK(sick.calls() == 3);
  }
}

TEST_CASE("a request that the worker refuses as wrong is not tried again") {
  Scoring scoring;
  FakeKernelWorker worker("w1", 1, scoring.placement);
  worker.AnswerWith([](const v1::EvaluateRequest&, v1::KernelResponse*) {
    return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "scale is below 0");
  });
  auto answers = scoring.Score({"a"});
  CHECK(answers["a"].verdict() == v1::VERDICT_INVALID_TASK);
  CHECK(answers["a"].reason() == "scale is below 0");
  CHECK(worker.calls() == 1);
}

TEST_CASE("a candidate that no worker can ever take says why, and the others go on") {
  PlacementTable::Options options = Patient();
  options.grace = absl::ZeroDuration();
  SystemClock clock;
  Metrics registry("test");
  ScoreMetrics metrics(registry);
  Placement placement(options, clock);
  ScoreService service({}, placement, clock, metrics);
  RpcServer::Options rpc;
  rpc.services = {&service};
  auto server = RpcServer::Start(rpc).value();
  FakeKernelWorker worker("w1", 1, placement);
  auto stub = v1::ScoreService::NewStub(MakeChannel(server->target()));
  grpc::ClientContext context;
  auto stream = stub->Score(&context);
  v1::ScoreOptions h200;
  (*h200.mutable_require())["gpu"] = "H200";
  REQUIRE(stream->Write(Scoring::Candidate("a", h200)));
  REQUIRE(stream->Write(Scoring::Candidate("b")));
  stream->WritesDone();
  std::map<std::string, v1::EvaluationReport> answers;
  v1::ScoreResponse response;
  while (stream->Read(&response)) answers[response.id()] = response.report();
  CHECK(stream->Finish().ok());
  CHECK(answers["a"].verdict() == v1::VERDICT_INFRASTRUCTURE);
  CHECK_THAT(answers["a"].reason(), Catch::Contains("gpu=H200"));
  CHECK(answers["b"].verdict() == v1::VERDICT_PASSED);
}

TEST_CASE("candidates wait for the first worker to register") {
  Scoring scoring;
  std::map<std::string, v1::EvaluationReport> answers;
  std::thread client([&] { answers = scoring.Score({"a"}); });
  while (scoring.placement.Figures().roles[v1::ROLE_VERIFY].waiting == 0) {
    std::this_thread::yield();
  }
  FakeKernelWorker worker("w1", 1, scoring.placement);
  client.join();
  CHECK(answers["a"].verdict() == v1::VERDICT_PASSED);
}

TEST_CASE("work in hand stays bounded however much the client writes") {
  Scoring scoring;
  FakeKernelWorker worker("w1", 3, scoring.placement);
  worker.Hang();
  std::vector<std::string> ids;
  for (int i = 0; i < 500; ++i) ids.push_back("c" + std::to_string(i));
  std::map<std::string, v1::EvaluationReport> answers;
  std::thread client([&] { answers = scoring.Score(ids); });
  worker.WaitForCalls(3);
  for (int i = 0; i < 1000; ++i) {
    PlacementFigures figures = scoring.placement.Figures();
    REQUIRE(figures.roles[v1::ROLE_VERIFY].used == 3);
    REQUIRE(figures.roles[v1::ROLE_VERIFY].waiting <= 3);
  }
  worker.Release();
  client.join();
  CHECK(answers.size() == ids.size());
}

TEST_CASE("a stream that is cancelled cancels its calls and gives the slots back") {
  Scoring scoring;
  FakeKernelWorker worker("w1", 2, scoring.placement);
  worker.Hang();
  grpc::ClientContext context;
  auto stream = scoring.stub->Score(&context);
  for (int i = 0; i < 4; ++i) REQUIRE(stream->Write(Scoring::Candidate(std::to_string(i))));
  worker.WaitForCalls(2);
  context.TryCancel();
  CHECK(stream->Finish().error_code() == grpc::StatusCode::CANCELLED);
  worker.WaitForCancelled(2);
  PlacementFigures::Role figures;
  do {
    figures = scoring.placement.Figures().roles[v1::ROLE_VERIFY];
  } while (figures.used + figures.waiting > 0);
  CHECK(worker.calls() == 2);
}

TEST_CASE("two streams share the worker") {
  Scoring scoring;
  FakeKernelWorker worker("w1", 1, scoring.placement);
  std::mutex mutex;
  std::vector<char> order;
  worker.Hang();
  worker.AnswerWith([&](const v1::EvaluateRequest& request, v1::KernelResponse* response) {
    std::lock_guard lock(mutex);
    order.push_back(request.request().solution().source().back());
    response->mutable_report()->set_verdict(v1::VERDICT_PASSED);
    return grpc::Status::OK;
  });
  Scoring::Streamed from_a;
  Scoring::Streamed from_b;
  std::thread a([&] { from_a = scoring.Stream({"1a", "2a", "3a", "4a"}); });
  worker.WaitForCalls(1);
  while (scoring.placement.Figures().roles[v1::ROLE_VERIFY].waiting < 3) std::this_thread::yield();
  std::thread b([&] { from_b = scoring.Stream({"1b", "2b", "3b", "4b"}); });
  while (scoring.placement.Figures().roles[v1::ROLE_VERIFY].waiting < 7) std::this_thread::yield();
  worker.Release();
  a.join();
  b.join();
  CHECK(from_a.status.ok());
  CHECK(from_b.status.ok());
  // Turns: nobody is served twice in a row while the other one waits.
  REQUIRE(order.size() == 8);
  CHECK(std::string(order.begin(), order.begin() + 2).size() == 2);
  size_t b_in_first_half = std::count(order.begin(), order.begin() + 4, 'b');
  CHECK(b_in_first_half >= 1);
  CHECK(b_in_first_half <= 3);
}

TEST_CASE("the server stops while streams are open") {
  Scoring scoring;
  FakeKernelWorker worker("w1", 1, scoring.placement);
  worker.Hang();
  grpc::ClientContext context;
  auto stream = scoring.stub->Score(&context);
  REQUIRE(stream->Write(Scoring::Candidate("a")));
  worker.WaitForCalls(1);
  scoring.server = nullptr;
  CHECK_FALSE(stream->Finish().ok());
  worker.WaitForCancelled(1);
}

}  // namespace
}  // namespace kmosaic
