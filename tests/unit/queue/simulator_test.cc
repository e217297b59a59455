// Seeded simulation: random verbs in random batches, crashes after any batch with the
// batch lost or on disk, answers that never arrive, requests that are repeated late, and
// holders that are out of date. After it the fleet behaves, and every job has to end.
//
// KMOSAIC_SIMULATOR_COMMANDS sets the number of verbs (default 200,000),
// KMOSAIC_SIMULATOR_SEED the first seed.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "coordinator/queue/item_states.h"
#include "tests/unit/queue/queue_fixture.h"

namespace kmosaic {
namespace {

using ItemKey = std::pair<std::string, uint32_t>;

// What the outside world was told, and so may rely on.
struct World {
  // Leases that runners believe to hold.
  std::map<std::string, std::map<ItemKey, v1::LeaseToken>> held;
  // Highest attempt that was handed out, and every token ever handed out.
  std::map<ItemKey, uint32_t> newest_attempt;
  std::set<std::tuple<std::string, uint32_t, uint64_t, uint32_t>> tokens;
  // Text of each acknowledged step.
  std::map<ItemKey, std::vector<std::string>> steps;
  // Token attempt of each acknowledged completion.
  std::map<ItemKey, uint32_t> completed;
  // Jobs by request id; ids whose Submit was acknowledged.
  std::map<std::string, std::string> job_of_request;
  std::set<std::string> jobs;
  // Answer to each acknowledged extension, by job and request id.
  std::map<std::pair<std::string, std::string>, v1::ExtendJobResponse> extensions;
  // Requests that may come again.
  std::deque<v1::RecordStepRequest> old_steps;
  std::deque<v1::CompleteRequest> old_completions;
  std::deque<v1::ReleaseRequest> old_releases;
};

class Simulation {
 public:
  explicit Simulation(uint64_t seed) : random_(seed), queue_(Rules(), seed) {}

  void Run(int commands) {
    while (commands > 0) {
      int size = 1 + Below(12);
      Batch(std::min(size, commands));
      commands -= size;
      if (Below(40) == 0) Check();
    }
    Drain();
  }

  int crashes() const { return crashes_; }
  int done() const { return done_; }

 private:
  struct Answer {
    // What the caller concludes.
    std::function<void()> hear;
    // Also when the answer is lost or the batch was not written.
    bool always = false;
  };

  struct StagedSubmission {
    std::string request_id;
    Submission submission;
    uint64_t number = 0;
    size_t first = 0;
  };

  static QueueRules Rules() {
    QueueRules rules;
    rules.backoff_base = absl::Seconds(1);
    rules.backoff_cap = absl::Seconds(20);
    rules.max_history = 5;
    return rules;
  }

  int Below(int bound) { return static_cast<int>(random_() % static_cast<uint64_t>(bound)); }
  std::string Runner() { return absl::StrCat("runner-", Below(4)); }

  template <typename Container>
  auto Any(const Container& container) {
    auto at = container.begin();
    std::advance(at, Below(static_cast<int>(container.size())));
    return *at;
  }

  std::string AnyJob() { return world_.jobs.empty() ? "job-none" : Any(world_.jobs); }

  // A token that some runner believes in.
  std::optional<v1::LeaseToken> AnyHeld() {
    std::vector<v1::LeaseToken> all;
    for (const auto& [runner, leases] : world_.held) {
      for (const auto& [key, token] : leases) all.push_back(token);
    }
    if (all.empty()) return std::nullopt;
    return Any(all);
  }

  static ItemKey KeyOf(const v1::LeaseToken& token) {
    return {token.item().job(), token.item().number()};
  }

  // Nobody but the holder of the newest attempt that was handed out is ever served.
  void CheckFence(const v1::LeaseToken& token, const absl::Status& status) {
    if (!status.ok()) return;
    auto newest = world_.newest_attempt.find(KeyOf(token));
    if (newest != world_.newest_attempt.end()) REQUIRE(token.attempt() >= newest->second);
  }

  void Batch(int size) {
    Effects& effects = queue_.Begin();
    answers_.clear();
    if (Below(4) == 0) queue_.Advance(absl::Milliseconds(Below(9000)));
    if (Below(50) == 0) queue_.JumpWall(absl::Seconds(Below(7200) - 3600));
    for (int i = 0; i < size; ++i) Verb(effects);
    if (Below(2) == 0) queue_.sequencer().Tick(queue_.Context(), effects, 1 + Below(50));
    bool crash = Below(60) == 0;
    bool applied = Below(2) == 0;
    if (crash) {
      queue_.store().FailAfter(
          0, applied ? FaultTaskStore::Fault::kApplied : FaultTaskStore::Fault::kLost);
    }
    absl::Status status = queue_.Commit();
    // Most answers arrive, of a batch that was written.
    for (const Answer& answer : answers_) {
      if (answer.always || (status.ok() && Below(30) != 0)) answer.hear();
    }
    if (crash) {
      ++crashes_;
      staged_.clear();
      queue_.Restart();
      Check();
    }
  }

  void Verb(Effects& effects) {
    int kind = Below(100);
    if (kind < 4) return Submit(effects);
    if (kind < 6) return Stage(effects);
    if (kind < 9) return ContinueStaged(effects);
    if (kind < 12) return Extend(effects);
    if (kind < 32) return Sync(effects);
    if (kind < 55) return Record(effects);
    if (kind < 70) return Complete(effects);
    if (kind < 80) return Release(effects);
    if (kind < 92) return Repeat(effects);
    if (kind < 98) return ChangeJob(effects);
    if (world_.jobs.size() > 6) Delete(effects);
  }

  JobShape AnyShape() {
    JobShape shape{.tasks = static_cast<uint32_t>(1 + Below(3)),
                   .samples = static_cast<uint32_t>(1 + Below(3)),
                   .weight = static_cast<uint32_t>(1 + Below(4)),
                   .priority = static_cast<uint32_t>(Below(10)),
                   .max_attempts = static_cast<uint32_t>(1 + Below(3)),
                   .max_concurrency = static_cast<uint32_t>(Below(3))};
    // Ids are used again now and then, with the same content or another one.
    shape.request_id = absl::StrCat("request-", Below(30));
    return shape;
  }

  void Submit(Effects& effects) {
    if (world_.jobs.size() >= 12) return;
    JobShape shape = AnyShape();
    Submitted(shape.request_id,
              queue_.sequencer().Submit(MakeSubmission(shape), queue_.Context(), effects));
  }

  void Submitted(const std::string& request, const absl::StatusOr<v1::SubmitResponse>& response) {
    auto known = world_.job_of_request.find(request);
    if (!response.ok()) {
      REQUIRE(response.status().code() == absl::StatusCode::kAlreadyExists);
      return;
    }
    if (known != world_.job_of_request.end()) {
      REQUIRE(response->existed());
      REQUIRE(response->job().id() == known->second);
    }
    answers_.push_back({[this, id = response->job().id(), request] {
      world_.jobs.insert(id);
      world_.job_of_request[request] = id;
    }});
  }

  // Large submissions come in pieces over several batches, several at once.
  void Stage(Effects& effects) {
    if (world_.jobs.size() >= 12 || staged_.size() >= 3) return;
    JobShape shape = AnyShape();
    StagedSubmission staged{shape.request_id, MakeSubmission(shape)};
    auto result = queue_.sequencer().Stage(staged.submission, queue_.Context(), effects);
    if (result.ok() && !result->existed.has_value()) {
      staged.number = result->number;
      staged_.push_back(std::move(staged));
    } else if (result.ok()) {
      Submitted(shape.request_id, *result->existed);
    } else {
      Submitted(shape.request_id, result.status());
    }
  }

  void ContinueStaged(Effects& effects) {
    if (staged_.empty()) return;
    StagedSubmission& staged = staged_.front();
    if (staged.first < staged.submission.tasks.size()) {
      staged.first =
          queue_.sequencer().StageTasks(staged.number, staged.submission, staged.first, effects);
      return;
    }
    Submitted(staged.request_id, queue_.sequencer().FinishSubmit(staged.number, staged.submission,
                                                                 queue_.Context(), effects));
    staged_.pop_front();
  }

  void Extend(Effects& effects) {
    v1::ExtendJobRequest request;
    request.set_id(AnyJob());
    int kind = Below(10);
    request.set_request_id(absl::StrCat("extension-", kind));
    for (int i = 0; i <= kind % 2; ++i) {
      *request.add_tasks() = MakeTask(absl::StrCat("more", kind, "-", i));
    }
    if (Below(10) == 0) *request.add_tasks() = MakeTask(absl::StrCat("other", Below(1000)));
    auto extension = MakeExtension(request);
    REQUIRE(extension.ok());
    auto response = queue_.sequencer().Extend(*extension, queue_.Context(), effects);
    if (!response.ok()) return;
    std::pair<std::string, std::string> key(request.id(), request.request_id());
    auto known = world_.extensions.find(key);
    if (known != world_.extensions.end()) {
      REQUIRE(response->existed());
      REQUIRE(response->first_item() == known->second.first_item());
      REQUIRE(response->items() == known->second.items());
    }
    answers_.push_back({[this, key, answer = *response] { world_.extensions[key] = answer; }});
  }

  void Sync(Effects& effects) {
    v1::RunnerSyncRequest request;
    request.set_runner(Runner());
    request.set_free(static_cast<uint32_t>(Below(4)));
    request.set_draining(Below(20) == 0);
    for (const auto& [key, token] : world_.held[request.runner()]) {
      // Some runners forget what they hold, as after a kill.
      if (Below(15) != 0) *request.add_held() = token;
    }
    auto result = queue_.sequencer().Sync(request, queue_.Context(), effects);
    REQUIRE(result.ok());
    REQUIRE(result->held.size() == static_cast<size_t>(request.held_size()));
    REQUIRE(result->granted.size() <= request.free());
    if (request.draining()) REQUIRE(result->granted.empty());
    answers_.push_back({[this, runner = request.runner(), answer = *std::move(result)] {
      auto& held = world_.held[runner];
      for (const v1::HeldLease& each : answer.held) {
        if (each.order() == v1::LEASE_ORDER_LOST) held.erase(KeyOf(each.token()));
      }
      for (const GrantedItem& each : answer.granted) {
        const v1::LeaseToken& token = each.token;
        ItemKey key = KeyOf(token);
        REQUIRE(
            world_.tokens.emplace(key.first, key.second, token.epoch(), token.attempt()).second);
        uint32_t& newest = world_.newest_attempt[key];
        REQUIRE(token.attempt() > newest);
        newest = token.attempt();
        REQUIRE(world_.completed.count(key) == 0);
        // Nothing that was paid for is paid for again.
        REQUIRE(each.steps >= world_.steps[key].size());
        held[key] = token;
      }
    }});
  }

  uint32_t StepsOf(const ItemKey& key) {
    auto reader = JobReader::Open(queue_.store(), key.first);
    if (!reader.ok()) return 0;
    auto item = reader->ReadItem(key.second, false);
    return item.ok() ? item->steps() : 0;
  }

  void Record(Effects& effects) {
    auto token = AnyHeld();
    if (!token.has_value()) return;
    uint32_t next = StepsOf(KeyOf(*token)) + (Below(20) == 0 ? 2 : 0);
    v1::RecordStepRequest request =
        next % 2 == 0 ? ReplyStep(*token, next, absl::StrCat("text ", random_() % 5))
                      : ResultStep(*token, next);
    SendStep(request, effects);
    world_.old_steps.push_back(request);
    if (world_.old_steps.size() > 30) world_.old_steps.pop_front();
  }

  void SendStep(const v1::RecordStepRequest& request, Effects& effects) {
    absl::Status status = queue_.sequencer().RecordStep(request, queue_.Context(), effects);
    CheckFence(request.token(), status);
    if (!status.ok()) return;
    answers_.push_back({[this, request] {
      auto& steps = world_.steps[KeyOf(request.token())];
      std::string text = request.step().SerializeAsString();
      uint32_t number = request.step().number();
      if (steps.size() <= number) steps.resize(number + 1);
      // The answer to an earlier step may have been lost, but never another text accepted.
      if (!steps[number].empty()) REQUIRE(steps[number] == text);
      steps[number] = text;
    }});
  }

  void Complete(Effects& effects) {
    auto token = AnyHeld();
    if (!token.has_value()) return;
    v1::CompleteRequest request = Completion(*token, Below(2) == 0);
    if (Below(10) == 0) request.mutable_result()->set_stop_reason(v1::STOP_REASON_CANCELLED);
    SendCompletion(request, effects);
    world_.old_completions.push_back(request);
    if (world_.old_completions.size() > 30) world_.old_completions.pop_front();
  }

  void SendCompletion(const v1::CompleteRequest& request, Effects& effects) {
    absl::Status status = queue_.sequencer().Complete(request, queue_.Context(), effects);
    CheckFence(request.token(), status);
    if (!status.ok()) return;
    answers_.push_back({[this, request] {
      ItemKey key = KeyOf(request.token());
      for (auto& [runner, leases] : world_.held) leases.erase(key);
      // A completion that was taken as "stopped" may end in READY; only a real one binds.
      if (request.result().stop_reason() == v1::STOP_REASON_CANCELLED) return;
      auto [known, added] = world_.completed.emplace(key, request.token().attempt());
      REQUIRE(known->second == request.token().attempt());
    }});
  }

  void Release(Effects& effects) {
    auto token = AnyHeld();
    if (!token.has_value()) return;
    static const std::vector<v1::FailureClass> kClasses = {
        v1::FAILURE_CLASS_INFRASTRUCTURE, v1::FAILURE_CLASS_RETRYABLE, v1::FAILURE_CLASS_FINAL};
    v1::ReleaseRequest request =
        Releasing(*token, Any(kClasses), absl::StrCat("worker-", Below(4)));
    request.set_handed_back(Below(4) == 0);
    SendRelease(request, effects);
    world_.old_releases.push_back(request);
    if (world_.old_releases.size() > 30) world_.old_releases.pop_front();
  }

  void SendRelease(const v1::ReleaseRequest& request, Effects& effects) {
    absl::Status status = queue_.sequencer().Release(request, queue_.Context(), effects);
    CheckFence(request.token(), status);
    if (!status.ok()) return;
    answers_.push_back({[this, key = KeyOf(request.token()), attempt = request.token().attempt()] {
      for (auto& [runner, leases] : world_.held) {
        auto found = leases.find(key);
        if (found != leases.end() && found->second.attempt() == attempt) leases.erase(found);
      }
    }});
  }

  // A request that was sent long ago arrives once more.
  void Repeat(Effects& effects) {
    switch (Below(3)) {
      case 0:
        if (!world_.old_steps.empty()) SendStep(Any(world_.old_steps), effects);
        break;
      case 1:
        if (!world_.old_completions.empty()) SendCompletion(Any(world_.old_completions), effects);
        break;
      default:
        if (!world_.old_releases.empty()) SendRelease(Any(world_.old_releases), effects);
        break;
    }
  }

  void ChangeJob(Effects& effects) {
    std::string job = AnyJob();
    StepContext context = queue_.Context();
    switch (Below(8)) {
      case 0:
      case 1: {
        auto result = queue_.sequencer().Pause(job, context, effects);
        break;
      }
      case 2:
      case 3: {
        auto result = queue_.sequencer().Resume(job, context, effects);
        break;
      }
      case 4: {
        auto result = queue_.sequencer().Cancel(job, context, effects);
        if (result.ok()) {
          REQUIRE(result->counts().ready() + result->counts().delayed() == 0);
        }
        break;
      }
      case 5: {
        v1::PurgeDeadLettersRequest request;
        request.set_id(job);
        auto result = queue_.sequencer().Purge(request, context, effects);
        // Conversations are gone, whether or not the answer arrives.
        if (result.ok()) answers_.push_back({[this, job] { ForgetPurged(job); }, true});
        break;
      }
      default: {
        v1::RetryJobRequest request;
        request.set_id(job);
        if (Below(2) == 0) {
          request.add_states(v1::ITEM_STATE_FAILED);
          request.add_states(v1::ITEM_STATE_CANCELLED);
        }
        auto result = queue_.sequencer().Retry(request, context, effects);
        // Completions of a cancelled job do not bind once it is retried.
        if (result.ok()) answers_.push_back({[this, job] { ForgetCancelled(job); }, true});
        break;
      }
    }
  }

  void ForgetPurged(const std::string& job) {
    std::erase_if(world_.steps, [&](const auto& each) {
      return each.first.first == job && StepsOf(each.first) == 0;
    });
  }

  void ForgetCancelled(const std::string& job) {
    for (auto each = world_.completed.begin(); each != world_.completed.end();) {
      auto reader = JobReader::Open(queue_.store(), each->first.first);
      bool done = each->first.first != job ||
                  (reader.ok() &&
                   reader->ReadItem(each->first.second, false)->state() == v1::ITEM_STATE_DONE);
      each = done ? std::next(each) : world_.completed.erase(each);
    }
  }

  void Delete(Effects& effects) {
    std::string job = AnyJob();
    auto result = queue_.sequencer().Delete(job, effects);
    if (!result.ok()) return;
    // Whether or not the answer arrives, nobody may rely on the job any more; and what
    // earlier answers of this batch said of it does not hold either.
    ForgetJob(job);
    answers_.push_back({[this, job] { ForgetJob(job); }, true});
  }

  void ForgetJob(const std::string& job) {
    world_.jobs.erase(job);
    for (auto each = world_.job_of_request.begin(); each != world_.job_of_request.end();) {
      each = each->second == job ? world_.job_of_request.erase(each) : std::next(each);
    }
    auto forget = [&](auto& map) {
      for (auto each = map.begin(); each != map.end();) {
        each = each->first.first == job ? map.erase(each) : std::next(each);
      }
    };
    forget(world_.newest_attempt);
    forget(world_.steps);
    forget(world_.completed);
    forget(world_.extensions);
    for (auto& [runner, leases] : world_.held) forget(leases);
  }

  // What the world was told is on disk, and the disk agrees with itself.
  void Check() {
    std::string contradiction = FindContradiction(queue_.store());
    INFO(contradiction);
    REQUIRE(contradiction.empty());
    for (const std::string& job : world_.jobs) {
      REQUIRE(JobReader::Open(queue_.store(), job).ok());
    }
    for (const auto& [key, extension] : world_.extensions) {
      auto reader = JobReader::Open(queue_.store(), key.first);
      REQUIRE(reader.ok());
      REQUIRE(reader->items() >= extension.first_item() + extension.items());
    }
    for (const auto& [key, attempt] : world_.completed) {
      auto reader = JobReader::Open(queue_.store(), key.first);
      REQUIRE(reader.ok());
      auto item = reader->ReadItem(key.second, false);
      REQUIRE(item.ok());
      bool ended =
          item->state() == v1::ITEM_STATE_DONE || item->state() == v1::ITEM_STATE_CANCELLED;
      REQUIRE(ended);
      REQUIRE(item->attempts() == attempt);
    }
    for (const auto& [key, steps] : world_.steps) {
      auto reader = JobReader::Open(queue_.store(), key.first);
      REQUIRE(reader.ok());
      auto stored = reader->ReadSteps(key.second);
      REQUIRE(stored.ok());
      REQUIRE(stored->size() >= steps.size());
    }
  }

  // Everybody behaves from now on: every job has to reach its end.
  void Drain() {
    for (const std::string& job : world_.jobs) {
      if (queue_.sequencer().Get(job)->state() == v1::JOB_STATE_PAUSED) {
        REQUIRE(queue_.Resume(job).ok());
      }
    }
    for (int round = 0;
         queue_.sequencer().TotalCounts().ready() + queue_.sequencer().TotalCounts().delayed() +
             queue_.sequencer().TotalCounts().leased() >
         0;
         ++round) {
      REQUIRE(round < 1000);
      queue_.Advance(absl::Seconds(61));
      queue_.Tick();
      SyncResult result = queue_.Sync("good", 16);
      for (const GrantedItem& granted : result.granted) {
        REQUIRE(queue_.Complete(Completion(granted.token)).ok());
      }
      // Jobs whose Submit was never answered may be paused too.
      for (const auto& [id, request] : queue_.sequencer().JobIds()) {
        bool paused = queue_.sequencer().Get(id)->state() == v1::JOB_STATE_PAUSED;
        if (paused) REQUIRE(queue_.Resume(id).ok());
      }
    }
    Check();
    done_ = static_cast<int>(queue_.sequencer().TotalCounts().done());
  }

  std::mt19937_64 random_;
  QueueFixture queue_;
  World world_;
  std::vector<Answer> answers_;
  std::deque<StagedSubmission> staged_;
  int crashes_ = 0;
  int done_ = 0;
};

int64_t FromEnvironment(const char* name, int64_t standard) {
  const char* text = std::getenv(name);
  int64_t value = standard;
  if (text != nullptr) REQUIRE(absl::SimpleAtoi(text, &value));
  return value;
}

TEST_CASE("simulated fleets lose nothing and double nothing over crashes and repetitions") {
  constexpr int kCommandsPerSeed = 5000;
  int64_t commands = FromEnvironment("KMOSAIC_SIMULATOR_COMMANDS", 200'000);
  int64_t seed = FromEnvironment("KMOSAIC_SIMULATOR_SEED", 1);
  int crashes = 0;
  int done = 0;
  for (int64_t left = commands; left > 0; left -= kCommandsPerSeed, ++seed) {
    INFO("KMOSAIC_SIMULATOR_SEED=" << seed << " KMOSAIC_SIMULATOR_COMMANDS=1");
    Simulation simulation(static_cast<uint64_t>(seed));
    simulation.Run(kCommandsPerSeed);
    crashes += simulation.crashes();
    done += simulation.done();
  }
  // It has to have met what it is about.
  CHECK(crashes >= commands / 1000);
  CHECK(done > 0);
}

}  // namespace
}  // namespace kmosaic
