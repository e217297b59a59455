#include "coordinator/service/job_service.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "coordinator/queue/reader.h"
#include "coordinator/service/unary_reply.h"
#include "coordinator/service/watch_reactor.h"

namespace kmosaic {
namespace {

constexpr uint32_t kDefaultItemPage = 100;
constexpr uint32_t kMaxItemPage = 1000;
// Items looked at for one page; a filter that few fit gives short pages.
constexpr uint32_t kMaxItemsLookedAt = 100'000;

class SubmitReactor : public grpc::ServerReadReactor<v1::SubmitRequest> {
 public:
  SubmitReactor(const JobService::Options& options, grpc::CallbackServerContext* context,
                TaskQueue& queue, v1::SubmitResponse* response)
      : builder_(options.limits),
        audit_(options.audit),
        context_(context),
        queue_(queue),
        response_(response) {
    StartRead(&request_);
  }

  void OnReadDone(bool ok) override {
    if (ok) {
      if (absl::Status status = builder_.Add(request_); !status.ok()) {
        Finish(ToGrpc(status));
        return;
      }
      request_.Clear();
      StartRead(&request_);
      return;
    }
    // The end of the stream, or of the connection.
    if (context_->IsCancelled()) {
      Finish(grpc::Status::CANCELLED);
      return;
    }
    absl::StatusOr<Submission> submission = builder_.Finish();
    if (!submission.ok()) {
      Finish(ToGrpc(submission.status()));
      return;
    }
    queue_.Submit(*std::move(submission), [this](absl::StatusOr<v1::SubmitResponse> result) {
      if (audit_ != nullptr) {
        std::string job = result.ok() ? result->job().id() : "";
        audit_->Add({context_->peer(), "submit", std::move(job), result.status()});
      }
      if (result.ok()) *response_ = *std::move(result);
      Finish(ToGrpc(result.status()));
    });
  }

  void OnDone() override { delete this; }

 private:
  SubmissionBuilder builder_;
  AuditLog* const audit_;
  grpc::CallbackServerContext* const context_;
  TaskQueue& queue_;
  v1::SubmitResponse* const response_;
  v1::SubmitRequest request_;
};

// One extension at a time: read, make durable, answer.
class ExtendReactor : public grpc::ServerBidiReactor<v1::ExtendJobRequest, v1::ExtendJobResponse> {
 public:
  explicit ExtendReactor(TaskQueue& queue) : queue_(queue) { StartRead(&request_); }

  void OnReadDone(bool ok) override {
    if (!ok) {
      Finish(grpc::Status::OK);
      return;
    }
    absl::StatusOr<Extension> extension = MakeExtension(request_);
    if (!extension.ok()) {
      Finish(ToGrpc(extension.status()));
      return;
    }
    queue_.Extend(*std::move(extension), [this](absl::StatusOr<v1::ExtendJobResponse> result) {
      if (!result.ok()) {
        Finish(ToGrpc(result.status()));
        return;
      }
      response_ = *std::move(result);
      StartWrite(&response_);
    });
  }

  void OnWriteDone(bool ok) override {
    if (!ok) {
      Finish(grpc::Status::CANCELLED);
      return;
    }
    StartRead(&request_);
  }

  void OnDone() override { delete this; }

 private:
  TaskQueue& queue_;
  v1::ExtendJobRequest request_;
  v1::ExtendJobResponse response_;
};

absl::StatusOr<v1::ListItemsResponse> ReadItems(const TaskStore& store,
                                                const v1::ListItemsRequest& request) {
  uint32_t first = 0;
  if (!request.page_token().empty() && !absl::SimpleAtoi(request.page_token(), &first)) {
    return absl::InvalidArgumentError(absl::StrCat("page_token '", request.page_token(),
                                                   "' is not one that a ListItems returned"));
  }
  uint32_t size =
      request.page_size() == 0 ? kDefaultItemPage : std::min(request.page_size(), kMaxItemPage);
  std::set<int> states(request.states().begin(), request.states().end());
  KMOSAIC_ASSIGN_OR_RETURN(JobReader reader, JobReader::Open(store, request.job()));
  v1::ListItemsResponse response;
  KMOSAIC_RETURN_IF_ERROR(
      reader.ForEachItem(first, [&](const v1::Item& item) -> absl::StatusOr<bool> {
        if (static_cast<uint32_t>(response.items_size()) == size ||
            item.id().number() - first == kMaxItemsLookedAt) {
          response.set_next_page_token(absl::StrCat(item.id().number()));
          return false;
        }
        if (states.empty() || states.count(item.state()) > 0) *response.add_items() = item;
        return true;
      }));
  return response;
}

absl::StatusOr<v1::ItemDetail> ReadDetail(const TaskStore& store, const v1::ItemId& id) {
  KMOSAIC_ASSIGN_OR_RETURN(JobReader reader, JobReader::Open(store, id.job()));
  v1::ItemDetail detail;
  KMOSAIC_ASSIGN_OR_RETURN(*detail.mutable_item(), reader.ReadItem(id.number(), true));
  KMOSAIC_ASSIGN_OR_RETURN(*detail.mutable_task(), reader.ReadTask(id.number()));
  KMOSAIC_ASSIGN_OR_RETURN(std::vector<v1::Step> steps, reader.ReadSteps(id.number()));
  for (v1::Step& step : steps) *detail.add_steps() = std::move(step);
  return detail;
}

}  // namespace

JobService::JobService(Options options, TaskQueue& queue)
    : options_(std::move(options)), queue_(queue) {}

void JobService::FillUnsatisfiable(v1::Job& job) const {
  if (!options_.unsatisfiable) return;
  if (job.state() != v1::JOB_STATE_RUNNING && job.state() != v1::JOB_STATE_PAUSED) return;
  job.set_unsatisfiable(options_.unsatisfiable(job.spec()));
}

grpc::ServerReadReactor<v1::SubmitRequest>* JobService::Submit(grpc::CallbackServerContext* context,
                                                               v1::SubmitResponse* response) {
  return new SubmitReactor(options_, context, queue_, response);
}

grpc::ServerBidiReactor<v1::ExtendJobRequest, v1::ExtendJobResponse>* JobService::Extend(
    grpc::CallbackServerContext*) {
  return new ExtendReactor(queue_);
}

grpc::ServerUnaryReactor* JobService::Get(grpc::CallbackServerContext* context,
                                          const v1::JobRequest* request, v1::Job* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  queue_.GetJob(request->id(), [this, reactor, response](absl::StatusOr<v1::Job> job) {
    if (job.ok()) {
      FillUnsatisfiable(*job);
      *response = *std::move(job);
    }
    reactor->Finish(ToGrpc(job.status()));
  });
  return reactor;
}

grpc::ServerUnaryReactor* JobService::List(grpc::CallbackServerContext* context,
                                           const v1::ListJobsRequest* request,
                                           v1::ListJobsResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  queue_.ListJobs(*request, [this, reactor, response](absl::StatusOr<v1::ListJobsResponse> list) {
    if (list.ok()) {
      for (v1::Job& job : *list->mutable_jobs()) FillUnsatisfiable(job);
      *response = *std::move(list);
    }
    reactor->Finish(ToGrpc(list.status()));
  });
  return reactor;
}

grpc::ServerUnaryReactor* JobService::Cancel(grpc::CallbackServerContext* context,
                                             const v1::JobRequest* request, v1::Job* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  queue_.Cancel(request->id(), Audited(options_.audit, *context, "cancel", request->id(),
                                       ReplyTo(reactor, response)));
  return reactor;
}

grpc::ServerUnaryReactor* JobService::Pause(grpc::CallbackServerContext* context,
                                            const v1::JobRequest* request, v1::Job* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  queue_.Pause(request->id(), Audited(options_.audit, *context, "pause", request->id(),
                                      ReplyTo(reactor, response)));
  return reactor;
}

grpc::ServerUnaryReactor* JobService::Resume(grpc::CallbackServerContext* context,
                                             const v1::JobRequest* request, v1::Job* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  queue_.Resume(request->id(), Audited(options_.audit, *context, "resume", request->id(),
                                       ReplyTo(reactor, response)));
  return reactor;
}

grpc::ServerUnaryReactor* JobService::Retry(grpc::CallbackServerContext* context,
                                            const v1::RetryJobRequest* request,
                                            v1::RetryJobResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  queue_.Retry(*request, Audited(options_.audit, *context, "retry", request->id(),
                                 ReplyTo(reactor, response)));
  return reactor;
}

grpc::ServerUnaryReactor* JobService::Delete(grpc::CallbackServerContext* context,
                                             const v1::JobRequest* request, v1::Job* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  queue_.Delete(request->id(), Audited(options_.audit, *context, "delete", request->id(),
                                       ReplyTo(reactor, response)));
  return reactor;
}

grpc::ServerWriteReactor<v1::JobEvent>* JobService::Watch(grpc::CallbackServerContext*,
                                                          const v1::WatchJobRequest* request) {
  return new WatchReactor(queue_, watch_executor_, request->id(), request->from_seq());
}

grpc::ServerUnaryReactor* JobService::ListItems(grpc::CallbackServerContext* context,
                                                const v1::ListItemsRequest* request,
                                                v1::ListItemsResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  ReplyTo(reactor, response)(ReadItems(queue_.StoreOf(request->job()), *request));
  return reactor;
}

grpc::ServerUnaryReactor* JobService::GetItem(grpc::CallbackServerContext* context,
                                              const v1::ItemRequest* request,
                                              v1::ItemDetail* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  ReplyTo(reactor, response)(ReadDetail(queue_.StoreOf(request->id().job()), request->id()));
  return reactor;
}

grpc::ServerUnaryReactor* JobService::ListDeadLetters(grpc::CallbackServerContext* context,
                                                      const v1::ListDeadLettersRequest* request,
                                                      v1::ListDeadLettersResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  uint32_t size =
      request->page_size() == 0 ? kDefaultItemPage : std::min(request->page_size(), kMaxItemPage);
  absl::StatusOr<DeadLetterPage> page =
      request->job().empty() ? ReadDeadLetters(queue_.stores(), request->page_token(), size)
                             : ReadDeadLetters(queue_.StoreOf(request->job()), request->job(),
                                               request->page_token(), size);
  if (page.ok()) {
    for (v1::Item& item : page->items) *response->add_items() = std::move(item);
    response->set_next_page_token(page->next_page_token);
  }
  reactor->Finish(ToGrpc(page.status()));
  return reactor;
}

grpc::ServerUnaryReactor* JobService::PurgeDeadLetters(grpc::CallbackServerContext* context,
                                                       const v1::PurgeDeadLettersRequest* request,
                                                       v1::PurgeDeadLettersResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  queue_.Purge(*request, Audited(options_.audit, *context, "purge", request->id(),
                                 ReplyTo(reactor, response)));
  return reactor;
}

}  // namespace kmosaic
