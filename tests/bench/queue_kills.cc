// Kills a coordinator under load again and again and counts what it lost, doubled or left
// stuck of what it had acknowledged; prints one line of JSON, and ends with 1 if that is
// anything.
//
//   queue_kills --coordinator build/release/bin/kmosaic-coordinator --data-dir DIR --rounds 200
//
// Clients submit, lease, record steps and complete over sessions, repeat what was not
// answered, and now and then drop what they hold, as a runner that dies does.
#include <grpcpp/channel.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/status.h"
#include "common/config/options.h"
#include "common/rpc/channel.h"
#include "tests/bench/load_clients.h"
#include "tests/bench/subject.h"

namespace kmosaic {
namespace {

struct Flags {
  std::string coordinator;
  std::string data_dir;
  int64_t rounds = 200;
  int64_t clients = 8;
  int64_t shortest_ms = 100;
  int64_t longest_ms = 1500;
  int64_t seed = 1;
};

// A first lease of this length comes back soon after its answer was lost.
constexpr char kLeaseTtl[] = "--lease-ttl=3s";
constexpr uint32_t kFree = 16;

// What was acknowledged; the coordinator has to know it for ever.
struct Ledger {
  std::mutex mutex;
  // Items of answered extensions.
  uint64_t items = 1;
  // Attempt of each answered completion, by item.
  std::map<uint32_t, uint32_t> completed;
  // Answered steps, by item.
  std::map<uint32_t, uint32_t> steps;
  // Attempts that were handed out, by item.
  std::map<uint32_t, std::set<uint32_t>> granted;
  uint64_t doubled = 0;
  uint64_t wrong = 0;
  uint64_t stale = 0;
  uint64_t sessions = 0;
};

class Client {
 public:
  Client(const Flags& flags, std::string target, int number, std::string job, Ledger& ledger)
      : random_(static_cast<uint64_t>(flags.seed) * 1000 + static_cast<uint64_t>(number)),
        runner_(absl::StrCat("client-", number)),
        number_(number),
        job_(std::move(job)),
        target_(std::move(target)),
        ledger_(ledger) {}

  // Works until `stop`; then completes what it holds.
  void Run(const std::atomic<bool>& stop, bool submit) {
    auto channel = OwnConnection(target_, number_);
    auto jobs = v1::JobService::NewStub(channel);
    auto runners = v1::RunnerService::NewStub(channel);
    while (!stop.load()) {
      grpc::ClientContext context;
      context.set_wait_for_ready(true);
      context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(2));
      auto stream = runners->Session(&context);
      {
        std::lock_guard lock(ledger_.mutex);
        ++ledger_.sessions;
      }
      while (!stop.load()) {
        if (submit && random_() % 4 == 0 && !Extend(*jobs)) break;
        if (!Exchange(*stream)) break;
      }
      context.TryCancel();
      v1::SessionResponse rest;
      while (stream->Read(&rest)) {
      }
      static_cast<void>(stream->Finish());
    }
  }

 private:
  struct Work {
    v1::LeaseToken token;
    uint32_t steps = 0;
  };

  bool Extend(v1::JobService::Stub& jobs) {
    if (extension_.tasks().empty()) {
      extension_.set_id(job_);
      extension_.set_request_id(absl::StrCat(runner_, "-", ++extensions_));
      for (int i = 0; i < 8; ++i) {
        *extension_.add_tasks() =
            LoadTask(static_cast<uint64_t>(number_) * 100'000'000 + ++tasks_, 120);
      }
    }
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(1));
    auto stream = jobs.Extend(&context);
    v1::ExtendJobResponse response;
    bool answered = stream->Write(extension_) && stream->Read(&response);
    stream->WritesDone();
    static_cast<void>(stream->Finish());
    if (!answered) return false;
    std::lock_guard lock(ledger_.mutex);
    ledger_.items += response.items();
    extension_.Clear();
    return true;
  }

  bool Exchange(grpc::ClientReaderWriter<v1::SessionRequest, v1::SessionResponse>& stream) {
    if (random_() % 100 == 0) held_.clear();  // as if it had died
    v1::SessionRequest request;
    request.set_id(++id_);
    std::vector<uint32_t> stepped;
    std::vector<uint32_t> completed;
    for (auto& [item, work] : held_) {
      if (work.steps < 2 && random_() % 2 == 0) {
        v1::RecordStepRequest& record = *request.add_steps();
        *record.mutable_token() = work.token;
        record.mutable_step()->set_number(work.steps);
        // The same with every repetition.
        if (work.steps == 0) {
          record.mutable_step()->mutable_reply()->set_content("text");
        } else {
          record.mutable_step()->mutable_result()->set_extraction_error("none");
        }
        record.mutable_step()->mutable_at()->set_seconds(1);
        stepped.push_back(item);
      } else {
        v1::CompleteRequest& complete = *request.add_completions();
        *complete.mutable_token() = work.token;
        complete.mutable_result()->set_verified(true);
        complete.mutable_result()->set_stop_reason(v1::STOP_REASON_SOLVED);
        completed.push_back(item);
      }
    }
    v1::RunnerSyncRequest& sync = *request.mutable_sync();
    sync.set_runner(runner_);
    sync.set_free(kFree);
    for (uint32_t item : stepped) *sync.add_held() = held_[item].token;
    if (!stream.Write(request)) return false;
    bool calls = stepped.empty() && completed.empty();
    bool synced = false;
    while (!calls || !synced) {
      v1::SessionResponse response;
      if (!stream.Read(&response)) return false;
      if (response.steps_size() + response.completions_size() > 0) {
        Hear(response, stepped, completed);
        calls = true;
      }
      if (response.has_sync_status()) {
        Take(response.sync());
        synced = true;
      }
    }
    return true;
  }

  void Hear(const v1::SessionResponse& response, const std::vector<uint32_t>& stepped,
            const std::vector<uint32_t>& completed) {
    std::lock_guard lock(ledger_.mutex);
    for (size_t i = 0; i < stepped.size(); ++i) {
      Work& work = held_.at(stepped[i]);
      int code = response.steps(static_cast<int>(i)).code();
      if (code == 0) {
        ++work.steps;
        uint32_t& known = ledger_.steps[stepped[i]];
        known = std::max(known, work.steps);
      } else {
        Refused(stepped[i], code);
      }
    }
    for (size_t i = 0; i < completed.size(); ++i) {
      int code = response.completions(static_cast<int>(i)).code();
      uint32_t attempt = held_.at(completed[i]).token.attempt();
      if (code == 0) {
        auto [known, first] = ledger_.completed.emplace(completed[i], attempt);
        if (!first && known->second != attempt) ++ledger_.doubled;
        held_.erase(completed[i]);
      } else {
        Refused(completed[i], code);
      }
    }
  }

  // A holder whose lease ran out while the coordinator was away is told so.
  void Refused(uint32_t item, int code) {
    ++(code == static_cast<int>(grpc::StatusCode::FAILED_PRECONDITION) ? ledger_.stale
                                                                       : ledger_.wrong);
    held_.erase(item);
  }

  void Take(const v1::RunnerSyncResponse& sync) {
    std::lock_guard lock(ledger_.mutex);
    for (const v1::HeldLease& lease : sync.held()) {
      if (lease.order() == v1::LEASE_ORDER_LOST) held_.erase(lease.token().item().number());
    }
    for (const v1::Lease& lease : sync.granted()) {
      uint32_t item = lease.token().item().number();
      // One attempt has one holder, and what is completed is not given out again.
      if (!ledger_.granted[item].insert(lease.token().attempt()).second) ++ledger_.doubled;
      if (ledger_.completed.count(item) > 0) ++ledger_.doubled;
      auto steps = ledger_.steps.find(item);
      if (steps != ledger_.steps.end() &&
          static_cast<uint32_t>(lease.steps_size()) < steps->second) {
        ++ledger_.wrong;
      }
      held_[item] = {lease.token(), static_cast<uint32_t>(lease.steps_size())};
    }
  }

  std::mt19937_64 random_;
  const std::string runner_;
  const int number_;
  const std::string job_;
  const std::string target_;
  Ledger& ledger_;
  std::map<uint32_t, Work> held_;
  // Repeated until it is answered.
  v1::ExtendJobRequest extension_;
  uint64_t extensions_ = 0;
  uint64_t tasks_ = 0;
  uint64_t id_ = 0;
};

class Clients {
 public:
  Clients(const Flags& flags, const std::string& target, const std::string& job, Ledger& ledger,
          bool submit) {
    for (int i = 0; i < flags.clients; ++i) {
      threads_.emplace_back(
          [this,
           client = std::make_shared<Client>(flags, target, i + (submit ? 0 : 1000), job, ledger),
           submit] { client->Run(stop_, submit); });
    }
  }
  ~Clients() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  std::atomic<bool> stop_ = false;
  std::vector<std::thread> threads_;
};

absl::StatusOr<v1::Job> GetJob(v1::JobService::Stub& stub, const std::string& job) {
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  v1::JobRequest request;
  request.set_id(job);
  v1::Job response;
  grpc::Status status = stub.Get(&context, request, &response);
  if (!status.ok()) return FromGrpc(status);
  return response;
}

// Compares what the coordinator has with what it acknowledged.
absl::Status Compare(v1::JobService::Stub& stub, const std::string& job, const Ledger& ledger,
                     nlohmann::json& report) {
  uint64_t lost = 0;
  uint64_t stuck = 0;
  uint64_t items = 0;
  v1::ListItemsRequest request;
  request.set_job(job);
  request.set_page_size(1000);
  do {
    grpc::ClientContext context;
    v1::ListItemsResponse page;
    grpc::Status status = stub.ListItems(&context, request, &page);
    if (!status.ok()) return FromGrpc(status);
    for (const v1::Item& item : page.items()) {
      ++items;
      uint32_t number = item.id().number();
      bool done = item.state() == v1::ITEM_STATE_DONE;
      if (!done) ++stuck;
      auto completed = ledger.completed.find(number);
      if (completed != ledger.completed.end() && (!done || item.attempts() != completed->second)) {
        ++lost;
      }
      auto steps = ledger.steps.find(number);
      if (steps != ledger.steps.end() && item.steps() < steps->second) ++lost;
    }
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  if (items < ledger.items) lost += ledger.items - items;
  report["items"] = items;
  report["completions_acknowledged"] = ledger.completed.size();
  report["steps_acknowledged"] = ledger.steps.size();
  report["lost"] = lost;
  report["stuck"] = stuck;
  report["doubled"] = ledger.doubled;
  report["wrong_answers"] = ledger.wrong;
  report["stale_holders"] = ledger.stale;
  report["sessions"] = ledger.sessions;
  if (lost + stuck + ledger.doubled + ledger.wrong == 0) return absl::OkStatus();
  return absl::DataLossError("something was lost, doubled or is stuck");
}

absl::Status Run(const Flags& flags, nlohmann::json& report) {
  Subject subject(flags.coordinator, flags.data_dir, {kLeaseTtl});
  KMOSAIC_RETURN_IF_ERROR(subject.Start());
  auto jobs = v1::JobService::NewStub(OwnConnection(subject.target(), -1));
  KMOSAIC_ASSIGN_OR_RETURN(std::string job, SubmitJob(*jobs, LoadSpec("kills", 1), 0, 1, 120));
  Ledger ledger;
  std::mt19937_64 random(static_cast<uint64_t>(flags.seed));
  double slowest_start = 0;
  {
    Clients clients(flags, subject.target(), job, ledger, true);
    for (int64_t round = 0; round < flags.rounds; ++round) {
      uint64_t span = static_cast<uint64_t>(flags.longest_ms - flags.shortest_ms + 1);
      usleep(static_cast<useconds_t>(flags.shortest_ms + static_cast<int64_t>(random() % span)) *
             1000);
      KMOSAIC_RETURN_IF_ERROR(subject.Kill());
      KMOSAIC_RETURN_IF_ERROR(subject.Start());
      slowest_start = std::max(slowest_start, subject.start_seconds());
    }
  }
  report["rounds"] = flags.rounds;
  report["slowest_start_seconds"] = slowest_start;
  // Everybody behaves from now on: all that is left comes to its end.
  {
    Clients clients(flags, subject.target(), job, ledger, false);
    for (absl::Time end = absl::Now() + absl::Minutes(3); absl::Now() < end;) {
      KMOSAIC_ASSIGN_OR_RETURN(v1::Job now, GetJob(*jobs, job));
      if (now.state() == v1::JOB_STATE_FINISHED) break;
      usleep(100'000);
    }
  }
  absl::Status compared = Compare(*jobs, job, ledger, report);
  KMOSAIC_RETURN_IF_ERROR(subject.Stop());
  KMOSAIC_RETURN_IF_ERROR(subject.Check());
  return compared;
}

}  // namespace
}  // namespace kmosaic

int main(int argc, char** argv) {
  kmosaic::Flags flags;
  kmosaic::Options options("queue_kills", "Kills a coordinator under load and counts its losses.");
  options.Add("coordinator", &flags.coordinator, "kmosaic-coordinator to start");
  options.Add("data-dir", &flags.data_dir, "its data directory; has to be empty");
  options.Add("rounds", &flags.rounds, "how often it is killed");
  options.Add("clients", &flags.clients, "clients, each with its own connection and thread");
  options.Add("shortest-ms", &flags.shortest_ms, "least time between two kills");
  options.Add("longest-ms", &flags.longest_ms, "most time between two kills");
  options.Add("seed", &flags.seed, "of the moments and of what clients do");
  if (std::optional<int> code = options.Parse(argc, argv)) return *code;
  if (flags.coordinator.empty() || flags.data_dir.empty()) {
    fprintf(stderr, "queue_kills: --coordinator and --data-dir are required\n");
    return kmosaic::kExitUsage;
  }
  nlohmann::json report = {{"clients", flags.clients}, {"seed", flags.seed}};
  absl::Status status = kmosaic::Run(flags, report);
  printf("%s\n", report.dump().c_str());
  if (status.ok()) return 0;
  fprintf(stderr, "queue_kills: %s\n", status.ToString().c_str());
  return 1;
}
