#include "agent_runner/llm/llm_client.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <latch>
#include <thread>

#include "agent_runner/llm/endpoint_pool.h"
#include "tests/testing/fake_chat_server.h"

using namespace kmosaic;  // NOLINT: tests

namespace {

v1::ModelReply Reply() {
  v1::ModelReply reply;
  reply.set_content("Hi");
  return reply;
}

// Answers with the script's entries, the last one for ever.
class ScriptedEndpoint : public LlmEndpoint {
 public:
  explicit ScriptedEndpoint(std::vector<LlmResult> script, std::atomic<int>* calls,
                            std::function<void()> during = {})
      : script_(std::move(script)), calls_(calls), during_(std::move(during)) {}

  LlmResult Complete(const LlmRequest&, CancelToken&) override {
    size_t number = static_cast<size_t>((*calls_)++);
    if (during_) during_();
    return script_[std::min(number, script_.size() - 1)];
  }

 private:
  const std::vector<LlmResult> script_;
  std::atomic<int>* calls_;
  const std::function<void()> during_;
};

LlmError Error(LlmError::Kind kind, absl::Duration retry_after = absl::ZeroDuration()) {
  return {kind, "scripted", retry_after};
}

LlmClient::Options Quick() {
  LlmClient::Options options;
  options.backoff_base = absl::Milliseconds(1);
  options.backoff_cap = absl::Milliseconds(2);
  options.patience = absl::Seconds(30);
  return options;
}

LlmRoute RouteTo(const std::string& name, std::vector<LlmResult> script, std::atomic<int>* calls,
                 const Clock& clock, std::function<void()> during = {}) {
  return {name, 1, std::make_shared<ScriptedEndpoint>(std::move(script), calls, std::move(during)),
          std::make_shared<EndpointGate>(clock, EndpointLimit()), nullptr};
}

struct Outcome {
  LlmResult result;
  int calls = 0;
};

Outcome Run(std::vector<LlmResult> script, const LlmClient::Options& options) {
  SystemClock clock;
  std::atomic<int> calls = 0;
  LlmClient client({RouteTo("one", std::move(script), &calls, clock)}, clock, options);
  CancelToken cancel;
  CancelToken no_new_tries;
  LlmResult result = client.Complete({}, cancel, no_new_tries);
  return {result, calls};
}

LlmError::Kind KindOf(const LlmResult& result) { return std::get<LlmError>(result).kind; }

}  // namespace

TEST_CASE("A retryable error is tried again until the reply comes") {
  Outcome outcome = Run(
      {Error(LlmError::Kind::kUnavailable), Error(LlmError::Kind::kRateLimited), Reply()}, Quick());
  CHECK(std::get<v1::ModelReply>(outcome.result).content() == "Hi");
  CHECK(outcome.calls == 3);
}

TEST_CASE("A permanent error is not tried again") {
  for (LlmError::Kind kind : {LlmError::Kind::kBadRequest, LlmError::Kind::kAuth,
                              LlmError::Kind::kContextOverflow, LlmError::Kind::kRecordingEnded}) {
    Outcome outcome = Run({Error(kind), Reply()}, Quick());
    CHECK(KindOf(outcome.result) == kind);
    CHECK(outcome.calls == 1);
  }
}

TEST_CASE("Calls that may have cost something are tried only a few times") {
  Outcome outcome = Run({Error(LlmError::Kind::kTruncatedStream)}, Quick());
  CHECK(KindOf(outcome.result) == LlmError::Kind::kTruncatedStream);
  CHECK(outcome.calls == 3);
}

TEST_CASE("A wish for more time than the patience comes back with that time, after one call") {
  Outcome outcome = Run({Error(LlmError::Kind::kRateLimited, absl::Minutes(10)), Reply()}, Quick());
  CHECK(KindOf(outcome.result) == LlmError::Kind::kRateLimited);
  CHECK(std::get<LlmError>(outcome.result).retry_after == absl::Minutes(10));
  CHECK(outcome.calls == 1);
}

TEST_CASE("All conversations of an endpoint wait for the time that it named to one of them") {
  FakeClock clock;
  std::atomic<int> calls = 0;
  LlmClient client(
      {RouteTo("one", {Error(LlmError::Kind::kRateLimited, absl::Minutes(10)), Reply()}, &calls,
               clock)},
      clock, Quick());
  CancelToken cancel;
  CancelToken no_new_tries;
  CHECK(KindOf(client.Complete({}, cancel, no_new_tries)) == LlmError::Kind::kRateLimited);
  LlmResult other = client.Complete({}, cancel, no_new_tries);
  CHECK(KindOf(other) == LlmError::Kind::kRateLimited);
  CHECK(std::get<LlmError>(other).retry_after == absl::Minutes(10));
  CHECK(calls == 1);
  clock.Advance(absl::Minutes(10));
  CHECK(std::holds_alternative<v1::ModelReply>(client.Complete({}, cancel, no_new_tries)));
}

TEST_CASE("No more calls than allowed are in flight") {
  SystemClock clock;
  std::atomic<int> calls = 0;
  std::atomic<int> now = 0;
  std::atomic<int> most = 0;
  std::latch both(2);
  LlmRoute route = RouteTo("one", {Reply()}, &calls, clock, [&] {
    most = std::max(most.load(), ++now);
    // The first two meet inside, so that the limit is reached.
    if (calls <= 2) both.arrive_and_wait();
    --now;
  });
  route.gate = std::make_shared<EndpointGate>(clock, EndpointLimit{2});
  LlmClient client({route}, clock, Quick());
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&client] {
      CancelToken cancel;
      CancelToken no_new_tries;
      client.Complete({}, cancel, no_new_tries);
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(calls == 8);
  CHECK(most == 2);
}

TEST_CASE("While an endpoint fails its conversations go on with the next one, and it is let be") {
  FakeClock clock;
  std::atomic<int> broken = 0;
  std::atomic<int> good = 0;
  LlmRoute first =
      RouteTo("broken", {Error(LlmError::Kind::kUnavailable, absl::Minutes(1))}, &broken, clock);
  LlmRoute second = RouteTo("good", {Reply()}, &good, clock);
  // Whichever of the two a conversation would ask first.
  first.weight = 1000;
  LlmClient client({first, second}, clock, Quick());
  CancelToken cancel;
  CancelToken no_new_tries;
  for (int i = 0; i < 5; ++i) {
    CHECK(std::holds_alternative<v1::ModelReply>(client.Complete({}, cancel, no_new_tries)));
  }
  CHECK(broken == 1);
  CHECK(good == 5);
  clock.Advance(absl::Minutes(1));
  CHECK(std::holds_alternative<v1::ModelReply>(client.Complete({}, cancel, no_new_tries)));
  CHECK(broken == 2);
}

TEST_CASE("An endpoint that refuses for good is passed by; all of them refusing is the end") {
  SystemClock clock;
  std::atomic<int> calls = 0;
  LlmRoute wrong_key = RouteTo("wrong-key", {Error(LlmError::Kind::kAuth)}, &calls, clock);
  wrong_key.weight = 1000;
  LlmRoute other = RouteTo("other", {Reply()}, &calls, clock);
  SECTION("another one replies") {
    LlmClient client({wrong_key, other}, clock, Quick());
    CancelToken cancel;
    CancelToken no_new_tries;
    CHECK(std::holds_alternative<v1::ModelReply>(client.Complete({}, cancel, no_new_tries)));
  }
  SECTION("none does") {
    other = RouteTo("other", {Error(LlmError::Kind::kBadRequest)}, &calls, clock);
    LlmClient client({wrong_key, other}, clock, Quick());
    CancelToken cancel;
    CancelToken no_new_tries;
    CHECK(KindOf(client.Complete({}, cancel, no_new_tries)) == LlmError::Kind::kAuth);
  }
  CHECK(calls == 2);
}

TEST_CASE("Where every endpoint fails the error says so and when to come again") {
  FakeClock clock;
  std::atomic<int> calls = 0;
  std::vector<LlmResult> script = {Error(LlmError::Kind::kUnavailable, absl::Minutes(5))};
  LlmClient client({RouteTo("one", script, &calls, clock), RouteTo("two", script, &calls, clock)},
                   clock, Quick());
  CancelToken cancel;
  CancelToken no_new_tries;
  LlmResult result = client.Complete({}, cancel, no_new_tries);
  CHECK(KindOf(result) == LlmError::Kind::kUnavailable);
  CHECK(std::get<LlmError>(result).retry_after == absl::Minutes(5));
  CHECK(calls == 2);
}

TEST_CASE("Conversations are spread by weight, each keeps its endpoint, and others' stay") {
  SystemClock clock;
  std::vector<LlmRoute> routes(3);
  routes[0].name = "a";
  routes[1].name = "b";
  routes[2].name = "c";
  routes[2].weight = 2;
  std::vector<int> first(3);
  for (int i = 0; i < 4000; ++i) {
    LlmRequest request;
    request.task = "task-" + std::to_string(i / 4);
    request.sample = static_cast<uint32_t>(i % 4);
    std::vector<size_t> order = RouteOrder(routes, request);
    REQUIRE(order.size() == 3);
    REQUIRE(RouteOrder(routes, request) == order);
    ++first[order[0]];
    // Without the last endpoint only its own conversations move.
    if (order[0] != 2) {
      std::vector<LlmRoute> fewer = {routes[0], routes[1]};
      REQUIRE(RouteOrder(fewer, request)[0] == order[0]);
    }
  }
  CHECK(first[0] == Approx(1000).margin(100));
  CHECK(first[1] == Approx(1000).margin(100));
  CHECK(first[2] == Approx(2000).margin(120));
}

TEST_CASE("A call in flight outlives the end of new tries, a waiting one does not") {
  SystemClock clock;
  std::atomic<int> calls = 0;
  CancelToken cancel;
  CancelToken no_new_tries;
  SECTION("in flight") {
    LlmClient client({RouteTo("one", {Reply()}, &calls, clock, [&] { no_new_tries.Cancel(); })},
                     clock, Quick());
    CHECK(std::holds_alternative<v1::ModelReply>(client.Complete({}, cancel, no_new_tries)));
    CHECK(KindOf(client.Complete({}, cancel, no_new_tries)) == LlmError::Kind::kCancelled);
    CHECK(calls == 1);
  }
  SECTION("between two tries") {
    LlmClient::Options options = Quick();
    options.backoff_base = options.backoff_cap = absl::Minutes(1);
    options.patience = absl::Minutes(10);
    LlmClient client({RouteTo("one", {Error(LlmError::Kind::kUnavailable, absl::Minutes(1))},
                              &calls, clock, [&] { no_new_tries.Cancel(); })},
                     clock, options);
    CHECK(KindOf(client.Complete({}, cancel, no_new_tries)) == LlmError::Kind::kCancelled);
  }
}

TEST_CASE("Jobs that name the same endpoint share its limits") {
  FakeChatServer server([](const nlohmann::json&) {
    ScriptedReply reply = ScriptedReply::Body(429, "{}");
    reply.headers["Retry-After"] = "600";
    return reply;
  });
  SystemClock clock;
  EndpointPool pool(clock, {}, {});
  v1::JobSpec job;
  job.mutable_endpoint()->set_kind(v1::ENDPOINT_KIND_OPENAI);
  job.mutable_endpoint()->set_url(server.url());
  v1::JobSpec other = job;
  other.mutable_endpoint()->set_weight(5);
  auto first = pool.Get(job);
  auto second = pool.Get(other);
  REQUIRE(first.ok());
  REQUIRE(second.ok());
  LlmRequest request;
  request.messages.emplace_back().set_content("Hi");
  request.messages.back().set_role(v1::CHAT_ROLE_USER);
  CancelToken cancel;
  CancelToken no_new_tries;
  CHECK(KindOf((*first)->Complete(request, cancel, no_new_tries)) == LlmError::Kind::kRateLimited);
  CHECK(KindOf((*second)->Complete(request, cancel, no_new_tries)) == LlmError::Kind::kRateLimited);
  CHECK(server.requests().size() == 1);
  other.mutable_endpoint()->set_model("another");
  auto third = pool.Get(other);
  REQUIRE(third.ok());
  (*third)->Complete(request, cancel, no_new_tries);
  CHECK(server.requests().size() == 2);
}

TEST_CASE("An endpoint that cannot be made is refused with what is wrong") {
  SystemClock clock;
  EndpointPool pool(clock, {}, {});
  v1::JobSpec job;
  CHECK(absl::IsInvalidArgument(pool.Get(job).status()));
  job.mutable_endpoint()->set_kind(v1::ENDPOINT_KIND_REPLAY);
  CHECK(pool.Get(job).ok());
  v1::Endpoint& further = *job.add_further_endpoints();
  further.set_kind(v1::ENDPOINT_KIND_REPLAY);
  further.set_recordings("nonsense");
  CHECK(absl::IsInvalidArgument(pool.Get(job).status()));
}
