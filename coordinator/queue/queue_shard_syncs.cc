// What runners say to a shard: Syncs, and messages of sessions.
#include <algorithm>

#include "common/base/status.h"
#include "common/log/log.h"
#include "coordinator/queue/queue_shard.h"
#include "coordinator/queue/records.h"

namespace kmosaic {
namespace {

void SetStatus(const absl::Status& status, v1::CallStatus& wire) {
  wire.set_code(static_cast<int32_t>(status.code()));
  wire.set_message(std::string(status.message()));
}

}  // namespace

absl::StatusOr<v1::RunnerSyncResponse> QueueShard::Assemble(const SyncResult& result,
                                                            KnownJobs* session) {
  absl::StatusOr<v1::RunnerSyncResponse> response = assembler_.Answer(result, session);
  if (!response.ok()) {
    LogError("granted leases cannot be read back from the store",
             {{"error", response.status().ToString()}});
    return response;
  }
  *response->mutable_next_sync() = ToProtoDuration(options_.rules.sync_interval);
  for (v1::Lease& lease : *response->mutable_granted()) {
    *lease.mutable_ttl() = ToProtoDuration(options_.rules.lease_ttl);
  }
  return response;
}

QueueShard::Reply QueueShard::SyncAnswer(SyncResult result, std::shared_ptr<KnownJobs> session,
                                         Done<v1::RunnerSyncResponse> done) {
  return [this, result = std::move(result), session = std::move(session), done = std::move(done)] {
    done(Assemble(result, session.get()));
  };
}

QueueShard::Reply QueueShard::ApplySync(uint64_t ticket, v1::RunnerSyncRequest request,
                                        std::shared_ptr<KnownJobs> session,
                                        Done<v1::RunnerSyncResponse> done,
                                        const StepContext& context, Effects& effects) {
  absl::StatusOr<SyncResult> result = sequencer_->Sync(request, context, effects);
  if (!result.ok()) return [done, status = result.status()] { done(status); };
  EndParked([&](const Parked& each) { return each.request.runner() == request.runner(); },
            absl::AbortedError("a later Sync of the same runner came in"));
  absl::Duration wait = std::min(FromProtoDuration(request.wait()), options_.rules.sync_interval);
  if (result->urgent || wait <= absl::ZeroDuration()) {
    return SyncAnswer(*std::move(result), std::move(session), std::move(done));
  }
  parked_.push_back(
      {ticket, std::move(request), std::move(done), context.steady + wait, std::move(session)});
  return nullptr;
}

void QueueShard::PostSync(uint64_t ticket, v1::RunnerSyncRequest request,
                          Done<v1::RunnerSyncResponse> done) {
  Fail fail = [done](absl::Status status) { done(std::move(status)); };
  Post(
      [this, ticket, request = std::move(request), done = std::move(done)](
          const StepContext& context, Effects& effects) {
        return ApplySync(ticket, request, nullptr, done, context, effects);
      },
      std::move(fail));
}

void QueueShard::ApplyCalls(const v1::SessionRequest& request, v1::SessionResponse& response,
                            const StepContext& context, Effects& effects) {
  response.set_id(request.id());
  for (const v1::RecordStepRequest& step : request.steps()) {
    SetStatus(sequencer_->RecordStep(step, context, effects), *response.add_steps());
  }
  for (const v1::CompleteRequest& completion : request.completions()) {
    SetStatus(sequencer_->Complete(completion, context, effects), *response.add_completions());
  }
  for (const v1::ReleaseRequest& release : request.releases()) {
    SetStatus(sequencer_->Release(release, context, effects), *response.add_releases());
  }
}

QueueShard::Reply QueueShard::ApplyExchange(const v1::SessionRequest& request,
                                            const std::shared_ptr<KnownJobs>& session,
                                            const TaskQueue::DoneExchange& done,
                                            const StepContext& context, Effects& effects) {
  auto answer = std::make_shared<v1::SessionResponse>();
  ApplyCalls(request, *answer, context, effects);
  bool calls = request.steps_size() + request.completions_size() + request.releases_size() > 0;
  if (!request.has_sync()) return [answer, done] { done(std::move(*answer), true); };
  // Whether the sync waits is known when ApplySync returns.
  auto split = std::make_shared<bool>(false);
  auto synced = [answer, split, done](absl::StatusOr<v1::RunnerSyncResponse> sync) {
    if (absl::IsUnavailable(sync.status())) {
      done(sync.status(), true);
      return;
    }
    v1::SessionResponse response;
    if (*split) {
      response.set_id(answer->id());
    } else {
      response = std::move(*answer);
    }
    SetStatus(sync.status(), *response.mutable_sync_status());
    if (sync.ok()) *response.mutable_sync() = *std::move(sync);
    done(std::move(response), true);
  };
  Reply now = ApplySync(0, request.sync(), session, std::move(synced), context, effects);
  if (now != nullptr || !calls) return now;
  *split = true;
  return [calls_answer = *answer, done] { done(calls_answer, false); };
}

void QueueShard::PostExchange(v1::SessionRequest request, std::shared_ptr<KnownJobs> session,
                              TaskQueue::DoneExchange done) {
  Fail fail = [done](absl::Status status) { done(std::move(status), true); };
  Post([this, session = std::move(session), done = std::move(done),
        request = std::make_shared<const v1::SessionRequest>(std::move(request))](
           const StepContext& context,
           Effects& effects) { return ApplyExchange(*request, session, done, context, effects); },
       std::move(fail));
}

void QueueShard::PostPart(v1::SessionRequest request, uint32_t most, bool renew,
                          std::shared_ptr<KnownJobs> session, Done<Part> done) {
  Fail fail = [done](absl::Status status) { done(std::move(status)); };
  Post(
      [this, most, renew, session = std::move(session), done = std::move(done),
       request = std::make_shared<const v1::SessionRequest>(std::move(request))](
          const StepContext& context, Effects& effects) -> Reply {
        auto part = std::make_shared<Part>();
        ApplyCalls(*request, part->response, context, effects);
        absl::StatusOr<SyncResult> result = SyncResult();
        if (request->has_sync()) {
          result = renew ? sequencer_->Sync(request->sync(), context, effects, most)
                         : sequencer_->Poll(request->sync(), context, effects, most);
        }
        return [this, part, request, session, done, result = std::move(result)] {
          absl::Status status = result.status();
          if (result.ok()) {
            part->urgent = result->urgent;
            absl::StatusOr<v1::RunnerSyncResponse> sync = Assemble(*result, session.get());
            status = sync.status();
            if (sync.ok()) *part->response.mutable_sync() = *std::move(sync);
          }
          if (request->has_sync()) SetStatus(status, *part->response.mutable_sync_status());
          done(std::move(*part));
        };
      },
      std::move(fail));
}

void QueueShard::EndSync(uint64_t ticket) {
  Post(
      [this, ticket](const StepContext&, Effects&) -> Reply {
        EndParked([&](const Parked& each) { return each.ticket == ticket; },
                  absl::CancelledError("the caller is gone"));
        return nullptr;
      },
      [](const absl::Status&) {});
}

void QueueShard::EndSyncs(const std::shared_ptr<KnownJobs>& session) {
  Post(
      [this, session](const StepContext&, Effects&) -> Reply {
        EndParked([&](const Parked& each) { return each.session == session; },
                  absl::CancelledError("the session is over"));
        return nullptr;
      },
      [](const absl::Status&) {});
}

void QueueShard::EndParked(const std::function<bool(const Parked&)>& which,
                           const absl::Status& status) {
  for (auto each = parked_.begin(); each != parked_.end();) {
    if (!which(*each)) {
      ++each;
      continue;
    }
    Answer answer;
    answer.ok = [done = each->done, status] { done(status); };
    answer.fail = std::move(each->done);
    further_answers_.push_back(std::move(answer));
    each = parked_.erase(each);
  }
}

void QueueShard::PollParked(const StepContext& context, Effects& effects,
                            std::vector<Answer>& answers) {
  bool work = sequencer_->HasWork();
  for (auto each = parked_.begin(); each != parked_.end();) {
    bool over = each->until <= context.steady;
    bool may_get = work && each->request.free() > 0 && !each->request.draining();
    if (!over && !may_get && effects.ordered.count(each->request.runner()) == 0) {
      ++each;
      continue;
    }
    absl::StatusOr<SyncResult> result = sequencer_->Poll(each->request, context, effects);
    work = sequencer_->HasWork();
    if (result.ok() && !result->urgent && !over) {
      ++each;
      continue;
    }
    Answer answer;
    answer.fail = [done = each->done](absl::Status status) { done(std::move(status)); };
    if (result.ok()) {
      answer.ok = SyncAnswer(*std::move(result), each->session, std::move(each->done));
    } else {
      answer.ok = [done = std::move(each->done), status = result.status()] { done(status); };
    }
    answers.push_back(std::move(answer));
    each = parked_.erase(each);
  }
}

}  // namespace kmosaic
