#include "coordinator/placement/placement.h"

#include <google/protobuf/util/time_util.h>

#include <chrono>

#include "absl/strings/str_cat.h"
#include "common/base/digest.h"
#include "common/base/ids.h"
#include "common/log/log.h"
#include "common/rpc/grant.h"

namespace kmosaic {
namespace {

constexpr size_t kKeyBytes = 32;
// A worker that has just learnt the key of grants shall say so within this time.
constexpr absl::Duration kIntroduction = absl::Milliseconds(200);
// How late a wait or a slot may end.
constexpr std::chrono::milliseconds kTick(200);

PlacementTable::Options WithPrefix(PlacementTable::Options options) {
  options.slot_prefix = RandomId("slot");
  return options;
}

google::protobuf::Duration ToWire(absl::Duration duration) {
  return google::protobuf::util::TimeUtil::NanosecondsToDuration(
      absl::ToInt64Nanoseconds(duration));
}

}  // namespace

Placement::Placement(PlacementTable::Options options, const Clock& clock, OnGrant on_grant)
    : clock_(clock),
      key_(RandomBytes(kKeyBytes)),
      on_grant_(std::move(on_grant)),
      table_(WithPrefix(std::move(options)), clock.Steady()),
      timer_([this] { RunTimer(); }) {}

Placement::~Placement() {
  std::vector<Done> left;
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    for (auto& [ticket, waiting] : waiting_) left.push_back(std::move(waiting.done));
    waiting_.clear();
  }
  changed_.notify_all();
  timer_.join();
  for (Done& done : left) done(absl::CancelledError("the coordinator is stopping"));
}

uint64_t Placement::Acquire(SlotRequest request, Done done) {
  uint64_t ticket;
  std::vector<Answer> answers;
  {
    std::lock_guard lock(mutex_);
    ticket = next_ticket_++;
    waiting_[ticket] = {std::move(done), request.requirement.role};
    table_.Enqueue(ticket, std::move(request), clock_.Steady());
    answers = TakeAnswers();
  }
  for (Answer& answer : answers) answer.done(std::move(answer.slot));
  return ticket;
}

bool Placement::Cancel(uint64_t ticket) {
  bool waited;
  std::vector<Answer> answers;
  {
    std::lock_guard lock(mutex_);
    waited = table_.Cancel(ticket);
    answers = TakeAnswers();
  }
  for (Answer& answer : answers) answer.done(std::move(answer.slot));
  return waited;
}

void Placement::Release(const std::string& slot) {
  std::vector<Answer> answers;
  {
    std::lock_guard lock(mutex_);
    table_.Release(slot, clock_.Steady());
    answers = TakeAnswers();
  }
  for (Answer& answer : answers) answer.done(std::move(answer.slot));
}

void Placement::ReleaseHolder(const std::string& holder) {
  size_t freed;
  std::vector<Answer> answers;
  {
    std::lock_guard lock(mutex_);
    freed = table_.ReleaseHolder(holder, clock_.Steady());
    answers = TakeAnswers();
  }
  if (freed > 0) LogInfo("slots of a lost holder freed", {{"holder", holder}, {"slots", freed}});
  for (Answer& answer : answers) answer.done(std::move(answer.slot));
}

absl::Status Placement::CheckSatisfiable(const SlotRequirement& requirement) const {
  std::lock_guard lock(mutex_);
  return table_.CheckSatisfiable(requirement, clock_.Steady());
}

v1::WorkerSyncResponse Placement::Sync(const v1::WorkerSyncRequest& request) {
  v1::WorkerSyncResponse response;
  response.set_grant_key(key_);
  std::vector<Answer> answers;
  bool known;
  {
    std::lock_guard lock(mutex_);
    auto before = table_.FindWorker(request.worker());
    known = before.has_value() && before->state() != v1::WORKER_STATE_LOST;
    PlacementTable::Orders orders = table_.Sync(request, clock_.Wall(), clock_.Steady());
    response.set_drain(orders.drain);
    response.set_end(orders.end);
    *response.mutable_next_sync() =
        ToWire(orders.sync_soon ? kIntroduction : table_.options().sync_interval);
    answers = TakeAnswers();
  }
  if (!known) {
    LogInfo("worker registered", {{"worker", request.worker()},
                                  {"endpoint", request.endpoint()},
                                  {"device", DeviceName(request.device().kind())}});
  }
  for (Answer& answer : answers) answer.done(std::move(answer.slot));
  return response;
}

absl::StatusOr<v1::Worker> Placement::Drain(const std::string& worker, bool drain) {
  std::vector<Answer> answers;
  std::optional<v1::Worker> state;
  {
    std::lock_guard lock(mutex_);
    table_.Drain(worker, drain, clock_.Steady());
    state = table_.FindWorker(worker);
    answers = TakeAnswers();
  }
  for (Answer& answer : answers) answer.done(std::move(answer.slot));
  if (!state.has_value()) {
    return absl::NotFoundError(absl::StrCat("no worker \"", worker, "\" is registered"));
  }
  return *std::move(state);
}

std::string Placement::Incarnation(const std::string& worker) const {
  std::lock_guard lock(mutex_);
  return table_.Incarnation(worker);
}

void Placement::Suspect(const std::string& worker) {
  std::lock_guard lock(mutex_);
  table_.Suspect(worker);
}

std::vector<v1::Worker> Placement::Workers() const {
  std::lock_guard lock(mutex_);
  return table_.Workers();
}

PlacementFigures Placement::Figures() const {
  std::lock_guard lock(mutex_);
  return table_.Figures(clock_.Steady());
}

void Placement::RunDue() {
  std::vector<Answer> answers;
  {
    std::lock_guard lock(mutex_);
    table_.Tick(clock_.Steady());
    answers = TakeAnswers();
  }
  for (Answer& answer : answers) answer.done(std::move(answer.slot));
}

std::vector<Placement::Answer> Placement::TakeAnswers() {
  std::vector<Answer> answers;
  for (PlacementTable::Outcome& outcome : table_.TakeOutcomes()) {
    auto waiting = waiting_.find(outcome.ticket);
    // Gone only when the placement stops.
    if (waiting == waiting_.end()) continue;
    Answer answer{std::move(waiting->second.done),
                  absl::UnknownError("a request for a slot ended without an answer")};
    if (outcome.result.ok()) {
      answer.slot = ToSlot(*outcome.result, waiting->second.role);
      if (on_grant_) on_grant_(waiting->second.role, outcome.result->waited);
    } else {
      answer.slot = outcome.result.status();
    }
    waiting_.erase(waiting);
    answers.push_back(std::move(answer));
  }
  return answers;
}

v1::Slot Placement::ToSlot(const PlacementTable::Granted& granted, v1::Role role) const {
  v1::Slot slot;
  slot.set_id(granted.slot);
  slot.set_worker(granted.worker);
  slot.set_endpoint(granted.endpoint);
  slot.set_grant(
      SignGrant({granted.slot, granted.worker, role, clock_.Wall() + granted.ttl}, key_));
  *slot.mutable_ttl() = ToWire(granted.ttl);
  return slot;
}

void Placement::RunTimer() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    changed_.wait_for(lock, kTick,
                      [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_; });
    if (stopping_) return;
    lock.unlock();
    RunDue();
    lock.lock();
  }
}

}  // namespace kmosaic
