#include "agent_runner/llm/llm_client.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <latch>
#include <thread>

#include "agent_runner/llm/endpoint_pool.h"

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

struct Outcome {
  LlmResult result;
  int calls = 0;
};

Outcome Run(std::vector<LlmResult> script, const LlmClient::Options& options) {
  SystemClock clock;
  std::atomic<int> calls = 0;
  LlmClient client(std::make_unique<ScriptedEndpoint>(std::move(script), &calls), clock, options);
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
      std::make_unique<ScriptedEndpoint>(
          std::vector<LlmResult>{Error(LlmError::Kind::kRateLimited, absl::Minutes(10)), Reply()},
          &calls),
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
  LlmClient::Options options = Quick();
  options.max_concurrency = 2;
  std::atomic<int> calls = 0;
  std::atomic<int> now = 0;
  std::atomic<int> most = 0;
  std::latch both(2);
  LlmClient client(std::make_unique<ScriptedEndpoint>(std::vector<LlmResult>{Reply()}, &calls,
                                                      [&] {
                                                        most = std::max(most.load(), ++now);
                                                        // The first two meet inside, so that the
                                                        // limit is reached.
                                                        if (calls <= 2) both.arrive_and_wait();
                                                        --now;
                                                      }),
                   clock, options);
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

TEST_CASE("A call in flight outlives the end of new tries, a waiting one does not") {
  SystemClock clock;
  std::atomic<int> calls = 0;
  CancelToken cancel;
  CancelToken no_new_tries;
  SECTION("in flight") {
    LlmClient client(std::make_unique<ScriptedEndpoint>(std::vector<LlmResult>{Reply()}, &calls,
                                                        [&] { no_new_tries.Cancel(); }),
                     clock, Quick());
    CHECK(std::holds_alternative<v1::ModelReply>(client.Complete({}, cancel, no_new_tries)));
    CHECK(KindOf(client.Complete({}, cancel, no_new_tries)) == LlmError::Kind::kCancelled);
    CHECK(calls == 1);
  }
  SECTION("between two tries") {
    LlmClient::Options options = Quick();
    options.backoff_base = options.backoff_cap = absl::Minutes(1);
    options.patience = absl::Minutes(10);
    LlmClient client(
        std::make_unique<ScriptedEndpoint>(
            std::vector<LlmResult>{Error(LlmError::Kind::kUnavailable, absl::Minutes(1))}, &calls,
            [&] { no_new_tries.Cancel(); }),
        clock, options);
    CHECK(KindOf(client.Complete({}, cancel, no_new_tries)) == LlmError::Kind::kCancelled);
  }
}

TEST_CASE("An endpoint's client is shared while it is held") {
  SystemClock clock;
  EndpointPool pool(clock, {}, {});
  v1::Endpoint endpoint;
  endpoint.set_kind(v1::ENDPOINT_KIND_REPLAY);
  auto first = pool.Get(endpoint);
  auto second = pool.Get(endpoint);
  REQUIRE(first.ok());
  CHECK(*first == *second);
  endpoint.set_name("other");
  CHECK(*pool.Get(endpoint) != *first);
  endpoint.set_recordings("nonsense");
  CHECK(absl::IsInvalidArgument(pool.Get(endpoint).status()));
  endpoint.set_kind(v1::ENDPOINT_KIND_UNSPECIFIED);
  CHECK(absl::IsInvalidArgument(pool.Get(endpoint).status()));
}
