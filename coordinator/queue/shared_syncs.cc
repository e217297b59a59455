#include "coordinator/queue/shared_syncs.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "coordinator/queue/records.h"

namespace kmosaic {
namespace {

// Syncs that are tried again when there is work; their batches wake the next ones.
constexpr size_t kWakeAtOnce = 32;

}  // namespace

struct SharedSyncs::Round {
  v1::SessionRequest request;
  uint64_t ticket = 0;
  std::shared_ptr<QueueSession> session;
  TaskQueue::DoneExchange done;
  absl::Duration until;
  // The calls beside the sync were answered.
  bool calls_answered = false;
  // Guarded by the lock of SharedSyncs: the caller is gone; a later Sync of its runner came;
  // there is an order that its parts may have missed.
  bool ended = false;
  bool superseded = false;
  bool ordered = false;
  int sent = 0;

  // Of the present sending.
  bool renew = true;
  std::vector<std::optional<v1::SessionRequest>> parts;
  std::vector<uint32_t> given;
  // Shard of each held lease, step, completion and release, in the order of the request.
  std::vector<size_t> held_at;
  std::vector<size_t> step_at;
  std::vector<size_t> completion_at;
  std::vector<size_t> release_at;
  // Guards the answers; the last one to come goes on alone.
  std::mutex mutex;
  size_t open ABSL_GUARDED_BY(mutex) = 0;
  std::vector<absl::StatusOr<QueueShard::Part>> answers;

  v1::SessionResponse response;
  bool urgent = false;

  bool has_calls() const {
    return request.steps_size() + request.completions_size() + request.releases_size() > 0;
  }
  bool wants_work() const {
    return request.has_sync() && request.sync().free() > 0 && !request.sync().draining();
  }
  const std::string& runner() const { return request.sync().runner(); }
};

SharedSyncs::SharedSyncs(const QueueRules& rules, const Clock& clock,
                         std::vector<QueueShard*> shards, Route route)
    : rules_(rules),
      clock_(clock),
      shards_(std::move(shards)),
      route_(std::move(route)),
      share_(rules.ageing_grants) {}

void SharedSyncs::Exchange(v1::SessionRequest request, uint64_t ticket,
                           std::shared_ptr<QueueSession> session, TaskQueue::DoneExchange done) {
  auto round = std::make_shared<Round>();
  round->request = std::move(request);
  round->ticket = ticket;
  round->session = std::move(session);
  round->done = std::move(done);
  absl::Duration wait =
      std::min(FromProtoDuration(round->request.sync().wait()), rules_.sync_interval);
  round->until = clock_.Steady() + wait;
  std::vector<RoundPtr> earlier;
  {
    std::lock_guard lock(mutex_);
    if (round->request.has_sync()) {
      auto of_runner = [&](const Round& each) { return each.runner() == round->runner(); };
      for (const RoundPtr& each : open_) each->superseded |= of_runner(*each);
      earlier = TakeHeld(of_runner, held_.size());
    }
    Divide(*round, true);
    open_.insert(round);
  }
  EndAll(earlier, absl::AbortedError("a later Sync of the same runner came in"));
  Send(round);
}

void SharedSyncs::Divide(Round& round, bool renew) {
  const v1::SessionRequest& whole = round.request;
  round.renew = renew;
  round.parts.assign(shards_.size(), std::nullopt);
  round.given.assign(shards_.size(), 0);
  auto part = [&](size_t shard) -> v1::SessionRequest& {
    if (!round.parts[shard].has_value()) {
      round.parts[shard].emplace();
      round.parts[shard]->set_id(whole.id());
    }
    return *round.parts[shard];
  };
  if (renew) {
    for (const v1::RecordStepRequest& step : whole.steps()) {
      round.step_at.push_back(route_(step.token().item().job()));
      *part(round.step_at.back()).add_steps() = step;
    }
    for (const v1::CompleteRequest& completion : whole.completions()) {
      round.completion_at.push_back(route_(completion.token().item().job()));
      *part(round.completion_at.back()).add_completions() = completion;
    }
    for (const v1::ReleaseRequest& release : whole.releases()) {
      round.release_at.push_back(route_(release.token().item().job()));
      *part(round.release_at.back()).add_releases() = release;
    }
  }
  if (!whole.has_sync()) return;
  v1::RunnerSyncRequest bare = whole.sync();
  bare.clear_held();
  // Every shard hears of the runner, though it may hold nothing there.
  for (size_t shard = 0; shard < shards_.size(); ++shard) *part(shard).mutable_sync() = bare;
  round.held_at.clear();
  for (const v1::LeaseToken& token : whole.sync().held()) {
    round.held_at.push_back(route_(token.item().job()));
    *part(round.held_at.back()).mutable_sync()->add_held() = token;
  }
  if (!round.wants_work()) return;
  uint32_t places = std::min(whole.sync().free(), rules_.max_grants);
  for (uint32_t i = 0; i < places; ++i) {
    std::optional<uint64_t> shard = share_.Pick();
    if (!shard.has_value()) break;
    share_.Charge(*shard);
    ++round.given[*shard];
  }
}

void SharedSyncs::Send(const RoundPtr& round) {
  ++round->sent;
  round->answers.assign(shards_.size(), QueueShard::Part());
  std::vector<std::pair<size_t, v1::SessionRequest>> parts;
  for (size_t shard = 0; shard < shards_.size(); ++shard) {
    if (round->parts[shard].has_value()) {
      parts.emplace_back(shard, *std::move(round->parts[shard]));
    }
  }
  {
    std::lock_guard lock(round->mutex);
    round->open = parts.size();
  }
  if (parts.empty()) Finish(round);
  for (auto& [shard, part] : parts) {
    std::shared_ptr<KnownJobs> known =
        round->session == nullptr ? nullptr : round->session->known_jobs[shard];
    shards_[shard]->PostPart(std::move(part), round->given[shard], round->renew, std::move(known),
                             [this, round, at = shard](absl::StatusOr<QueueShard::Part> answer) {
                               Took(round, at, std::move(answer));
                             });
  }
}

void SharedSyncs::Took(const RoundPtr& round, size_t shard, absl::StatusOr<QueueShard::Part> part) {
  {
    std::lock_guard lock(round->mutex);
    round->answers[shard] = std::move(part);
    if (--round->open > 0) return;
  }
  Finish(round);
}

void SharedSyncs::TakeParts(Round& round) {
  v1::SessionResponse& whole = round.response;
  whole.set_id(round.request.id());
  std::vector<int> next(shards_.size(), 0);
  auto in_order = [&](const std::vector<size_t>& at, auto take) {
    std::fill(next.begin(), next.end(), 0);
    for (size_t shard : at) take(round.answers[shard]->response, next[shard]++);
  };
  if (round.renew) {
    in_order(round.step_at, [&](v1::SessionResponse& part, int i) {
      *whole.add_steps() = std::move(*part.mutable_steps(i));
    });
    in_order(round.completion_at, [&](v1::SessionResponse& part, int i) {
      *whole.add_completions() = std::move(*part.mutable_completions(i));
    });
    in_order(round.release_at, [&](v1::SessionResponse& part, int i) {
      *whole.add_releases() = std::move(*part.mutable_releases(i));
    });
  }
  if (!round.request.has_sync()) return;
  whole.mutable_sync_status()->set_code(0);
  for (const auto& answer : round.answers) {
    const v1::CallStatus& status = answer->response.sync_status();
    if (status.code() != 0) *whole.mutable_sync_status() = status;
  }
  whole.clear_sync();
  v1::RunnerSyncResponse& sync = *whole.mutable_sync();
  if (whole.sync_status().code() == 0) {
    in_order(round.held_at, [&](v1::SessionResponse& part, int i) {
      *sync.add_held() = std::move(*part.mutable_sync()->mutable_held(i));
    });
  }
  size_t bytes = 0;
  for (size_t shard = 0; shard < shards_.size(); ++shard) {
    v1::RunnerSyncResponse& part = *round.answers[shard]->response.mutable_sync();
    round.urgent |= round.answers[shard]->urgent;
    if (part.granted().empty()) continue;
    bytes += part.ByteSizeLong();
    bool fits = bytes <= rules_.max_grant_bytes || sync.granted().empty();
    if (!fits || whole.sync_status().code() != 0) {
      HandBack(round, shard, part);
      continue;
    }
    for (v1::Lease& lease : *part.mutable_granted()) *sync.add_granted() = std::move(lease);
    for (auto& [id, spec] : *part.mutable_jobs()) (*sync.mutable_jobs())[id] = std::move(spec);
  }
  *sync.mutable_next_sync() = ToProtoDuration(rules_.sync_interval);
}

void SharedSyncs::HandBack(const Round& round, size_t shard, const v1::RunnerSyncResponse& sync) {
  auto releases = std::make_shared<std::vector<v1::ReleaseRequest>>();
  for (const v1::Lease& lease : sync.granted()) {
    v1::ReleaseRequest& release = releases->emplace_back();
    *release.mutable_token() = lease.token();
    release.set_handed_back(true);
  }
  std::vector<std::string> unsent;
  for (const auto& [id, spec] : sync.jobs()) unsent.push_back(id);
  std::shared_ptr<KnownJobs> known =
      round.session == nullptr ? nullptr : round.session->known_jobs[shard];
  QueueShard* to = shards_[shard];
  to->Post(
      [to, releases, unsent, known](const StepContext& context,
                                    Effects& effects) -> QueueShard::Reply {
        for (const v1::ReleaseRequest& release : *releases) {
          static_cast<void>(to->sequencer().Release(release, context, effects));
        }
        for (const std::string& job : unsent) {
          if (known != nullptr) known->erase(job);
        }
        return nullptr;
      },
      [](const absl::Status&) {});
}

void SharedSyncs::Finish(const RoundPtr& round) {
  for (const auto& answer : round->answers) {
    if (answer.ok()) continue;
    {
      std::lock_guard lock(mutex_);
      open_.erase(round);
    }
    round->done(answer.status(), true);
    return;
  }
  TakeParts(*round);
  {
    std::lock_guard lock(mutex_);
    for (size_t shard = 0; shard < shards_.size(); ++shard) {
      auto granted = static_cast<uint32_t>(std::count_if(
          round->response.sync().granted().begin(), round->response.sync().granted().end(),
          [&](const v1::Lease& lease) { return route_(lease.token().item().job()) == shard; }));
      share_.Refund(shard, round->given[shard] - std::min(granted, round->given[shard]));
    }
  }
  bool waits = round->request.has_sync() && round->response.sync_status().code() == 0 &&
               round->response.sync().granted().empty() && !round->urgent;
  if (waits && clock_.Steady() < round->until) {
    if (round->has_calls() && !round->calls_answered) {
      v1::SessionResponse calls = round->response;
      calls.clear_sync();
      calls.clear_sync_status();
      round->calls_answered = true;
      round->done(std::move(calls), false);
    }
    Hold(round);
    return;
  }
  {
    std::lock_guard lock(mutex_);
    open_.erase(round);
  }
  AnswerSync(*round);
}

void SharedSyncs::AnswerSync(Round& round) {
  v1::SessionResponse response = std::move(round.response);
  if (round.calls_answered) {
    response.clear_steps();
    response.clear_completions();
    response.clear_releases();
  }
  round.done(std::move(response), true);
}

void SharedSyncs::Hold(const RoundPtr& round) {
  absl::Status end;
  {
    std::lock_guard lock(mutex_);
    bool missed = share_.Pick().has_value() && round->wants_work() &&
                  round->sent <= static_cast<int>(shards_.size());
    if (round->ended || round->superseded || stopped_) {
      open_.erase(round);
      end = stopped_       ? absl::UnavailableError("the coordinator is stopping")
            : round->ended ? absl::CancelledError("the caller is gone")
                           : absl::AbortedError("a later Sync of the same runner came in");
    } else if (std::exchange(round->ordered, false) || missed) {
      // Something happened on a shard after it had answered.
      Divide(*round, false);
    } else {
      open_.erase(round);
      held_.push_back(round);
      return;
    }
  }
  if (end.ok()) {
    Send(round);
  } else {
    EndAll({round}, end);
  }
}

std::vector<SharedSyncs::RoundPtr> SharedSyncs::TakeHeld(
    const std::function<bool(const Round&)>& which, size_t limit) {
  std::vector<RoundPtr> taken;
  for (auto each = held_.begin(); each != held_.end() && taken.size() < limit;) {
    if (which(**each)) {
      taken.push_back(std::move(*each));
      each = held_.erase(each);
    } else {
      ++each;
    }
  }
  return taken;
}

void SharedSyncs::EndAll(const std::vector<RoundPtr>& rounds, const absl::Status& status) {
  for (const RoundPtr& round : rounds) {
    if (absl::IsUnavailable(status)) {
      round->done(status, true);
      continue;
    }
    v1::SessionResponse response;
    response.set_id(round->request.id());
    response.mutable_sync_status()->set_code(static_cast<int32_t>(status.code()));
    response.mutable_sync_status()->set_message(std::string(status.message()));
    round->done(std::move(response), true);
  }
}

void SharedSyncs::EndSync(uint64_t ticket) {
  std::vector<RoundPtr> ended;
  {
    std::lock_guard lock(mutex_);
    auto of_ticket = [&](const Round& round) { return round.ticket == ticket; };
    for (const RoundPtr& round : open_) round->ended |= of_ticket(*round);
    ended = TakeHeld(of_ticket, held_.size());
  }
  EndAll(ended, absl::CancelledError("the caller is gone"));
}

void SharedSyncs::EndSession(const std::shared_ptr<QueueSession>& session) {
  std::vector<RoundPtr> ended;
  {
    std::lock_guard lock(mutex_);
    auto of_session = [&](const Round& round) { return round.session == session; };
    for (const RoundPtr& round : open_) round->ended |= of_session(*round);
    ended = TakeHeld(of_session, held_.size());
  }
  EndAll(ended, absl::CancelledError("the session is over"));
}

void SharedSyncs::OnBatch(size_t shard, const FairShare::Top& work,
                          const std::set<std::string>& ordered) {
  absl::Duration now = clock_.Steady();
  std::vector<RoundPtr> over;
  std::vector<RoundPtr> again;
  {
    std::lock_guard lock(mutex_);
    if (stopped_) return;
    share_.Update(shard, work.weight > 0, work.priority, work.weight);
    over = TakeHeld([&](const Round& round) { return round.until <= now; }, held_.size());
    if (!ordered.empty()) {
      for (const RoundPtr& round : open_) round->ordered |= ordered.count(round->runner()) > 0;
      again = TakeHeld([&](const Round& round) { return ordered.count(round.runner()) > 0; },
                       held_.size());
    }
    if (work.weight > 0) {
      std::vector<RoundPtr> more =
          TakeHeld([](const Round& round) { return round.wants_work(); }, kWakeAtOnce);
      again.insert(again.end(), more.begin(), more.end());
    }
    for (const RoundPtr& round : again) {
      round->sent = 0;
      Divide(*round, false);
      open_.insert(round);
    }
  }
  for (const RoundPtr& round : over) AnswerSync(*round);
  for (const RoundPtr& round : again) Send(round);
}

void SharedSyncs::Stop(const absl::Status& status) {
  std::vector<RoundPtr> ended;
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
    ended = TakeHeld([](const Round&) { return true; }, held_.size());
  }
  EndAll(ended, status);
}

}  // namespace kmosaic
