#include "coordinator/service/lease_slots.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace kmosaic {
namespace {

// The lease is over, whatever became of it. A cancelled one still belongs to its holder.
bool Ended(const absl::Status& status) {
  return absl::IsFailedPrecondition(status) || absl::IsNotFound(status);
}

}  // namespace

LeaseSlots::LeaseSlots(TaskQueue& queue, Placement& placement, absl::Duration interval)
    : queue_(queue), placement_(placement), interval_(interval), thread_([this] { Run(); }) {}

LeaseSlots::~LeaseSlots() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stop_.notify_all();
  thread_.join();
}

std::string LeaseSlots::Watch(const v1::LeaseToken& token) {
  std::string holder =
      absl::StrCat("lease ", token.item().job(), "/", token.item().number(), " attempt ",
                   token.attempt(), " epoch ", token.epoch(), " of ", token.incarnation());
  std::lock_guard lock(shared_->mutex);
  shared_->watched[holder] = token;
  return holder;
}

void LeaseSlots::Run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    stop_.wait_for(lock, absl::ToChronoNanoseconds(interval_),
                   [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_; });
    if (stopping_) return;
    lock.unlock();
    Check();
    lock.lock();
  }
}

void LeaseSlots::Check() {
  std::map<std::string, v1::LeaseToken> watched;
  {
    std::lock_guard lock(shared_->mutex);
    watched = shared_->watched;
  }
  for (const auto& [holder, token] : watched) {
    queue_.CheckLease(token, [shared = shared_, &placement = placement_,
                              holder = holder](const absl::StatusOr<LeaseOwner>& owner) {
      if (!Ended(owner.status())) return;
      {
        std::lock_guard lock(shared->mutex);
        shared->watched.erase(holder);
      }
      placement.ReleaseHolder(holder);
    });
  }
}

}  // namespace kmosaic
