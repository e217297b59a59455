#include "cli/jobs/job_client.h"

#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "cli/program/stream_queue.h"

namespace kmosaic {
namespace {

constexpr uint32_t kPageSize = 500;
constexpr size_t kMessageBytes = 4 * 1024 * 1024;
constexpr int kSubmitAttempts = 5;
constexpr size_t kBuffered = 1024;
constexpr absl::Duration kIdle = absl::Milliseconds(200);

v1::JobRequest Named(const std::string& id) {
  v1::JobRequest request;
  request.set_id(id);
  return request;
}

}  // namespace

JobClient::JobClient(const Host& host, Connection connection)
    : host_(host),
      connection_(std::move(connection)),
      stub_(v1::JobService::NewStub(connection_.channel)) {}

absl::StatusOr<v1::SubmitResponse> JobClient::Submit(const std::string& request_id,
                                                     const v1::JobSpec& spec,
                                                     const std::vector<v1::TaskSpec>& tasks) {
  auto send = [&](grpc::ClientContext* context, v1::SubmitResponse* response) {
    auto stream = stub_->Submit(context, response);
    v1::SubmitRequest message;
    message.set_request_id(request_id);
    *message.mutable_spec() = spec;
    message.set_total_tasks(static_cast<uint32_t>(tasks.size()));
    bool open = stream->Write(message);
    message.Clear();
    size_t bytes = 0;
    for (size_t i = 0; i < tasks.size() && open; ++i) {
      *message.add_tasks() = tasks[i];
      bytes += tasks[i].ByteSizeLong();
      if (bytes < kMessageBytes && i + 1 < tasks.size()) continue;
      open = stream->Write(message);
      message.Clear();
      bytes = 0;
    }
    stream->WritesDone();
    return stream->Finish();
  };
  for (int attempt = 0;; ++attempt) {
    auto response = Call<v1::SubmitResponse>(host_, connection_, send, absl::Minutes(2));
    bool again = !response.ok() && IsTransient(response.status()) && attempt + 1 < kSubmitAttempts;
    if (!again) return response;
    if (host_.interrupt->WaitFor(Backoff(attempt, absl::Milliseconds(200), absl::Seconds(3)))) {
      return response;
    }
  }
}

absl::StatusOr<v1::Job> JobClient::Get(const std::string& id) {
  return Call<v1::Job>(host_, connection_, [&](auto* context, auto* response) {
    return stub_->Get(context, Named(id), response);
  });
}

absl::StatusOr<v1::Job> JobClient::Cancel(const std::string& id) {
  return Call<v1::Job>(host_, connection_, [&](auto* context, auto* response) {
    return stub_->Cancel(context, Named(id), response);
  });
}

absl::StatusOr<v1::Job> JobClient::Pause(const std::string& id) {
  return Call<v1::Job>(host_, connection_, [&](auto* context, auto* response) {
    return stub_->Pause(context, Named(id), response);
  });
}

absl::StatusOr<v1::Job> JobClient::Resume(const std::string& id) {
  return Call<v1::Job>(host_, connection_, [&](auto* context, auto* response) {
    return stub_->Resume(context, Named(id), response);
  });
}

absl::StatusOr<v1::Job> JobClient::Delete(const std::string& id) {
  return Call<v1::Job>(host_, connection_, [&](auto* context, auto* response) {
    return stub_->Delete(context, Named(id), response);
  });
}

absl::StatusOr<uint64_t> JobClient::Retry(const std::string& id,
                                          const std::vector<v1::ItemState>& states,
                                          const std::vector<uint32_t>& items) {
  v1::RetryJobRequest request;
  request.set_id(id);
  for (uint32_t item : items) request.add_items(item);
  for (v1::ItemState state : states) request.add_states(state);
  auto response = Call<v1::RetryJobResponse>(host_, connection_, [&](auto* context, auto* reply) {
    return stub_->Retry(context, request, reply);
  });
  if (!response.ok()) return response.status();
  return response->retried();
}

absl::StatusOr<uint64_t> JobClient::PurgeDeadLetters(const std::string& id,
                                                     const std::vector<uint32_t>& items) {
  v1::PurgeDeadLettersRequest request;
  request.set_id(id);
  for (uint32_t item : items) request.add_items(item);
  auto response = Call<v1::PurgeDeadLettersResponse>(
      host_, connection_,
      [&](auto* context, auto* reply) { return stub_->PurgeDeadLetters(context, request, reply); });
  if (!response.ok()) return response.status();
  return response->purged();
}

absl::StatusOr<std::vector<v1::Job>> JobClient::List() {
  std::vector<v1::Job> jobs;
  v1::ListJobsRequest request;
  request.set_page_size(kPageSize);
  do {
    KMOSAIC_ASSIGN_OR_RETURN(
        v1::ListJobsResponse page,
        Call<v1::ListJobsResponse>(host_, connection_, [&](auto* context, auto* response) {
          return stub_->List(context, request, response);
        }));
    for (v1::Job& job : *page.mutable_jobs()) jobs.push_back(std::move(job));
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  return jobs;
}

absl::StatusOr<std::vector<v1::Item>> JobClient::ListItems(
    const std::string& job, const std::vector<v1::ItemState>& states) {
  std::vector<v1::Item> items;
  v1::ListItemsRequest request;
  request.set_job(job);
  for (v1::ItemState state : states) request.add_states(state);
  request.set_page_size(kPageSize);
  do {
    KMOSAIC_ASSIGN_OR_RETURN(
        v1::ListItemsResponse page,
        Call<v1::ListItemsResponse>(host_, connection_, [&](auto* context, auto* response) {
          return stub_->ListItems(context, request, response);
        }));
    for (v1::Item& item : *page.mutable_items()) items.push_back(std::move(item));
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  return items;
}

absl::StatusOr<std::vector<v1::Item>> JobClient::ListDeadLetters(const std::string& job) {
  std::vector<v1::Item> items;
  v1::ListDeadLettersRequest request;
  request.set_job(job);
  request.set_page_size(kPageSize);
  do {
    KMOSAIC_ASSIGN_OR_RETURN(
        v1::ListDeadLettersResponse page,
        Call<v1::ListDeadLettersResponse>(host_, connection_, [&](auto* context, auto* response) {
          return stub_->ListDeadLetters(context, request, response);
        }));
    for (v1::Item& item : *page.mutable_items()) items.push_back(std::move(item));
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  return items;
}

absl::StatusOr<v1::ItemDetail> JobClient::GetItem(const std::string& job, uint32_t number) {
  v1::ItemRequest request;
  request.mutable_id()->set_job(job);
  request.mutable_id()->set_number(number);
  return Call<v1::ItemDetail>(host_, connection_, [&](auto* context, auto* response) {
    return stub_->GetItem(context, request, response);
  });
}

absl::Status JobClient::WatchOnce(const std::string& id, uint64_t& next_seq,
                                  const std::function<bool(const v1::JobEvent&)>& on_event,
                                  const std::function<void()>& on_idle) {
  grpc::ClientContext context;
  Interrupt::Scope scope(*host_.interrupt, [&context] { context.TryCancel(); });
  v1::WatchJobRequest request;
  request.set_id(id);
  request.set_from_seq(next_seq);
  StreamQueue<v1::JobEvent> queue(kBuffered);
  std::thread reader([&] {
    auto stream = stub_->Watch(&context, request);
    v1::JobEvent event;
    while (stream->Read(&event)) queue.Push(std::move(event));
    queue.Close(FromGrpc(stream->Finish()));
  });
  std::optional<absl::Status> end;
  bool wanted = true;
  while (wanted && !end) {
    if (auto event = queue.Pop(kIdle, end)) {
      next_seq = event->seq() + 1;
      wanted = on_event(*event);
    }
    if (wanted) on_idle();
  }
  if (!wanted) context.TryCancel();
  queue.Abandon();
  reader.join();
  return wanted ? *end : absl::CancelledError("no further events are wanted");
}

absl::Status JobClient::Watch(const std::string& id, uint64_t from_seq,
                              const std::function<bool(const v1::JobEvent&)>& on_event,
                              const std::function<void()>& on_idle, absl::Duration patience) {
  uint64_t next_seq = from_seq;
  std::optional<absl::Duration> lost_at;
  for (int attempt = 0;; ++attempt) {
    uint64_t before = next_seq;
    absl::Status status = WatchOnce(id, next_seq, on_event, on_idle);
    if (status.ok() || !IsTransient(status)) return Explain(connection_, status);
    if (next_seq != before) {
      lost_at.reset();
      attempt = 0;
    }
    absl::Duration now = host_.clock->Steady();
    if (!lost_at) lost_at = now;
    if (now - *lost_at > patience) return Explain(connection_, status);
    if (host_.interrupt->WaitFor(Backoff(attempt, absl::Milliseconds(200), absl::Seconds(3)))) {
      return absl::CancelledError("interrupted");
    }
  }
}

}  // namespace kmosaic
