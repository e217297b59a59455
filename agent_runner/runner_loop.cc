#include "agent_runner/runner_loop.h"

#include <google/protobuf/util/message_differencer.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agent_runner/proto_time.h"
#include "common/base/version.h"
#include "common/log/log.h"
#include "common/rpc/channel.h"

namespace kmosaic {
namespace {

using google::protobuf::util::MessageDifferencer;

// Between Syncs that come back at once with nothing.
constexpr absl::Duration kShortestPause = absl::Milliseconds(100);

JobStanding StandingOf(const v1::RunnerSyncResponse& response, const v1::LeaseToken& token,
                       uint32_t verified_samples) {
  JobStanding standing;
  standing.verified_samples = verified_samples;
  auto progress = response.progress().find(token.item().job());
  if (progress != response.progress().end()) {
    standing.usage = progress->second.usage();
    standing.created = FromProtoTimestamp(progress->second.created());
  }
  return standing;
}

}  // namespace

RunnerLoop::RunnerLoop(const ConversationServices& services, Options options)
    : services_(services), options_(std::move(options)) {}

RunnerLoop::~RunnerLoop() {
  GiveAll(Conversation::Order::kEnd);
  std::list<Held> rest;
  {
    std::lock_guard lock(mutex_);
    rest.swap(held_);
  }
  // Threads end outside of the lock, which their last act takes.
  rest.clear();
}

void RunnerLoop::Run() {
  absl::Duration grace_end = absl::InfiniteDuration();
  while (true) {
    absl::Duration pause = SyncOnce();
    JoinFinished();
    bool empty = false;
    bool draining = false;
    {
      std::lock_guard lock(mutex_);
      empty = held_.empty();
      draining = draining_;
    }
    if (draining) {
      if (empty) return;
      GiveAll(Conversation::Order::kDrain);
      absl::Duration now = services_.clock.Steady();
      if (grace_end == absl::InfiniteDuration()) grace_end = now + options_.drain_grace;
      if (now >= grace_end) GiveAll(Conversation::Order::kEnd);
      pause = std::min(pause, std::max(grace_end - now, kShortestPause));
    }
    Pause(pause);
    JoinFinished();
  }
}

void RunnerLoop::Drain() {
  std::lock_guard lock(mutex_);
  draining_ = true;
  wake_ = true;
  for (Held& held : held_) held.conversation->Give(Conversation::Order::kDrain);
  changed_.notify_all();
}

bool RunnerLoop::connected() const {
  std::lock_guard lock(mutex_);
  return connected_;
}

absl::Duration RunnerLoop::SyncOnce() {
  v1::RunnerSyncRequest request;
  request.set_runner(services_.runner);
  request.set_version(kVersion);
  request.set_http_endpoint(options_.http_endpoint);
  absl::Duration wait;
  {
    std::lock_guard lock(mutex_);
    for (const Held& held : held_) {
      if (!held.finished) *request.add_held() = held.conversation->token();
    }
    uint32_t held = static_cast<uint32_t>(request.held_size());
    request.set_draining(draining_);
    if (!draining_ && held < options_.max_conversations) {
      request.set_free(options_.max_conversations - held);
      wait = options_.sync_wait;
    }
  }
  *request.mutable_wait() = ToProtoDuration(wait);
  absl::Duration started = services_.clock.Steady();
  absl::StatusOr<v1::RunnerSyncResponse> response =
      services_.coordinator.Sync(request, wait + options_.sync_timeout);
  {
    std::lock_guard lock(mutex_);
    connected_ = response.ok();
  }
  if (!response.ok()) {
    services_.metrics.sync_failures.Increment();
    if (failures_in_a_row_ == 0) {
      LogWarning("the coordinator does not answer; conversations go on",
                 {{"error", std::string(response.status().message())}});
    }
    return std::max(kShortestPause,
                    Backoff(failures_in_a_row_++, options_.backoff_base, options_.backoff_cap));
  }
  if (std::exchange(failures_in_a_row_, 0) > 0) LogInfo("the coordinator answers again");
  Obey(*response);
  Take(*response);
  if (response->drain()) Drain();
  if (response->granted_size() > 0) return absl::ZeroDuration();
  absl::Duration pause = options_.longest_pause;
  if (response->has_next_sync()) {
    pause = std::min(pause, FromProtoDuration(response->next_sync()) / 2);
  }
  // A Sync that was held back has already waited for what a pause would wait for.
  bool waited = services_.clock.Steady() - started >= wait;
  if (request.free() > 0 && waited) return absl::ZeroDuration();
  return request.free() > 0 ? std::min(pause, kShortestPause) : pause;
}

void RunnerLoop::Obey(const v1::RunnerSyncResponse& response) {
  std::lock_guard lock(mutex_);
  for (const v1::HeldLease& lease : response.held()) {
    Conversation::Order order = Conversation::Order::kGoOn;
    if (lease.order() == v1::LEASE_ORDER_CANCEL) order = Conversation::Order::kCancel;
    if (lease.order() == v1::LEASE_ORDER_LOST) order = Conversation::Order::kLost;
    JobStanding standing = StandingOf(response, lease.token(), lease.verified_samples());
    bool news =
        order != Conversation::Order::kGoOn || standing.created || standing.verified_samples > 0;
    if (!news) continue;
    for (Held& held : held_) {
      if (MessageDifferencer::Equals(held.conversation->token(), lease.token())) {
        held.conversation->Give(order);
        held.conversation->Tell(standing);
      }
    }
  }
}

void RunnerLoop::Take(const v1::RunnerSyncResponse& response) {
  std::map<std::string, std::shared_ptr<const v1::JobSpec>> jobs;
  for (const auto& [id, spec] : response.jobs()) {
    jobs[id] = std::make_shared<const v1::JobSpec>(spec);
  }
  for (const v1::Lease& lease : response.granted()) {
    auto job = jobs.find(lease.token().item().job());
    if (job == jobs.end()) {
      Refuse(lease, "the grant came without the spec of its job");
      continue;
    }
    Start(lease, job->second, StandingOf(response, lease.token(), lease.verified_samples()));
  }
}

void RunnerLoop::Start(const v1::Lease& lease, std::shared_ptr<const v1::JobSpec> job,
                       const JobStanding& standing) {
  std::unique_lock lock(mutex_);
  for (const Held& held : held_) {
    if (!held.finished && MessageDifferencer::Equals(held.conversation->token(), lease.token())) {
      return;  // granted twice
    }
  }
  Held& held = held_.emplace_back();
  held.conversation = std::make_unique<Conversation>(services_, lease, std::move(job));
  held.conversation->Tell(standing);
  if (draining_) held.conversation->Give(Conversation::Order::kDrain);
  absl::StatusOr<std::unique_ptr<SmallThread>> thread = SmallThread::Start([this, &held] {
    services_.metrics.conversations.Increment();
    held.conversation->Run();
    services_.metrics.conversations.Decrement();
    std::lock_guard finished_lock(mutex_);
    held.finished = true;
    wake_ = true;
    changed_.notify_all();
  });
  if (!thread.ok()) {
    held_.pop_back();
    lock.unlock();
    Refuse(lease, std::string(thread.status().message()));
    return;
  }
  held.thread = *std::move(thread);
}

void RunnerLoop::Refuse(const v1::Lease& lease, const std::string& reason) {
  LogError("a lease cannot be taken", {{"job", lease.token().item().job()},
                                       {"item", lease.token().item().number()},
                                       {"reason", reason}});
  v1::ReleaseRequest request;
  *request.mutable_token() = lease.token();
  request.set_failure(v1::FAILURE_CLASS_INFRASTRUCTURE);
  request.set_reason(reason);
  CancelToken never;
  absl::Status status = services_.coordinator.Release(request, never);
  if (!status.ok()) LogWarning("lease not given back, it will run out");
}

void RunnerLoop::JoinFinished() {
  std::list<Held> finished;
  {
    std::lock_guard lock(mutex_);
    for (auto held = held_.begin(); held != held_.end();) {
      auto next = std::next(held);
      if (held->finished) finished.splice(finished.end(), held_, held);
      held = next;
    }
  }
  for (Held& held : finished) held.thread.reset();
}

void RunnerLoop::GiveAll(Conversation::Order order) {
  std::lock_guard lock(mutex_);
  for (Held& held : held_) held.conversation->Give(order);
}

void RunnerLoop::Pause(absl::Duration duration) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, absl::ToChronoMicroseconds(duration), [this] { return wake_; });
  wake_ = false;
}

}  // namespace kmosaic
