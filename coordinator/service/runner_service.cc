#include "coordinator/service/runner_service.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "coordinator/queue/records.h"
#include "coordinator/service/session_reactor.h"
#include "coordinator/service/unary_reply.h"

namespace kmosaic {
namespace {

constexpr absl::Duration kDefaultSlotWait = absl::Seconds(20);
constexpr absl::Duration kMaxSlotWait = absl::Minutes(5);

// A Sync that may wait. The reactor is bound to its call only when the handler returns, so
// neither OnCancel nor OnDone comes before Start has returned. Leases that were granted to a
// caller who is gone are handed back at once, instead of running out.
class SyncReactor : public grpc::ServerUnaryReactor {
 public:
  SyncReactor(TaskQueue& queue, v1::RunnerSyncResponse* response)
      : queue_(queue), response_(response) {}

  void Start(const v1::RunnerSyncRequest& request) {
    ticket_ = queue_.Sync(request, [this](absl::StatusOr<v1::RunnerSyncResponse> answer) {
      Answer(std::move(answer));
    });
  }

  void OnCancel() override {
    queue_.CancelSync(ticket_);
    std::lock_guard lock(mutex_);
    cancelled_ = true;
    HandBack();
  }
  void OnDone() override { delete this; }

 private:
  void Answer(absl::StatusOr<v1::RunnerSyncResponse> answer) {
    grpc::Status status = ToGrpc(answer.status());
    if (answer.ok()) {
      std::lock_guard lock(mutex_);
      for (const v1::Lease& lease : answer->granted()) granted_.push_back(lease.token());
      if (cancelled_) HandBack();
      *response_ = *std::move(answer);
    }
    Finish(status);
  }

  void HandBack() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    for (const v1::LeaseToken& token : granted_) {
      v1::ReleaseRequest release;
      *release.mutable_token() = token;
      release.set_handed_back(true);
      queue_.Release(std::move(release), [](const absl::Status&) {});
    }
    granted_.clear();
  }

  TaskQueue& queue_;
  v1::RunnerSyncResponse* const response_;
  uint64_t ticket_ = 0;
  std::mutex mutex_;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<v1::LeaseToken> granted_ ABSL_GUARDED_BY(mutex_);
};

// An AcquireSlot: first the queue says whether the lease is current, then placement is
// asked, which may answer from any thread and before Acquire returns.
class AcquireReactor : public grpc::ServerUnaryReactor {
 public:
  AcquireReactor(TaskQueue& queue, Placement& placement, LeaseSlots& lease_slots,
                 v1::Slot* response)
      : queue_(queue), state_(std::make_shared<State>(placement, lease_slots, this, response)) {}

  void Start(const v1::AcquireSlotRequest& request) {
    queue_.CheckLease(request.token(), [state = state_, request](absl::StatusOr<LeaseOwner> owner) {
      if (owner.ok()) {
        Ask(state, request, *owner);
      } else {
        state->Answer(owner.status());
      }
    });
  }

  void OnCancel() override {
    uint64_t ticket = 0;
    std::string granted;
    {
      std::lock_guard lock(state_->mutex);
      state_->cancelled = true;
      ticket = state_->ticket;
      granted.swap(state_->granted);
    }
    // A request that is not asked yet sees `cancelled`.
    if (ticket != 0) state_->placement.Cancel(ticket);
    // The answer did not reach the caller.
    if (!granted.empty()) state_->placement.Release(granted);
  }
  void OnDone() override { delete this; }

 private:
  // Outlives the reactor while placement still knows of it.
  struct State {
    State(Placement& the_placement, LeaseSlots& the_lease_slots, AcquireReactor* the_reactor,
          v1::Slot* the_response)
        : placement(the_placement),
          lease_slots(the_lease_slots),
          reactor(the_reactor),
          response(the_response) {}

    void Answer(absl::StatusOr<v1::Slot> slot) {
      bool gone = false;
      {
        std::lock_guard lock(mutex);
        gone = cancelled;
        if (slot.ok() && !gone) granted = slot->id();
      }
      if (slot.ok() && gone) {
        placement.Release(slot->id());
        slot = absl::CancelledError("the caller is gone");
      }
      if (slot.ok()) *response = *std::move(slot);
      reactor->Finish(ToGrpc(slot.status()));
    }

    Placement& placement;
    LeaseSlots& lease_slots;
    AcquireReactor* const reactor;
    v1::Slot* const response;
    std::mutex mutex;
    uint64_t ticket ABSL_GUARDED_BY(mutex) = 0;
    bool cancelled ABSL_GUARDED_BY(mutex) = false;
    // Slot that the caller was given.
    std::string granted ABSL_GUARDED_BY(mutex);
  };

  static void Ask(const std::shared_ptr<State>& state, const v1::AcquireSlotRequest& request,
                  const LeaseOwner& owner) {
    SlotRequest wanted;
    wanted.requirement.role = request.role();
    wanted.requirement.device = request.device();
    wanted.requirement.labels.insert(request.require().begin(), request.require().end());
    wanted.group = request.token().item().job();
    wanted.weight = owner.spec->weight();
    wanted.holder = state->lease_slots.Watch(request.token());
    wanted.avoid.insert(request.avoid().begin(), request.avoid().end());
    wanted.wait = request.has_wait() ? std::min(FromProtoDuration(request.wait()), kMaxSlotWait)
                                     : kDefaultSlotWait;
    uint64_t ticket = state->placement.Acquire(
        std::move(wanted),
        [state](absl::StatusOr<v1::Slot> slot) { state->Answer(std::move(slot)); });
    bool cancelled = false;
    {
      std::lock_guard lock(state->mutex);
      state->ticket = ticket;
      cancelled = state->cancelled;
    }
    if (cancelled) state->placement.Cancel(ticket);
  }

  TaskQueue& queue_;
  const std::shared_ptr<State> state_;
};

// With the first start on a store no runner can hold shares of an earlier process.
absl::Duration SettledAt(const TaskQueue& queue, const Clock& clock) {
  bool first = queue.identity().epoch == 1;
  return clock.Steady() + (first ? absl::ZeroDuration() : EndpointShares::Options{}.ttl);
}

}  // namespace

RunnerService::RunnerService(TaskQueue& queue, Placement& placement, LeaseSlots& lease_slots,
                             const Clock& clock)
    : queue_(queue),
      placement_(placement),
      lease_slots_(lease_slots),
      clock_(clock),
      endpoints_({}, SettledAt(queue, clock)) {}

grpc::ServerBidiReactor<v1::SessionRequest, v1::SessionResponse>* RunnerService::Session(
    grpc::CallbackServerContext*) {
  return new SessionReactor(queue_);
}

grpc::ServerUnaryReactor* RunnerService::Sync(grpc::CallbackServerContext*,
                                              const v1::RunnerSyncRequest* request,
                                              v1::RunnerSyncResponse* response) {
  auto* reactor = new SyncReactor(queue_, response);
  reactor->Start(*request);
  return reactor;
}

grpc::ServerUnaryReactor* RunnerService::RecordStep(grpc::CallbackServerContext* context,
                                                    const v1::RecordStepRequest* request,
                                                    v1::RecordStepResponse*) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  queue_.RecordStep(*request, ReplyStatusTo(reactor));
  return reactor;
}

grpc::ServerUnaryReactor* RunnerService::Complete(grpc::CallbackServerContext* context,
                                                  const v1::CompleteRequest* request,
                                                  v1::CompleteResponse*) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  queue_.Complete(*request, ReplyStatusTo(reactor));
  return reactor;
}

grpc::ServerUnaryReactor* RunnerService::Release(grpc::CallbackServerContext* context,
                                                 const v1::ReleaseRequest* request,
                                                 v1::ReleaseResponse*) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  queue_.Release(*request, ReplyStatusTo(reactor));
  return reactor;
}

grpc::ServerUnaryReactor* RunnerService::SyncEndpoints(grpc::CallbackServerContext* context,
                                                       const v1::SyncEndpointsRequest* request,
                                                       v1::SyncEndpointsResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  absl::StatusOr<v1::SyncEndpointsResponse> shares;
  {
    std::lock_guard lock(mutex_);
    shares = endpoints_.Sync(*request, clock_.Steady());
  }
  if (shares.ok()) *response = *std::move(shares);
  reactor->Finish(ToGrpc(shares.status()));
  return reactor;
}

grpc::ServerUnaryReactor* RunnerService::AcquireSlot(grpc::CallbackServerContext* context,
                                                     const v1::AcquireSlotRequest* request,
                                                     v1::Slot* response) {
  if (request->role() == v1::ROLE_UNSPECIFIED) {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish({grpc::StatusCode::INVALID_ARGUMENT, "role: say what the slot is for"});
    return reactor;
  }
  auto* reactor = new AcquireReactor(queue_, placement_, lease_slots_, response);
  reactor->Start(*request);
  return reactor;
}

grpc::ServerUnaryReactor* RunnerService::ReleaseSlot(grpc::CallbackServerContext* context,
                                                     const v1::ReleaseSlotRequest* request,
                                                     v1::ReleaseSlotResponse*) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  placement_.Release(request->id());
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

}  // namespace kmosaic
