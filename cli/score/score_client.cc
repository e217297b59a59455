#include "cli/score/score_client.h"

#include <string>
#include <thread>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "cli/program/stream_queue.h"

namespace kmosaic {
namespace {

namespace v1 = kernelmosaic::v1;

constexpr absl::Duration kIdle = absl::Milliseconds(200);

// On the wire ids are "NUMBER:ID": unique even where a file's ids are not.
std::string WireId(uint64_t number, const std::string& id) { return absl::StrCat(number, ":", id); }

std::optional<uint64_t> NumberOf(const std::string& wire_id) {
  uint64_t number = 0;
  size_t colon = wire_id.find(':');
  if (colon == std::string::npos || !absl::SimpleAtoi(wire_id.substr(0, colon), &number)) {
    return std::nullopt;
  }
  return number;
}

}  // namespace

ScoreClient::ScoreClient(const Host& host, Connection connection, Options options)
    : host_(host),
      connection_(std::move(connection)),
      options_(options),
      stub_(v1::ScoreService::NewStub(connection_.channel)) {}

absl::Status ScoreClient::RunOnce(const Callbacks& callbacks, bool& progressed) {
  grpc::ClientContext context;
  Interrupt::Scope scope(*host_.interrupt, [&context] { context.TryCancel(); });
  auto stream = stub_->Score(&context);
  StreamQueue<v1::ScoreResponse> incoming(options_.window);
  StreamQueue<v1::ScoreRequest> outgoing(2 * options_.window);
  std::thread writer([&] {
    std::optional<absl::Status> end;
    while (!end) {
      auto request = outgoing.Pop(absl::Hours(1), end);
      // A stream that takes no more has failed; the reader learns why.
      if (request && !stream->Write(*request)) {
        outgoing.Abandon();
        return;
      }
    }
    stream->WritesDone();
  });
  std::thread reader([&] {
    v1::ScoreResponse response;
    while (stream->Read(&response)) incoming.Push(std::move(response));
    incoming.Close(absl::OkStatus());
  });

  for (const auto& [number, request] : unanswered_) outgoing.Push(request);
  bool closed = false;
  std::optional<absl::Status> end;
  while (!end) {
    while (!exhausted_ && unanswered_.size() < options_.window) {
      auto request = callbacks.next();
      exhausted_ = !request.has_value();
      if (exhausted_) break;
      uint64_t number = taken_++;
      request->set_id(WireId(number, request->id()));
      outgoing.Push(*request);
      unanswered_.emplace(number, *std::move(request));
    }
    if (exhausted_ && !std::exchange(closed, true)) {
      outgoing.Close(absl::OkStatus());
    }
    auto response = incoming.Pop(kIdle, end);
    callbacks.on_idle();
    if (!response) continue;
    auto number = NumberOf(response->id());
    // An answer to something that was answered on an earlier stream, or never asked.
    if (!number || unanswered_.erase(*number) == 0) continue;
    progressed = true;
    callbacks.on_report(*number, response->report());
  }
  if (!closed) outgoing.Close(absl::OkStatus());
  writer.join();
  reader.join();
  absl::Status status = FromGrpc(stream->Finish());
  if (status.ok() && !(exhausted_ && unanswered_.empty())) {
    return absl::UnavailableError("the stream ended before everything was answered");
  }
  return status;
}

absl::Status ScoreClient::Run(const Callbacks& callbacks) {
  std::optional<absl::Duration> lost_at;
  bool ever = false;
  for (int attempt = 0;; ++attempt) {
    bool progressed = false;
    absl::Status status = RunOnce(callbacks, progressed);
    if (host_.interrupt->triggered()) return absl::CancelledError("interrupted");
    if (status.ok() || !IsTransient(status)) return Explain(connection_, status);
    if (progressed) {
      ever = true;
      attempt = 0;
      lost_at.reset();
    }
    absl::Duration now = host_.clock->Steady();
    if (!lost_at) lost_at = now;
    // A coordinator that never answered is most likely not there.
    if (!ever || now - *lost_at > options_.patience) return Explain(connection_, status);
    if (host_.interrupt->WaitFor(Backoff(attempt, absl::Milliseconds(200), absl::Seconds(3)))) {
      return absl::CancelledError("interrupted");
    }
  }
}

}  // namespace kmosaic
