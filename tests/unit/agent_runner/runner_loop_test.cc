#include "agent_runner/runner_loop.h"

#include <catch2/catch.hpp>
#include <latch>
#include <set>
#include <thread>

#include "absl/strings/match.h"
#include "common/rpc/channel.h"
#include "tests/testing/fake_chat_server.h"
#include "tests/unit/agent_runner/fake_coordinator.h"
#include "tests/unit/agent_runner/fake_worker.h"

using namespace kmosaic;  // NOLINT: tests
using State = FakeCoordinator::State;
using json = nlohmann::json;

namespace {

// In a string: versions that differ in comments alone are the same.
std::string Code(const std::string& comment) {
  return "```python\nclass ModelNew(nn.Module):\n    '''\n    # " + comment +
         "\n    '''\n    pass\n```\n";
}

std::string Recording(const std::vector<std::string>& replies) {
  std::string lines;
  for (size_t i = 0; i < replies.size(); ++i) {
    lines += json({{"task", "t"}, {"turn", i}, {"content", replies[i]}}).dump() + "\n";
  }
  return lines;
}

// One agent runner of a process.
class Runner {
 public:
  struct Settings {
    std::string name = "runner-a";
    uint32_t max_conversations = 8;
    absl::Duration endpoint_patience = absl::Seconds(20);
    absl::Duration worker_patience = absl::Seconds(20);
    absl::Duration drain_grace = absl::Seconds(20);
  };

  explicit Runner(const std::string& coordinator) : Runner(coordinator, Settings()) {}
  Runner(const std::string& coordinator, const Settings& settings)
      : registry_("test"),
        metrics_(registry_),
        client_(MakeChannel(coordinator)),
        evaluator_(client_, clock_, metrics_, EvaluationOptions(settings)),
        evaluations_(evaluator_, metrics_),
        endpoints_(clock_, CallOptions(settings), {}),
        services_{client_,
                  evaluations_,
                  endpoints_,
                  guidance_,
                  clock_,
                  metrics_,
                  settings.name,
                  absl::Milliseconds(1),
                  absl::Milliseconds(20)},
        loop_(std::make_unique<RunnerLoop>(services_, LoopOptions(settings))),
        thread_([this] { loop_->Run(); }) {}

  ~Runner() {
    loop_->Drain();
    thread_.join();
  }

  void Drain() { loop_->Drain(); }

  std::string metrics() const { return registry_.Serialize(); }

 private:
  static Evaluator::Options EvaluationOptions(const Settings& settings) {
    Evaluator::Options options;
    options.patience = settings.worker_patience;
    options.backoff_base = absl::Milliseconds(1);
    options.backoff_cap = absl::Milliseconds(20);
    return options;
  }
  static EndpointPool::Options CallOptions(const Settings& settings) {
    EndpointPool::Options options;
    options.calls.patience = settings.endpoint_patience;
    options.calls.backoff_base = absl::Milliseconds(1);
    options.calls.backoff_cap = absl::Milliseconds(20);
    return options;
  }
  static RunnerLoop::Options LoopOptions(const Settings& settings) {
    RunnerLoop::Options options;
    options.max_conversations = settings.max_conversations;
    options.sync_wait = absl::Milliseconds(200);
    options.longest_pause = absl::Milliseconds(50);
    options.drain_grace = settings.drain_grace;
    options.backoff_base = absl::Milliseconds(1);
    options.backoff_cap = absl::Milliseconds(20);
    return options;
  }

  SystemClock clock_;
  Metrics registry_;
  RunnerMetrics metrics_;
  CoordinatorClient client_;
  Evaluator evaluator_;
  SharedEvaluations evaluations_;
  EndpointPool endpoints_;
  GuidanceLibrary guidance_;
  ConversationServices services_;
  std::unique_ptr<RunnerLoop> loop_;
  std::thread thread_;
};

void UseReplay(State& state, const std::vector<std::string>& replies) {
  state.job.mutable_endpoint()->set_kind(v1::ENDPOINT_KIND_REPLAY);
  state.job.mutable_endpoint()->set_recordings(Recording(replies));
}

void UseServer(State& state, const FakeChatServer& server) {
  state.job.mutable_endpoint()->set_kind(v1::ENDPOINT_KIND_OPENAI);
  state.job.mutable_endpoint()->set_url(server.url());
  state.job.mutable_endpoint()->set_model("m");
  state.job.mutable_endpoint()->set_stream(true);
}

void AddItems(State& state, int count) {
  state.job.mutable_endpoint()->set_name("test");
  state.job.mutable_sampling()->set_max_tokens(1000);
  state.job.mutable_budget()->set_turns(8);
  state.job.mutable_budget()->set_optimise_turns(2);
  state.job.mutable_evaluation()->set_device(v1::DEVICE_KIND_EMULATED);
  for (int i = 0; i < count; ++i) {
    FakeCoordinator::FakeItem& item = state.items.emplace_back();
    item.task.set_id("t");
    item.task.set_title("Task number " + std::to_string(i));
    item.task.set_contract(v1::CONTRACT_MODELNEW);
    item.task.set_description("Do it.");
    item.views.add_views(v1::VIEW_DESCRIPTION);
  }
}

// A coordinator and one worker that it knows as "w".
struct RunnerTest {
  FakeCoordinator coordinator;
  FakeWorker worker;

  // Items whose replies are recorded; `more` changes the state in the same step.
  void Plan(int items, const std::vector<std::string>& replies,
            const std::function<void(State&)>& more = nullptr) {
    PlanWith(items, more, [&](State& state) { UseReplay(state, replies); });
  }
  // Items whose replies come from `server`.
  void Plan(int items, const FakeChatServer& server,
            const std::function<void(State&)>& more = nullptr) {
    PlanWith(items, more, [&](State& state) { UseServer(state, server); });
  }

 private:
  void PlanWith(int items, const std::function<void(State&)>& more,
                const std::function<void(State&)>& use_endpoint) {
    coordinator.With([&](State& state) {
      AddItems(state, items);
      use_endpoint(state);
      state.workers = {{"w", worker.target()}};
      if (more) more(state);
    });
  }
};

bool AllDone(const State& state) {
  return std::all_of(state.items.begin(), state.items.end(),
                     [](const auto& item) { return item.result.has_value(); });
}

// Number of assistant messages that a request holds: which turn it asks for.
size_t TurnOf(const json& request) {
  size_t turn = 0;
  for (const json& message : request["messages"]) turn += message["role"] == "assistant" ? 1 : 0;
  return turn;
}

}  // namespace

TEST_CASE_METHOD(RunnerTest, "A conversation is held from the first call to its result") {
  Plan(1, {Code("COMPILE_ERROR"), "no code", Code("WRONG_SHAPE"), Code("PASSED 100"),
           Code("PASSED 60"), Code("PASSED 90")});
  Runner runner(coordinator.target());
  REQUIRE(coordinator.WaitUntil([](const State& s) { return AllDone(s) && s.open_slots.empty(); }));
  coordinator.With([&](State& state) {
    const auto& item = state.items[0];
    CHECK(item.result->verified());
    CHECK(item.result->stop_reason() == v1::STOP_REASON_SOLVED);
    CHECK(item.result->turns() == 6);
    CHECK(item.result->best_step() == 9);
    CHECK(item.result->work_ratio() == Approx(0.6));
    REQUIRE(item.steps.size() == 12);
    std::vector<v1::Stage> stages;
    for (size_t i = 0; i < item.steps.size(); i += 2) {
      CHECK(item.steps[i].number() == i);
      CHECK(item.steps[i].runner() == "runner-a");
      CHECK(item.steps[i].attempt() == 1);
      stages.push_back(item.steps[i].reply().stage());
    }
    CHECK(stages == std::vector<v1::Stage>{v1::STAGE_IMPLEMENT, v1::STAGE_REPAIR, v1::STAGE_REPAIR,
                                           v1::STAGE_REPAIR, v1::STAGE_OPTIMISE,
                                           v1::STAGE_OPTIMISE});
    CHECK(item.steps[1].result().report().verdict() == v1::VERDICT_COMPILE_ERROR);
    CHECK_FALSE(item.steps[3].result().extraction_error().empty());
    CHECK(item.steps[9].result().best());
    CHECK(item.steps[9].result().report().compile().cached() == false);
    CHECK(item.steps[11].result().rolled_back());
  });
  CHECK(absl::StrContains(runner.metrics(), "kmosaic_turns_total{stage=\"optimise\"} 2"));
  // Counted right after the coordinator has answered.
  CHECK(coordinator.WaitUntil([&](const State&) {
    return absl::StrContains(runner.metrics(),
                             "kmosaic_conversations_ended_total{outcome=\"solved\"} 1");
  }));
}

TEST_CASE_METHOD(RunnerTest,
                 "A benchmark follows the verification where the job asks for it on a GPU") {
  Plan(1, {Code("PASSED")}, [](State& state) {
    state.job.mutable_evaluation()->set_device(v1::DEVICE_KIND_CUDA);
    state.job.mutable_evaluation()->set_benchmark(true);
    state.job.set_target_speedup(1.5);
  });
  Runner runner(coordinator.target());
  REQUIRE(coordinator.WaitUntil(AllDone));
  coordinator.With([](State& state) {
    CHECK(state.items[0].result->stop_reason() == v1::STOP_REASON_TARGET_REACHED);
    CHECK(state.items[0].result->speedup() == 2);
    CHECK(state.slots_given >= 3);  // more where a machine was slow to answer
  });
}

TEST_CASE_METHOD(RunnerTest, "The same version of two conversations is evaluated once") {
  Plan(2, {Code("PASSED")});
  Runner runner(coordinator.target());
  REQUIRE(coordinator.WaitUntil(AllDone));
  coordinator.With([](State& state) {
    int shared = 0;
    for (const auto& item : state.items) {
      CHECK(item.result->verified());
      shared += item.steps.at(1).result().shared() ? 1 : 0;
    }
    CHECK(shared == 1);
  });
  CHECK(absl::StrContains(runner.metrics(), "kmosaic_evaluations_shared_total 1"));
}

TEST_CASE_METHOD(
    RunnerTest, "What was called off for one conversation is tried by the one that waited for it") {
  // Shared: the worker outlives the test's body.
  auto busy = std::make_shared<std::latch>(1);
  auto release = std::make_shared<std::latch>(1);
  auto first = std::make_shared<std::atomic<bool>>(true);
  worker.during_verify = [busy, release, first] {
    if (!first->exchange(false)) return;
    busy->count_down();
    release->wait();
  };
  Plan(2, {Code("PASSED")});
  Runner runner(coordinator.target());
  busy->wait();
  coordinator.With([](State& state) { state.items[0].cancelled = true; });
  REQUIRE(
      coordinator.WaitUntil([](const State& state) { return state.items[0].result.has_value(); }));
  release->count_down();
  REQUIRE(coordinator.WaitUntil(AllDone));
  coordinator.With([](State& state) {
    CHECK(state.items[0].result->stop_reason() == v1::STOP_REASON_CANCELLED);
    CHECK(state.items[1].result->verified());
  });
}

TEST_CASE_METHOD(RunnerTest, "A job's budget and enough samples end conversations without a call") {
  FakeChatServer server(std::vector<ScriptedReply>{});
  v1::StopReason expected = v1::STOP_REASON_UNSPECIFIED;
  SECTION("budget") {
    Plan(2, server, [](State& state) {
      state.job.mutable_job_budget()->set_cost_usd(1);
      state.used.set_cost_usd(1);
    });
    expected = v1::STOP_REASON_COST_BUDGET;
  }
  SECTION("enough samples") {
    Plan(2, server, [](State& state) {
      state.job.set_enough_verified(1);
      state.verified_samples = 1;
    });
    expected = v1::STOP_REASON_ENOUGH_VERIFIED;
  }
  Runner runner(coordinator.target());
  REQUIRE(coordinator.WaitUntil(AllDone));
  coordinator.With([&](State& state) {
    for (const auto& item : state.items) CHECK(item.result->stop_reason() == expected);
  });
  CHECK(server.requests().empty());
}

TEST_CASE_METHOD(RunnerTest, "Strict servers are content with every turn, whatever came before") {
  // The fake server refuses null and empty messages, two of a role in a row, and calls
  // without their answers.
  const std::vector<std::string> replies = {"",
                                            Code("COMPILE_ERROR"),
                                            "no code",
                                            "",
                                            Code("PASSED 100"),
                                            Code("PASSED 50"),
                                            Code("PASSED 90")};
  std::atomic<size_t> next = 0;
  FakeChatServer server([&](const json&) { return ScriptedReply::Stream(replies.at(next++)); });
  Plan(1, server);
  Runner runner(coordinator.target());
  REQUIRE(coordinator.WaitUntil(AllDone));
  coordinator.With([](State& state) {
    CHECK(state.items[0].result->verified());
    CHECK(state.items[0].result->turns() == 7);
  });
  CHECK(server.requests().size() == 7);
}

TEST_CASE_METHOD(RunnerTest, "A conversation by Anthropic's tool calls, from first to last") {
  std::vector<std::string> sources = {"COMPILE_ERROR", "PASSED 100"};
  std::atomic<size_t> next = 0;
  FakeChatServer server([&](const json&) {
    size_t turn = next++;
    const std::string source =
        "class ModelNew(nn.Module):\n    x = '# " + sources.at(turn) + " '\n";
    json call = {{"type", "tool_use"},
                 {"id", "toolu"},
                 {"name", turn == 0 ? "evaluate" : "submit"},
                 {"input", {{"source", source}}}};
    json body = {{"type", "message"},
                 {"content", json::array({call})},
                 {"stop_reason", "tool_use"},
                 {"usage", {{"input_tokens", 10}, {"output_tokens", 20}}}};
    return ScriptedReply::Body(200, body.dump());
  });
  Plan(1, server, [](State& state) {
    state.job.mutable_endpoint()->set_kind(v1::ENDPOINT_KIND_ANTHROPIC);
    state.job.set_protocol(v1::ANSWER_PROTOCOL_TOOLS);
  });
  Runner runner(coordinator.target());
  REQUIRE(coordinator.WaitUntil(AllDone));
  coordinator.With([](State& state) {
    CHECK(state.items[0].result->verified());
    CHECK(state.items[0].result->turns() == 2);
  });
  json second = server.requests().at(1)["messages"];
  CHECK(second[1]["content"][0]["type"] == "tool_use");
  CHECK(second[2]["content"][0]["type"] == "tool_result");
  CHECK(second[1]["content"][0]["id"] == second[2]["content"][0]["tool_use_id"]);
}

TEST_CASE_METHOD(RunnerTest,
                 "No more conversations are held than allowed, and all get their turn") {
  Plan(12, {Code("PASSED")});
  Runner::Settings settings;
  settings.max_conversations = 3;
  Runner runner(coordinator.target(), settings);
  REQUIRE(coordinator.WaitUntil(AllDone));
  coordinator.With([](State& state) { CHECK(state.most_held <= 3); });
}

TEST_CASE_METHOD(
    RunnerTest,
    "A runner that ends in mid-conversation is followed by one that buys nothing again") {
  std::latch second_call(1);
  std::latch release(1);
  std::atomic<bool> hold = true;
  FakeChatServer server([&](const json& request) {
    size_t turn = TurnOf(request);
    ScriptedReply reply = ScriptedReply::Stream(turn == 0 ? Code("COMPILE_ERROR") : Code("PASSED"));
    if (turn == 1 && hold.exchange(false)) {
      reply.before = [&] {
        second_call.count_down();
        release.wait();
      };
    }
    return reply;
  });
  Plan(1, server);
  {
    // The grace is over at once: as a kill, it records nothing and gives nothing back.
    Runner::Settings settings;
    settings.drain_grace = absl::ZeroDuration();
    Runner first(coordinator.target(), settings);
    second_call.wait();
    coordinator.With([](State& state) {
      REQUIRE(state.items[0].steps.size() == 2);
      state.away = true;
    });
  }
  release.count_down();
  coordinator.Expire(0);
  coordinator.With([](State& state) { state.away = false; });
  Runner::Settings settings;
  settings.name = "runner-b";
  Runner second(coordinator.target(), settings);
  REQUIRE(coordinator.WaitUntil(AllDone));
  coordinator.With([](State& state) {
    const auto& item = state.items[0];
    CHECK(item.result->verified());
    REQUIRE(item.steps.size() == 4);
    CHECK(item.steps[0].runner() == "runner-a");
    CHECK(item.steps[2].runner() == "runner-b");
    CHECK(item.steps[2].attempt() == 2);
  });
  // The reply that was recorded was asked for once, the one in flight twice, with the
  // same bytes.
  auto asked = server.asked();
  REQUIRE(asked.size() == 2);
  for (const auto& [messages, times] : asked) {
    CHECK(times == (TurnOf({{"messages", json::parse(messages)}}) == 0 ? 1 : 2));
  }
  CHECK(absl::StrContains(second.metrics(), "kmosaic_llm_calls_after_death_total 1"));
}

TEST_CASE_METHOD(RunnerTest,
                 "A reply is recorded through a coordinator that is away, and bought once") {
  FakeChatServer server([&](const json&) {
    coordinator.With([](State& state) { state.away = true; });
    return ScriptedReply::Stream(Code("PASSED"));
  });
  Plan(1, server);
  Runner runner(coordinator.target());
  REQUIRE(coordinator.WaitUntil([](const State& state) { return state.away; }));
  // Several refused verbs later it is back.
  REQUIRE(coordinator.WaitUntil(
      [tries = 0](const State& state) mutable { return state.away && ++tries > 5; }));
  coordinator.With([](State& state) { state.away = false; });
  REQUIRE(coordinator.WaitUntil(AllDone));
  CHECK(server.requests().size() == 1);
}

TEST_CASE_METHOD(RunnerTest, "A step whose acknowledgement is lost is recorded once") {
  Plan(1, {Code("COMPILE_ERROR"), Code("PASSED")}, [](State& state) { state.lost_answers = 3; });
  Runner runner(coordinator.target());
  REQUIRE(coordinator.WaitUntil(AllDone));
  coordinator.With([](State& state) {
    CHECK(state.items[0].steps.size() == 4);
    CHECK(state.lost_answers == 0);
  });
}

TEST_CASE_METHOD(RunnerTest, "A stale token drops the conversation in silence and is counted") {
  std::atomic<int> calls = 0;
  FakeChatServer server([&](const json&) {
    // The lease goes to another one while the first call is under way.
    if (calls++ == 0) {
      coordinator.With([](State& state) {
        state.items[0].attempt += 1;
        state.items[0].holder = "another";
      });
    }
    return ScriptedReply::Stream(Code("PASSED"));
  });
  Plan(1, server);
  Runner runner(coordinator.target());
  REQUIRE(coordinator.WaitUntil([&](const State&) {
    return absl::StrContains(runner.metrics(),
                             "kmosaic_conversations_ended_total{outcome=\"lost\"} 1");
  }));
  coordinator.With([](State& state) {
    CHECK(state.items[0].steps.empty());
    CHECK_FALSE(state.items[0].result);
    CHECK(state.items[0].releases.empty());
  });
}

TEST_CASE_METHOD(RunnerTest, "A lost lease calls off the call in flight") {
  std::latch called(1);
  std::latch release(1);
  FakeChatServer server([&](const json&) {
    ScriptedReply reply = ScriptedReply::Stream(Code("PASSED"));
    reply.before = [&] {
      called.count_down();
      release.wait();
    };
    return reply;
  });
  Plan(1, server);
  {
    Runner runner(coordinator.target());
    called.wait();
    coordinator.With([](State& state) {
      state.items[0].parked = true;
      state.items[0].holder.clear();
    });
    REQUIRE(coordinator.WaitUntil(
        [&](const State&) { return absl::StrContains(runner.metrics(), "outcome=\"lost\"} 1"); }));
  }
  release.count_down();
  coordinator.With([](State& state) { CHECK(state.items[0].steps.empty()); });
}

TEST_CASE_METHOD(
    RunnerTest,
    "A cancelled job's conversations end as cancelled, in mid-call and in mid-evaluation") {
  // Shared: the worker outlives the test's body.
  auto busy = std::make_shared<std::latch>(1);
  auto release = std::make_shared<std::latch>(1);
  auto block = [busy, release] {
    busy->count_down();
    release->wait();
  };
  std::unique_ptr<FakeChatServer> server;
  SECTION("in mid-call") {
    server = std::make_unique<FakeChatServer>([&](const json&) {
      ScriptedReply reply = ScriptedReply::Stream(Code("PASSED"));
      reply.before = block;
      return reply;
    });
  }
  SECTION("in mid-evaluation") { worker.during_verify = block; }
  if (server) {
    Plan(1, *server);
  } else {
    Plan(1, {Code("PASSED")});
  }
  {
    Runner runner(coordinator.target());
    busy->wait();
    coordinator.With([](State& state) { state.items[0].cancelled = true; });
    CHECK(coordinator.WaitUntil(AllDone));
    release->count_down();
  }
  coordinator.With([](State& state) {
    CHECK(state.items[0].result->stop_reason() == v1::STOP_REASON_CANCELLED);
    CHECK(state.open_slots.empty());
  });
}

TEST_CASE_METHOD(RunnerTest,
                 "Draining lets a call in flight end, records its reply and hands the lease back") {
  std::latch called(1);
  std::latch release(1);
  std::atomic<bool> hold = true;
  FakeChatServer server([&](const json&) {
    ScriptedReply reply = ScriptedReply::Stream(Code("PASSED"));
    if (hold.exchange(false)) {
      reply.before = [&] {
        called.count_down();
        release.wait();
      };
    }
    return reply;
  });
  Plan(2, server, [](State& state) {
    state.job.mutable_endpoint()->set_max_concurrency(1);
    state.park_released = true;
  });
  {
    Runner runner(coordinator.target());
    called.wait();
    // The other conversation waits for its turn at the endpoint: it goes back at once.
    coordinator.WaitUntil([](const State& state) { return !state.items[1].holder.empty(); });
    runner.Drain();
    REQUIRE(coordinator.WaitUntil([](const State& state) {
      return state.items[0].releases.size() + state.items[1].releases.size() == 1;
    }));
    release.count_down();
  }
  coordinator.With([](State& state) {
    size_t steps = 0;
    for (const auto& item : state.items) {
      REQUIRE(item.releases.size() == 1);
      CHECK(item.releases[0].handed_back());
      steps += item.steps.size();
    }
    CHECK(steps == 1);
  });
  CHECK(server.requests().size() == 1);
}

TEST_CASE_METHOD(RunnerTest,
                 "INFRASTRUCTURE is tried on another worker and never shown or recorded") {
  FakeWorker sick;
  FakeWorker healthy;
  SECTION("as a verdict") { sick.sick = true; }
  SECTION("as a status") { sick.refuses = grpc::StatusCode::UNAVAILABLE; }
  Plan(1, {Code("PASSED")}, [&](State& state) {
    state.workers = {{"sick", sick.target()}, {"healthy", healthy.target()}};
  });
  Runner runner(coordinator.target());
  REQUIRE(coordinator.WaitUntil(AllDone));
  coordinator.With([](State& state) {
    CHECK(state.items[0].result->verified());
    REQUIRE(state.items[0].steps.size() == 2);
    CHECK(state.avoided.at(0).empty());
    CHECK(state.avoided.at(1) == std::vector<std::string>{"sick"});
  });
  CHECK(sick.calls > 0);
  CHECK(healthy.calls > 0);
}

TEST_CASE_METHOD(
    RunnerTest, "Where every machine fails the item goes back as infrastructure, with the worker") {
  FakeWorker sick;
  sick.sick = true;
  Plan(1, {Code("PASSED")}, [&](State& state) {
    state.workers = {{"sick", sick.target()}};
    state.park_released = true;
  });
  Runner runner(coordinator.target());
  REQUIRE(
      coordinator.WaitUntil([](const State& state) { return !state.items[0].releases.empty(); }));
  coordinator.With([](State& state) {
    const v1::ReleaseRequest& release = state.items[0].releases[0];
    CHECK(release.failure() == v1::FAILURE_CLASS_INFRASTRUCTURE);
    CHECK(release.worker() == "sick");
    CHECK(absl::StrContains(release.reason(), "disk full"));
    CHECK(state.items[0].steps.size() == 1);  // the reply stays bought
    CHECK(state.open_slots.empty());
  });
  CHECK(sick.calls == 4);
}

TEST_CASE_METHOD(RunnerTest,
                 "A worker that appears late is used: nothing is lost while there is none") {
  Plan(1, {Code("PASSED")}, [](State& state) { state.workers.clear(); });
  Runner runner(coordinator.target());
  REQUIRE(
      coordinator.WaitUntil([](const State& state) { return state.items[0].steps.size() == 1; }));
  coordinator.With([&](State& state) { state.workers = {{"w", worker.target()}}; });
  REQUIRE(coordinator.WaitUntil(AllDone));
  coordinator.With([](State& state) { CHECK(state.items[0].attempt == 1); });
}

TEST_CASE_METHOD(
    RunnerTest,
    "An endpoint that is down puts the item back uncharged, and it is done once it is up") {
  std::atomic<bool> down = true;
  FakeChatServer server([&](const json&) {
    return down ? ScriptedReply::Body(503, "overloaded") : ScriptedReply::Stream(Code("PASSED"));
  });
  Plan(1, server, [](State& state) { state.park_released = true; });
  Runner::Settings settings;
  settings.endpoint_patience = absl::Milliseconds(50);
  Runner runner(coordinator.target(), settings);
  REQUIRE(
      coordinator.WaitUntil([](const State& state) { return !state.items[0].releases.empty(); }));
  coordinator.With([&](State& state) {
    const v1::ReleaseRequest& release = state.items[0].releases[0];
    CHECK(release.failure() == v1::FAILURE_CLASS_INFRASTRUCTURE);
    CHECK(release.worker().empty());
    CHECK(release.has_delay());
    CHECK(absl::StrContains(release.reason(), "overloaded"));
    down = false;
    state.items[0].parked = false;
  });
  REQUIRE(coordinator.WaitUntil(AllDone));
}

TEST_CASE_METHOD(RunnerTest,
                 "A request that the endpoint refuses for good is final, after one try") {
  FakeChatServer server({ScriptedReply::Body(404, R"({"error":{"message":"no such model"}})")});
  Plan(1, server, [](State& state) { state.park_released = true; });
  Runner runner(coordinator.target());
  REQUIRE(
      coordinator.WaitUntil([](const State& state) { return !state.items[0].releases.empty(); }));
  coordinator.With([](State& state) {
    CHECK(state.items[0].releases[0].failure() == v1::FAILURE_CLASS_FINAL);
    CHECK(absl::StrContains(state.items[0].releases[0].reason(), "no such model"));
  });
  CHECK(server.requests().size() == 1);
}

TEST_CASE_METHOD(RunnerTest,
                 "A prompt that the server calls too long is shortened, not sent again unchanged") {
  constexpr size_t kWindowBytes = 11'000;
  FakeChatServer server([](const json& request) {
    if (request["messages"].dump().size() > kWindowBytes) {
      return ScriptedReply::Body(400, R"({"error":{"code":"context_length_exceeded",)"
                                      R"("message":"too long"}})");
    }
    return ScriptedReply::Stream(
        TurnOf(request) < 1
            ? Code("COMPILE_ERROR") + std::string(3000, 'a')
            : Code("COMPILE_ERROR " + std::to_string(request["messages"].dump().size())) +
                  std::string(3000, 'b'));
  });
  Plan(1, server, [](State& state) {
    state.job.mutable_budget()->set_turns(6);
    state.job.mutable_budget()->set_context_tokens(8000);
  });
  Runner runner(coordinator.target());
  REQUIRE(coordinator.WaitUntil(AllDone));
  coordinator.With([](State& state) {
    v1::StopReason reason = state.items[0].result->stop_reason();
    CHECK((reason == v1::STOP_REASON_TURN_BUDGET || reason == v1::STOP_REASON_NO_PROGRESS));
    CHECK(state.items[0].result->turns() > 3);
  });
  // The reply's cap may be lowered once or twice before anything is left out.
  std::set<std::string> bodies;
  for (const json& request : server.requests()) CHECK(bodies.insert(request.dump()).second);
}

TEST_CASE_METHOD(RunnerTest,
                 "A window that the server names counts from then on, and a task beyond it ends") {
  FakeChatServer server([](const json& request) {
    if (request["max_tokens"].get<int>() > 900) {
      return ScriptedReply::Body(400, R"({"error":{"message":"This model's maximum context length )"
                                      R"(is 1800 tokens. However, you requested 2000 tokens."}})");
    }
    return ScriptedReply::Stream(Code("PASSED"));
  });
  Plan(2, server, [](State& state) {
    // The second one does not fit at all, whatever is left out.
    state.items[1].task.set_description(std::string(30'000, 'x'));
  });
  Runner runner(coordinator.target());
  REQUIRE(coordinator.WaitUntil(AllDone));
  coordinator.With([](State& state) {
    CHECK(state.items[0].result->verified());
    CHECK(state.items[1].result->stop_reason() == v1::STOP_REASON_CONTEXT_EXHAUSTED);
  });
  std::set<std::string> bodies;
  for (const json& request : server.requests()) CHECK(bodies.insert(request.dump()).second);
}
