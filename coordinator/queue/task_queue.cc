#include "coordinator/queue/task_queue.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "coordinator/queue/job_list.h"
#include "coordinator/queue/job_routes.h"
#include "coordinator/queue/queue_shard.h"
#include "coordinator/queue/shared_syncs.h"
#include "coordinator/queue/staged_submit.h"
#include "coordinator/store/drain_orders.h"

namespace kmosaic {
namespace {

// Gathers the answer of each shard; the last one calls `done` with all, or with an error.
template <typename T>
class Gather {
 public:
  using Done = std::function<void(absl::StatusOr<std::vector<T>>)>;
  Gather(size_t shards, Done done) : answers_(shards), open_(shards), done_(std::move(done)) {}

  void Take(size_t shard, absl::StatusOr<T> answer) {
    {
      std::lock_guard lock(mutex_);
      if (answer.ok()) {
        answers_[shard] = *std::move(answer);
      } else {
        status_ = answer.status();
      }
      if (--open_ > 0) return;
    }
    if (status_.ok()) {
      done_(std::move(answers_));
    } else {
      done_(status_);
    }
  }

 private:
  std::mutex mutex_;
  std::vector<T> answers_;
  size_t open_;
  absl::Status status_;
  const Done done_;
};

}  // namespace

struct TaskQueue::Impl {
  Impl(size_t submit_shards, size_t stores)
      : routes(std::min(submit_shards, stores)), several(stores > 1) {}

  size_t Route(const std::string& job) const { return several ? routes.Of(job) : 0; }
  QueueShard& ShardOf(const std::string& job) const { return *shards[Route(job)]; }

  // A verb on a job, on the shard that has it.
  template <typename T, typename Verb>
  void OnJob(const std::string& job, Done<T> done, Verb verb) {
    QueueShard& shard = ShardOf(job);
    shard.PostVerb<T>(std::move(done),
                      [&shard, verb = std::move(verb)](const StepContext& context,
                                                       Effects& effects) -> absl::StatusOr<T> {
                        return verb(shard.sequencer(), context, effects);
                      });
  }
  // A verb of the holder of a lease.
  template <typename Request>
  void OnLease(absl::Status (Sequencer::*verb)(const Request&, const StepContext&, Effects&),
               Request request, DoneStatus done) {
    QueueShard& shard = ShardOf(request.token().item().job());
    auto shared = std::make_shared<const Request>(std::move(request));
    shard.PostStatusVerb(std::move(done),
                         [&shard, verb, shared](const StepContext& context, Effects& effects) {
                           return (shard.sequencer().*verb)(*shared, context, effects);
                         });
  }
  // The same question to every shard.
  template <typename T, typename Ask>
  void OnAll(typename Gather<T>::Done done, Ask ask) {
    auto gather = std::make_shared<Gather<T>>(shards.size(), std::move(done));
    for (size_t i = 0; i < shards.size(); ++i) {
      QueueShard& shard = *shards[i];
      shard.PostVerb<T>(
          [gather, i](absl::StatusOr<T> answer) { gather->Take(i, std::move(answer)); },
          [&shard, i, ask](const StepContext&, Effects&) -> absl::StatusOr<T> {
            return ask(shard.sequencer(), i);
          });
    }
  }

  JobRoutes routes;
  const bool several;
  std::vector<std::unique_ptr<QueueShard>> shards;
  // Null with one shard, which then does it alone.
  std::unique_ptr<SharedSyncs> syncs;
  std::atomic<uint64_t> next_ticket = 1;
};

TaskQueue::TaskQueue(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

absl::StatusOr<std::unique_ptr<TaskQueue>> TaskQueue::Start(const TaskQueueOptions& options,
                                                            const std::vector<TaskStore*>& stores,
                                                            size_t shards, const Clock& clock,
                                                            QueueMetrics& metrics) {
  auto impl = std::make_unique<Impl>(shards, stores.size());
  // What holds for the whole queue is divided.
  TaskQueueOptions each = options;
  each.rules.max_open_items /= stores.size();
  each.rules.max_grant_bytes /= stores.size();
  std::vector<QueueShard*> all;
  for (TaskStore* store : stores) {
    KMOSAIC_ASSIGN_OR_RETURN(std::unique_ptr<QueueShard> shard,
                             QueueShard::Load(each, *store, clock, metrics));
    if (impl->several) {
      for (const auto& [job, request] : shard->sequencer().JobIds()) {
        impl->routes.Add(job, request, impl->shards.size());
      }
    }
    all.push_back(shard.get());
    impl->shards.push_back(std::move(shard));
  }
  if (impl->several) {
    impl->syncs = std::make_unique<SharedSyncs>(
        options.rules, clock, all,
        [running = impl.get()](const std::string& job) { return running->Route(job); });
  }
  for (size_t i = 0; i < all.size(); ++i) {
    QueueShard::OnBatch on_batch;
    if (impl->several) {
      on_batch = [syncs = impl->syncs.get(), i](const FairShare::Top& work,
                                                const std::set<std::string>& ordered) {
        syncs->OnBatch(i, work, ordered);
      };
    }
    all[i]->Begin(std::move(on_batch));
  }
  return std::unique_ptr<TaskQueue>(new TaskQueue(std::move(impl)));
}

absl::StatusOr<std::unique_ptr<TaskQueue>> TaskQueue::Start(const TaskQueueOptions& options,
                                                            TaskStore& store, const Clock& clock,
                                                            QueueMetrics& metrics) {
  return Start(options, {&store}, 1, clock, metrics);
}

TaskQueue::~TaskQueue() {
  if (impl_->syncs != nullptr) {
    impl_->syncs->Stop(absl::UnavailableError("the coordinator is stopping; repeat the call"));
  }
  // All threads end before any shard is gone: they call each other.
  for (const auto& shard : impl_->shards) shard->Stop();
}

const StoreIdentity& TaskQueue::identity() const { return impl_->shards[0]->identity(); }

const TaskStore& TaskQueue::StoreOf(const std::string& job) const {
  return impl_->ShardOf(job).store();
}

std::vector<const TaskStore*> TaskQueue::stores() const {
  std::vector<const TaskStore*> stores;
  for (const auto& shard : impl_->shards) stores.push_back(&shard->store());
  return stores;
}

void TaskQueue::Submit(Submission submission, Done<v1::SubmitResponse> given) {
  size_t at =
      impl_->several ? impl_->routes.ForSubmission(submission.request_id, RandomUint64()) : 0;
  QueueShard& shard = *impl_->shards[at];
  Done<v1::SubmitResponse> done = std::move(given);
  if (impl_->several) {
    done = [impl = impl_.get(), at, request = submission.request_id,
            done](absl::StatusOr<v1::SubmitResponse> response) {
      if (response.ok()) impl->routes.Add(response->job().id(), request, at);
      done(std::move(response));
    };
  }
  auto shared = std::make_shared<const Submission>(std::move(submission));
  if (shared->task_bytes > shard.options().stage_bytes) {
    SubmitInPieces(shard, std::move(shared), std::move(done));
    return;
  }
  shard.PostVerb<v1::SubmitResponse>(
      std::move(done), [&shard, shared](const StepContext& context, Effects& effects) {
        return shard.sequencer().Submit(*shared, context, effects);
      });
}

void TaskQueue::Extend(Extension extension, Done<v1::ExtendJobResponse> done) {
  auto shared = std::make_shared<const Extension>(std::move(extension));
  impl_->OnJob<v1::ExtendJobResponse>(
      shared->job, std::move(done),
      [shared](Sequencer& sequencer, const StepContext& context, Effects& effects) {
        return sequencer.Extend(*shared, context, effects);
      });
}

void TaskQueue::GetJob(const std::string& id, Done<v1::Job> done) {
  impl_->OnJob<v1::Job>(
      id, std::move(done),
      [id](Sequencer& sequencer, const StepContext&, Effects&) { return sequencer.Get(id); });
}

void TaskQueue::ListJobs(const v1::ListJobsRequest& request, Done<v1::ListJobsResponse> done) {
  auto before = ParseJobPage(request.page_token(), impl_->shards.size());
  if (!before.ok()) {
    done(before.status());
    return;
  }
  size_t size = JobPageSize(request.page_size());
  impl_->OnAll<NumberedJobs>(
      [done, before = *before, size](absl::StatusOr<std::vector<NumberedJobs>> lists) {
        if (lists.ok()) {
          done(MergeJobs(*std::move(lists), before, size));
        } else {
          done(lists.status());
        }
      },
      [before = *before, size](const Sequencer& sequencer, size_t shard) {
        return sequencer.ListBefore(before[shard], size + 1);
      });
}

void TaskQueue::Cancel(const std::string& id, Done<v1::Job> done) {
  impl_->OnJob<v1::Job>(id, std::move(done),
                        [id](Sequencer& sequencer, const StepContext& context, Effects& effects) {
                          return sequencer.Cancel(id, context, effects);
                        });
}

void TaskQueue::Pause(const std::string& id, Done<v1::Job> done) {
  impl_->OnJob<v1::Job>(id, std::move(done),
                        [id](Sequencer& sequencer, const StepContext& context, Effects& effects) {
                          return sequencer.Pause(id, context, effects);
                        });
}

void TaskQueue::Resume(const std::string& id, Done<v1::Job> done) {
  impl_->OnJob<v1::Job>(id, std::move(done),
                        [id](Sequencer& sequencer, const StepContext& context, Effects& effects) {
                          return sequencer.Resume(id, context, effects);
                        });
}

void TaskQueue::Retry(const v1::RetryJobRequest& request, Done<v1::RetryJobResponse> done) {
  impl_->OnJob<v1::RetryJobResponse>(
      request.id(), std::move(done),
      [request](Sequencer& sequencer, const StepContext& context, Effects& effects) {
        return sequencer.Retry(request, context, effects);
      });
}

void TaskQueue::Purge(const v1::PurgeDeadLettersRequest& request,
                      Done<v1::PurgeDeadLettersResponse> done) {
  impl_->OnJob<v1::PurgeDeadLettersResponse>(
      request.id(), std::move(done),
      [request](Sequencer& sequencer, const StepContext& context, Effects& effects) {
        return sequencer.Purge(request, context, effects);
      });
}

void TaskQueue::Delete(const std::string& id, Done<v1::Job> given) {
  Done<v1::Job> done = [impl = impl_.get(), given = std::move(given)](absl::StatusOr<v1::Job> job) {
    if (job.ok()) impl->routes.Remove(job->id());
    given(std::move(job));
  };
  impl_->OnJob<v1::Job>(id, std::move(done),
                        [id](Sequencer& sequencer, const StepContext&, Effects& effects) {
                          return sequencer.Delete(id, effects);
                        });
}

uint64_t TaskQueue::Sync(v1::RunnerSyncRequest request, Done<v1::RunnerSyncResponse> done) {
  uint64_t ticket = impl_->next_ticket++;
  if (impl_->syncs == nullptr) {
    impl_->shards[0]->PostSync(ticket, std::move(request), std::move(done));
    return ticket;
  }
  v1::SessionRequest message;
  *message.mutable_sync() = std::move(request);
  impl_->syncs->Exchange(
      std::move(message), ticket, nullptr,
      [done = std::move(done)](absl::StatusOr<v1::SessionResponse> response, bool) {
        if (!response.ok()) {
          done(response.status());
        } else if (const v1::CallStatus& status = response->sync_status(); status.code() != 0) {
          done(absl::Status(static_cast<absl::StatusCode>(status.code()), status.message()));
        } else {
          done(std::move(*response->mutable_sync()));
        }
      });
  return ticket;
}

void TaskQueue::CancelSync(uint64_t ticket) {
  if (impl_->syncs == nullptr) {
    impl_->shards[0]->EndSync(ticket);
  } else {
    impl_->syncs->EndSync(ticket);
  }
}

std::shared_ptr<QueueSession> TaskQueue::NewSession() const {
  auto session = std::make_shared<QueueSession>();
  for (size_t i = 0; i < impl_->shards.size(); ++i) {
    session->known_jobs.push_back(std::make_shared<std::set<std::string>>());
  }
  return session;
}

void TaskQueue::Exchange(v1::SessionRequest request, std::shared_ptr<QueueSession> session,
                         DoneExchange given) {
  // When the queue stops, a message and its Sync that waits both say so.
  DoneExchange done = [given = std::move(given), over = std::make_shared<std::atomic<bool>>(false)](
                          absl::StatusOr<v1::SessionResponse> response, bool last) {
    if (last ? over->exchange(true) : over->load()) return;
    given(std::move(response), last);
  };
  if (impl_->syncs == nullptr) {
    impl_->shards[0]->PostExchange(std::move(request), session->known_jobs[0], std::move(done));
  } else {
    impl_->syncs->Exchange(std::move(request), 0, std::move(session), std::move(done));
  }
}

void TaskQueue::EndSession(std::shared_ptr<QueueSession> session) {
  if (impl_->syncs == nullptr) {
    impl_->shards[0]->EndSyncs(session->known_jobs[0]);
  } else {
    impl_->syncs->EndSession(session);
  }
}

void TaskQueue::RecordStep(v1::RecordStepRequest request, DoneStatus done) {
  impl_->OnLease(&Sequencer::RecordStep, std::move(request), std::move(done));
}

void TaskQueue::Complete(v1::CompleteRequest request, DoneStatus done) {
  impl_->OnLease(&Sequencer::Complete, std::move(request), std::move(done));
}

void TaskQueue::Release(v1::ReleaseRequest request, DoneStatus done) {
  impl_->OnLease(&Sequencer::Release, std::move(request), std::move(done));
}

void TaskQueue::CheckLease(const v1::LeaseToken& token, Done<LeaseOwner> done) {
  impl_->OnJob<LeaseOwner>(
      token.item().job(), std::move(done),
      [token](Sequencer& sequencer, const StepContext&,
              Effects& effects) -> absl::StatusOr<LeaseOwner> {
        LeaseOwner owner;
        KMOSAIC_RETURN_IF_ERROR(sequencer.CheckLease(token, &owner.runner, &owner.spec, effects));
        return owner;
      });
}

void TaskQueue::KeepDrainOrder(const std::string& worker, const std::string& incarnation,
                               DoneStatus done) {
  QueueShard& shard = *impl_->shards[0];
  shard.PostStatusVerb(
      std::move(done), [&shard, worker, incarnation](const StepContext& context, Effects& effects) {
        return PutDrainOrder(shard.store(), worker, incarnation, context.wall, effects.batch);
      });
}

void TaskQueue::ListRunners(Done<std::vector<v1::Runner>> done) {
  using Runners = std::vector<v1::Runner>;
  impl_->OnAll<Runners>(
      [done = std::move(done)](absl::StatusOr<std::vector<Runners>> lists) {
        if (!lists.ok()) {
          done(lists.status());
          return;
        }
        // Every shard hears of each runner, with what concerns it.
        std::map<std::string, v1::Runner> runners;
        for (Runners& list : *lists) {
          for (v1::Runner& runner : list) {
            auto [known, added] = runners.emplace(runner.id(), runner);
            if (added) continue;
            known->second.set_held(known->second.held() + runner.held());
          }
        }
        Runners all;
        for (auto& [id, runner] : runners) all.push_back(std::move(runner));
        done(std::move(all));
      },
      [](const Sequencer& sequencer, size_t) { return sequencer.Runners(); });
}

std::unique_ptr<TaskQueue::Subscription> TaskQueue::Subscribe(const std::string& job,
                                                              std::function<void()> on_event) {
  return impl_->ShardOf(job).subscriptions().Add(job, std::move(on_event));
}

void TaskQueue::Wake() {
  for (const auto& shard : impl_->shards) shard->Wake();
}

}  // namespace kmosaic
