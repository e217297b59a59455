// A simulated fleet on a real coordinator over gRPC: runners that hold thousands of
// conversations over sessions, and workers that lend slots; some of both die. Prints one line
// of JSON, and ends with 1 when something was lost, doubled or shared unevenly.
//
//   fleet_load --coordinator build/release/bin/kmosaic-coordinator --data-dir DIR
//
// A conversation is: lease, then replies and results in turns, each after some thinking and
// each result under a slot of a worker, then the completion. Three jobs have the weights 1, 2
// and 4 and more tasks than can be done.
#include <grpcpp/channel.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <deque>
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
#include "kernelmosaic/v1/worker.grpc.pb.h"
#include "tests/bench/load_clients.h"
#include "tests/bench/load_numbers.h"
#include "tests/bench/subject.h"

namespace kmosaic {
namespace {

struct Flags {
  std::string coordinator;
  std::string data_dir;
  int64_t shards = 1;
  int64_t workers = 1000;
  int64_t conversations = 10'000;
  int64_t runners = 50;
  int64_t seconds = 600;
  int64_t think_ms = 15'000;
  int64_t job_tasks = 150'000;
  int64_t seed = 1;
};

constexpr uint32_t kSteps = 4;
constexpr uint32_t kWorkerSlots = 4;
constexpr absl::Duration kUnderSlot = absl::Milliseconds(500);
// Of conversations and of workers.
constexpr double kDying = 0.01;
constexpr double kShareTolerance = 0.05;

using ItemKey = std::pair<std::string, uint32_t>;

// What all runners saw.
struct Ledger {
  std::mutex mutex;
  std::map<std::string, uint64_t> grants;
  std::map<ItemKey, std::set<uint32_t>> attempts;
  std::set<ItemKey> completed;
  uint64_t doubled = 0;
  uint64_t refused = 0;
  uint64_t died = 0;
  uint64_t slots = 0;
  uint64_t slot_errors = 0;
  Latencies leases;
  Latencies messages;
  Latencies slot_waits;
  absl::Status status;
};

class Runner {
 public:
  Runner(const Flags& flags, const std::string& target, int number, Ledger& ledger)
      : flags_(flags),
        capacity_(static_cast<size_t>(flags.conversations / flags.runners)),
        runner_(absl::StrCat("runner-", number)),
        random_(static_cast<uint64_t>(flags.seed * 1000 + number)),
        channel_(OwnConnection(target, number)),
        stub_(v1::RunnerService::NewStub(channel_)),
        ledger_(ledger) {}

  // Holds conversations until `end`, then brings what it holds to its end.
  void Run(absl::Time end) {
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    auto stream = stub_->Session(&context);
    absl::Status status;
    while (status.ok()) {
      draining_ = absl::Now() >= end;
      if (draining_ && held_.empty()) break;
      status = Exchange(*stream);
      usleep(50'000);
    }
    stream->WritesDone();
    v1::SessionResponse rest;
    while (stream->Read(&rest)) {
    }
    static_cast<void>(stream->Finish());
    // Calls for slots may be open.
    while (open_slots_ > 0) usleep(10'000);
    std::lock_guard lock(ledger_.mutex);
    ledger_.status.Update(status);
  }

 private:
  struct Talk {
    v1::LeaseToken token;
    uint32_t steps = 0;
    absl::Time due;
    // At this step its holder dies.
    uint32_t dies_at = kSteps + 1;
    bool waits_for_slot = false;
    std::string slot;
  };
  struct SlotCall {
    grpc::ClientContext context;
    v1::AcquireSlotRequest request;
    v1::Slot slot;
    absl::Time begun;
  };

  absl::Duration Think() {
    if (draining_) return absl::ZeroDuration();
    std::exponential_distribution<double> think(1.0 / static_cast<double>(flags_.think_ms));
    return absl::Milliseconds(think(random_));
  }

  void AskForSlot(const ItemKey& key, Talk& talk) {
    talk.waits_for_slot = true;
    auto call = std::make_shared<SlotCall>();
    call->request.set_runner(runner_);
    *call->request.mutable_token() = talk.token;
    call->request.set_role(v1::ROLE_VERIFY);
    call->request.set_device(v1::DEVICE_KIND_EMULATED);
    call->request.mutable_wait()->set_seconds(30);
    call->begun = absl::Now();
    ++open_slots_;
    stub_->async()->AcquireSlot(
        &call->context, &call->request, &call->slot, [this, call, key](const grpc::Status& status) {
          std::lock_guard lock(inbox_mutex_);
          inbox_.push_back({key, status.ok() ? call->slot.id() : "", absl::Now() - call->begun});
          --open_slots_;
        });
  }

  void TakeSlots() {
    std::deque<Answer> answers;
    {
      std::lock_guard lock(inbox_mutex_);
      answers.swap(inbox_);
    }
    std::lock_guard lock(ledger_.mutex);
    for (Answer& answer : answers) {
      auto talk = held_.find(answer.item);
      if (answer.slot.empty()) {
        ++ledger_.slot_errors;
      } else {
        ++ledger_.slots;
        ledger_.slot_waits.Add(answer.waited);
      }
      if (talk == held_.end()) continue;  // its slot runs out by itself
      talk->second.waits_for_slot = false;
      talk->second.slot = answer.slot;
      talk->second.due = absl::Now() + (answer.slot.empty() ? absl::Seconds(1) : kUnderSlot);
    }
  }

  // A slot is given back in its own time; nobody waits for it.
  void GiveBack(const std::string& slot) {
    struct Call {
      grpc::ClientContext context;
      v1::ReleaseSlotRequest request;
      v1::ReleaseSlotResponse response;
    };
    auto call = std::make_shared<Call>();
    call->request.set_id(slot);
    ++open_slots_;
    stub_->async()->ReleaseSlot(&call->context, &call->request, &call->response,
                                [this, call](const grpc::Status&) { --open_slots_; });
  }

  absl::Status Exchange(grpc::ClientReaderWriter<v1::SessionRequest, v1::SessionResponse>& stream) {
    TakeSlots();
    absl::Time now = absl::Now();
    v1::SessionRequest request;
    request.set_id(++id_);
    std::vector<ItemKey> stepped;
    std::vector<ItemKey> completed;
    for (auto each = held_.begin(); each != held_.end();) {
      auto at = each++;
      Talk& talk = at->second;
      if (talk.waits_for_slot || talk.due > now) continue;
      if (talk.steps >= talk.dies_at && !draining_) {
        held_.erase(at);
        ++died_;
        continue;
      }
      if (talk.steps == kSteps) {
        v1::CompleteRequest& complete = *request.add_completions();
        *complete.mutable_token() = talk.token;
        complete.mutable_result()->set_verified(true);
        complete.mutable_result()->set_stop_reason(v1::STOP_REASON_SOLVED);
        completed.push_back(at->first);
        continue;
      }
      bool result = talk.steps % 2 == 1;
      if (result && talk.slot.empty()) {
        AskForSlot(at->first, talk);
        continue;
      }
      v1::RecordStepRequest& step = *request.add_steps();
      *step.mutable_token() = talk.token;
      step.mutable_step()->set_number(talk.steps);
      if (result) {
        step.mutable_step()->mutable_result()->set_extraction_error("none");
        GiveBack(std::exchange(talk.slot, ""));
      } else {
        step.mutable_step()->mutable_reply()->set_content(std::string(500, 'r'));
      }
      stepped.push_back(at->first);
    }
    size_t free = draining_ || held_.size() >= capacity_ ? 0 : capacity_ - held_.size();
    if (free > 0 || now >= next_sync_) {
      next_sync_ = now + absl::Seconds(1);
      v1::RunnerSyncRequest& sync = *request.mutable_sync();
      sync.set_runner(runner_);
      sync.set_free(static_cast<uint32_t>(free));
      for (const auto& [key, talk] : held_) *sync.add_held() = talk.token;
    }
    if (request.steps_size() + request.completions_size() == 0 && !request.has_sync()) {
      return absl::OkStatus();
    }
    if (!stream.Write(request)) return absl::UnavailableError("the session broke");
    v1::SessionResponse response;
    if (!stream.Read(&response)) return absl::UnavailableError("the session broke");
    Hear(response, stepped, completed, absl::Now() - now);
    return absl::OkStatus();
  }

  void Hear(const v1::SessionResponse& response, const std::vector<ItemKey>& stepped,
            const std::vector<ItemKey>& completed, absl::Duration took) {
    std::lock_guard lock(ledger_.mutex);
    ledger_.messages.Add(took);
    if (response.sync().granted_size() > 0) ledger_.leases.Add(took);
    ledger_.died += std::exchange(died_, 0);
    for (size_t i = 0; i < stepped.size(); ++i) {
      Talk& talk = held_.at(stepped[i]);
      if (response.steps(static_cast<int>(i)).code() == 0) {
        ++talk.steps;
        talk.due = absl::Now() + Think();
      } else {
        ++ledger_.refused;
        held_.erase(stepped[i]);
      }
    }
    for (size_t i = 0; i < completed.size(); ++i) {
      if (response.completions(static_cast<int>(i)).code() == 0) {
        if (!ledger_.completed.insert(completed[i]).second) ++ledger_.doubled;
      } else {
        ++ledger_.refused;
      }
      held_.erase(completed[i]);
    }
    for (const v1::HeldLease& lease : response.sync().held()) {
      const v1::ItemId& id = lease.token().item();
      if (lease.order() == v1::LEASE_ORDER_LOST && held_.erase({id.job(), id.number()}) > 0) {
        ++ledger_.refused;
      }
    }
    for (const v1::Lease& lease : response.sync().granted()) {
      ItemKey key(lease.token().item().job(), lease.token().item().number());
      ++ledger_.grants[key.first];
      if (!ledger_.attempts[key].insert(lease.token().attempt()).second) ++ledger_.doubled;
      if (ledger_.completed.count(key) > 0) ++ledger_.doubled;
      Talk& talk = held_[key];
      talk.token = lease.token();
      talk.steps = static_cast<uint32_t>(lease.steps_size());
      talk.due = absl::Now() + Think();
      std::uniform_real_distribution<double> chance(0, 1);
      if (chance(random_) < kDying) talk.dies_at = static_cast<uint32_t>(random_() % (kSteps + 1));
    }
  }

  struct Answer {
    ItemKey item;
    std::string slot;
    absl::Duration waited;
  };

  const Flags& flags_;
  const size_t capacity_;
  const std::string runner_;
  std::mt19937_64 random_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::RunnerService::Stub> stub_;
  Ledger& ledger_;
  std::map<ItemKey, Talk> held_;
  absl::Time next_sync_;
  uint64_t id_ = 0;
  uint64_t died_ = 0;
  bool draining_ = false;
  std::atomic<int> open_slots_ = 0;
  std::mutex inbox_mutex_;
  std::deque<Answer> inbox_;
};

// Some workers of the fleet, one call at a time; the dying ones fall silent on their way.
void RunWorkers(const Flags& flags, const std::string& target, int first, int count,
                const std::atomic<bool>& stop, std::atomic<int>& died) {
  auto stub = v1::WorkerRegistry::NewStub(OwnConnection(target, 10'000 + first));
  struct Worker {
    v1::WorkerSyncRequest said;
    absl::Time next;
    absl::Time dies = absl::InfiniteFuture();
  };
  std::mt19937_64 random(static_cast<uint64_t>(flags.seed * 100 + first));
  std::vector<Worker> workers(static_cast<size_t>(count));
  absl::Time begin = absl::Now();
  for (int i = 0; i < count; ++i) {
    Worker& worker = workers[static_cast<size_t>(i)];
    worker.said.set_worker(absl::StrCat("worker-", first + i));
    worker.said.set_incarnation("first");
    worker.said.set_endpoint("127.0.0.1:1");
    worker.said.mutable_device()->set_kind(v1::DEVICE_KIND_EMULATED);
    v1::RoleSlots& slots = *worker.said.add_slots();
    slots.set_role(v1::ROLE_VERIFY);
    slots.set_total(kWorkerSlots);
    std::uniform_real_distribution<double> chance(0, 1);
    if (chance(random) < kDying) {
      worker.dies = begin + absl::Seconds(chance(random) * static_cast<double>(flags.seconds));
    }
  }
  while (!stop.load()) {
    absl::Time now = absl::Now();
    for (Worker& worker : workers) {
      if (worker.next > now) continue;
      if (worker.dies <= now) {
        worker.next = absl::InfiniteFuture();
        ++died;
        continue;
      }
      grpc::ClientContext context;
      context.set_wait_for_ready(true);
      v1::WorkerSyncResponse response;
      static_cast<void>(stub->Sync(&context, worker.said, &response));
      worker.next = now + absl::Seconds(response.next_sync().seconds()) +
                    absl::Nanoseconds(response.next_sync().nanos());
    }
    usleep(20'000);
  }
}

// What the coordinator counts has to be what the runners saw.
absl::Status Compare(v1::JobService::Stub& stub, const std::map<std::string, uint32_t>& jobs,
                     const Ledger& ledger, nlohmann::json& report) {
  uint64_t done = 0;
  uint64_t dead = 0;
  for (const auto& [id, weight] : jobs) {
    grpc::ClientContext context;
    v1::JobRequest request;
    request.set_id(id);
    v1::Job job;
    grpc::Status status = stub.Get(&context, request, &job);
    if (!status.ok()) return FromGrpc(status);
    done += job.counts().done();
    dead += job.counts().dead() + job.counts().failed();
  }
  uint64_t grants = 0;
  for (const auto& [id, count] : ledger.grants) grants += count;
  double worst = 0;
  for (const auto& [id, weight] : jobs) {
    auto found = ledger.grants.find(id);
    double share = static_cast<double>(found == ledger.grants.end() ? 0 : found->second) /
                   static_cast<double>(std::max<uint64_t>(grants, 1));
    double due = weight / 7.0;
    report["share_of_weight"][absl::StrCat(weight)] = share;
    worst = std::max(worst, std::abs(share / due - 1));
  }
  uint64_t lost = ledger.completed.size() > done ? ledger.completed.size() - done : 0;
  uint64_t unknown = done > ledger.completed.size() ? done - ledger.completed.size() : 0;
  report["grants"] = grants;
  report["completed"] = ledger.completed.size();
  report["lost"] = lost;
  report["done_without_answer"] = unknown;
  report["doubled"] = ledger.doubled;
  report["dead_letters"] = dead;
  report["refused"] = ledger.refused;
  report["conversations_died"] = ledger.died;
  report["worst_share_error"] = worst;
  report["slots"] = ledger.slots;
  report["slot_errors"] = ledger.slot_errors;
  report["lease_p50_ms"] = ledger.leases.Quantile(0.5) * 1e3;
  report["lease_p99_ms"] = ledger.leases.Quantile(0.99) * 1e3;
  report["message_p50_ms"] = ledger.messages.Quantile(0.5) * 1e3;
  report["message_p99_ms"] = ledger.messages.Quantile(0.99) * 1e3;
  report["slot_p50_ms"] = ledger.slot_waits.Quantile(0.5) * 1e3;
  report["slot_p99_ms"] = ledger.slot_waits.Quantile(0.99) * 1e3;
  if (lost + unknown + ledger.doubled + dead > 0) {
    return absl::DataLossError("something was lost, doubled or given up");
  }
  if (worst > kShareTolerance) return absl::InternalError("the jobs' shares are not their due");
  return ledger.status;
}

absl::Status Run(const Flags& flags, nlohmann::json& report) {
  Subject subject(flags.coordinator, flags.data_dir, {absl::StrCat("--shards=", flags.shards)});
  KMOSAIC_RETURN_IF_ERROR(subject.Start());
  auto jobs = v1::JobService::NewStub(OwnConnection(subject.target(), -1));
  std::map<std::string, uint32_t> weights;
  for (uint32_t weight : {1, 2, 4}) {
    KMOSAIC_ASSIGN_OR_RETURN(std::string id,
                             SubmitJob(*jobs, LoadSpec(absl::StrCat("weight ", weight), weight), 0,
                                       static_cast<uint64_t>(flags.job_tasks), 120));
    weights[id] = weight;
  }
  Ledger ledger;
  std::atomic<bool> stop = false;
  std::atomic<int> workers_died = 0;
  constexpr int kWorkersOfThread = 100;
  std::vector<std::thread> fleet;
  for (int first = 0; first < flags.workers; first += kWorkersOfThread) {
    int count = static_cast<int>(std::min<int64_t>(kWorkersOfThread, flags.workers - first));
    fleet.emplace_back([&, first, count] {
      RunWorkers(flags, subject.target(), first, count, stop, workers_died);
    });
  }
  double server_before = CpuSeconds(subject.pid());
  double client_before = CpuSeconds(getpid());
  absl::Time begin = absl::Now();
  std::vector<std::thread> runners;
  for (int i = 0; i < flags.runners; ++i) {
    runners.emplace_back([&, i] {
      Runner(flags, subject.target(), i, ledger).Run(begin + absl::Seconds(flags.seconds));
    });
  }
  for (std::thread& runner : runners) runner.join();
  stop = true;
  for (std::thread& workers : fleet) workers.join();
  double seconds = absl::ToDoubleSeconds(absl::Now() - begin);
  report["seconds"] = seconds;
  report["server_cores"] = (CpuSeconds(subject.pid()) - server_before) / seconds;
  report["client_cores"] = (CpuSeconds(getpid()) - client_before) / seconds;
  report["rss_bytes"] = ResidentBytes(subject.pid());
  report["workers_died"] = workers_died.load();
  absl::Status compared = Compare(*jobs, weights, ledger, report);
  KMOSAIC_RETURN_IF_ERROR(subject.Stop());
  KMOSAIC_RETURN_IF_ERROR(subject.Check());
  return compared;
}

}  // namespace
}  // namespace kmosaic

int main(int argc, char** argv) {
  kmosaic::Flags flags;
  kmosaic::Options options("fleet_load", "A simulated fleet on one coordinator.");
  options.Add("coordinator", &flags.coordinator, "kmosaic-coordinator to start");
  options.Add("data-dir", &flags.data_dir, "its data directory; has to be empty");
  options.Add("shards", &flags.shards, "shards of the coordinator");
  options.Add("workers", &flags.workers, "simulated workers");
  options.Add("conversations", &flags.conversations, "conversations held at once");
  options.Add("runners", &flags.runners, "simulated runners that hold them, a thread each");
  options.Add("seconds", &flags.seconds, "duration; after it all that is held is ended");
  options.Add("think-ms", &flags.think_ms, "mean time before a step");
  options.Add("job-tasks", &flags.job_tasks, "tasks of each of the three jobs");
  options.Add("seed", &flags.seed, "of all chances");
  if (std::optional<int> code = options.Parse(argc, argv)) return *code;
  if (flags.coordinator.empty() || flags.data_dir.empty()) {
    fprintf(stderr, "fleet_load: --coordinator and --data-dir are required\n");
    return kmosaic::kExitUsage;
  }
  nlohmann::json report = {{"workers", flags.workers},
                           {"conversations", flags.conversations},
                           {"runners", flags.runners},
                           {"shards", flags.shards}};
  absl::Status status = kmosaic::Run(flags, report);
  printf("%s\n", report.dump().c_str());
  if (status.ok()) return 0;
  fprintf(stderr, "fleet_load: %s\n", status.ToString().c_str());
  return 1;
}
