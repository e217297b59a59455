#include "coordinator/service/score_service.h"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "common/base/ids.h"

namespace kmosaic {
namespace {

// One open stream. What gRPC is asked to do next is decided under the lock (Decide) and done
// outside of it (Do), since its callbacks may run at once and on the same thread. Lives
// until gRPC is done with it and its last call has ended.
class ScoreStream : public grpc::ServerBidiReactor<v1::ScoreRequest, v1::ScoreResponse>,
                    public std::enable_shared_from_this<ScoreStream> {
 public:
  ScoreStream(const ScoreService::Options& options, const Placement& placement,
              ScoreMetrics& metrics, const ScoreCallContext& calls)
      : options_(options),
        placement_(placement),
        metrics_(metrics),
        calls_(calls),
        name_(RandomId("score")) {}

  void Begin() {
    self_ = shared_from_this();
    metrics_.streams.Increment();
    Advance();
  }

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override {
    metrics_.streams.Decrement();
    self_ = nullptr;
  }

 private:
  struct InHand {
    std::shared_ptr<ScoreCall> call;
    size_t bytes = 0;
  };
  struct Actions {
    bool read = false;
    bool write = false;
    bool finish = false;
    bool cancelled = false;
  };

  // What can be done now, marked as done.
  Actions Decide() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Do(const Actions& actions);
  void Advance();
  bool MayRead() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnAnswer(uint64_t number, std::string id, v1::EvaluationReport report);

  const ScoreService::Options& options_;
  const Placement& placement_;
  ScoreMetrics& metrics_;
  const ScoreCallContext& calls_;
  const std::string name_;
  std::shared_ptr<ScoreStream> self_;

  // Belong to gRPC while a read or a write is under way.
  v1::ScoreRequest request_;
  v1::ScoreResponse response_;

  std::mutex mutex_;
  std::map<uint64_t, InHand> in_hand_ ABSL_GUARDED_BY(mutex_);
  size_t in_hand_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<v1::ScoreResponse> answers_ ABSL_GUARDED_BY(mutex_);
  uint64_t next_number_ ABSL_GUARDED_BY(mutex_) = 0;
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  bool read_ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
};

bool ScoreStream::MayRead() const {
  if (reading_ || read_ended_ || cancelled_) return false;
  // Answers that the client does not take count as work in hand.
  size_t count = in_hand_.size() + answers_.size();
  if (count < options_.least_in_hand) return true;
  if (in_hand_bytes_ >= options_.max_in_hand_bytes) return false;
  uint64_t slots = 0;
  for (const auto& [role, figures] : placement_.Figures().roles) {
    slots = std::max(slots, figures.total);
  }
  return count < slots * options_.in_hand_per_slot;
}

ScoreStream::Actions ScoreStream::Decide() {
  Actions actions;
  if (finished_) return actions;
  if (MayRead()) actions.read = reading_ = true;
  if (!writing_ && !answers_.empty() && !cancelled_) {
    actions.write = writing_ = true;
    response_ = std::move(answers_.front());
    answers_.pop_front();
  }
  bool drained = read_ended_ && answers_.empty();
  if ((cancelled_ || drained) && in_hand_.empty() && !reading_ && !writing_) {
    actions.finish = finished_ = true;
    actions.cancelled = cancelled_;
  }
  return actions;
}

void ScoreStream::Do(const Actions& actions) {
  if (actions.read) StartRead(&request_);
  if (actions.write) StartWrite(&response_);
  if (actions.finish) Finish(actions.cancelled ? grpc::Status::CANCELLED : grpc::Status::OK);
}

void ScoreStream::Advance() {
  // An action's callback may drop the last reference.
  std::shared_ptr<ScoreStream> alive = shared_from_this();
  Actions actions;
  {
    std::lock_guard lock(mutex_);
    actions = Decide();
  }
  Do(actions);
}

void ScoreStream::OnReadDone(bool ok) {
  std::shared_ptr<ScoreCall> call;
  bool cancelled = false;
  {
    std::lock_guard lock(mutex_);
    reading_ = false;
    if (ok) {
      uint64_t number = next_number_++;
      size_t bytes = request_.ByteSizeLong();
      std::string id = request_.id();
      call = std::make_shared<ScoreCall>(
          calls_, name_, std::move(request_),
          [stream = shared_from_this(), number, id](v1::EvaluationReport report) {
            stream->OnAnswer(number, id, std::move(report));
          });
      request_.Clear();
      in_hand_[number] = {call, bytes};
      in_hand_bytes_ += bytes;
      cancelled = cancelled_;
    } else {
      read_ended_ = true;
    }
  }
  if (call != nullptr) {
    call->Start();
    if (cancelled) call->Cancel();
  }
  Advance();
}

void ScoreStream::OnAnswer(uint64_t number, std::string id, v1::EvaluationReport report) {
  v1::ScoreResponse response;
  response.set_id(std::move(id));
  *response.mutable_report() = std::move(report);
  std::shared_ptr<ScoreCall> call;  // dropped outside of the lock
  {
    std::lock_guard lock(mutex_);
    auto found = in_hand_.find(number);
    call = std::move(found->second.call);
    in_hand_bytes_ -= found->second.bytes;
    in_hand_.erase(found);
    if (!cancelled_) answers_.push_back(std::move(response));
  }
  Advance();
}

void ScoreStream::OnWriteDone(bool ok) {
  {
    std::lock_guard lock(mutex_);
    writing_ = false;
    // Nobody reads any more; OnCancel follows.
    if (!ok) answers_.clear();
  }
  Advance();
}

void ScoreStream::OnCancel() {
  std::vector<std::shared_ptr<ScoreCall>> calls;
  {
    std::lock_guard lock(mutex_);
    cancelled_ = true;
    answers_.clear();
    for (auto& [number, in_hand] : in_hand_) calls.push_back(in_hand.call);
  }
  for (const std::shared_ptr<ScoreCall>& call : calls) call->Cancel();
  Advance();
}

}  // namespace

ScoreService::ScoreService(const Options& options, Placement& placement, const Clock& clock,
                           ScoreMetrics& metrics)
    : options_(options),
      placement_(placement),
      metrics_(metrics),
      calls_{placement, channels_, clock, metrics, options.max_tries, options.no_worker_patience} {}

grpc::ServerBidiReactor<v1::ScoreRequest, v1::ScoreResponse>* ScoreService::Score(
    grpc::CallbackServerContext*) {
  auto stream = std::make_shared<ScoreStream>(options_, placement_, metrics_, calls_);
  stream->Begin();
  return stream.get();
}

}  // namespace kmosaic
