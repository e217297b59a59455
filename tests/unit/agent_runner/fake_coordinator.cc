#include "tests/unit/agent_runner/fake_coordinator.h"

#include <algorithm>
#include <chrono>
#include <stdexcept>

namespace kmosaic {
namespace {

constexpr char kJob[] = "job-1";
constexpr auto kLongWait = std::chrono::seconds(30);

grpc::Status Away() { return {grpc::StatusCode::UNAVAILABLE, "away"}; }
grpc::Status Stale() { return {grpc::StatusCode::FAILED_PRECONDITION, "stale token"}; }

}  // namespace

FakeCoordinator::FakeCoordinator() {
  RpcServer::Options options;
  options.services = {this};
  auto server = RpcServer::Start(options);
  if (!server.ok()) throw std::runtime_error(std::string(server.status().message()));
  server_ = *std::move(server);
}

FakeCoordinator::~FakeCoordinator() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  server_.reset();
}

void FakeCoordinator::With(const std::function<void(State&)>& action) {
  std::lock_guard lock(mutex_);
  action(state_);
  changed_.notify_all();
}

bool FakeCoordinator::WaitUntil(const std::function<bool(const State&)>& condition) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, kLongWait, [&] { return condition(state_); });
}

void FakeCoordinator::Expire(size_t item) {
  With([&](State& state) { state.items.at(item).holder.clear(); });
}

FakeCoordinator::FakeItem* FakeCoordinator::Find(const v1::LeaseToken& token) {
  if (token.item().number() >= state_.items.size()) return nullptr;
  FakeItem& item = state_.items[token.item().number()];
  return !item.holder.empty() && item.attempt == token.attempt() ? &item : nullptr;
}

grpc::Status FakeCoordinator::Sync(grpc::ServerContext*, const v1::RunnerSyncRequest* request,
                                   v1::RunnerSyncResponse* response) {
  std::unique_lock lock(mutex_);
  if (state_.away) return Away();
  ++state_.syncs;
  state_.most_held = std::max(state_.most_held, static_cast<size_t>(request->held_size()));
  auto fill = [&] {
    response->Clear();
    bool news = false;
    for (const v1::LeaseToken& token : request->held()) {
      v1::HeldLease& held = *response->add_held();
      *held.mutable_token() = token;
      const FakeItem* item = Find(token);
      held.set_order(item == nullptr   ? v1::LEASE_ORDER_LOST
                     : item->cancelled ? v1::LEASE_ORDER_CANCEL
                                       : v1::LEASE_ORDER_KEEP);
      news |= held.order() != v1::LEASE_ORDER_KEEP;
    }
    uint32_t free = request->draining() ? 0 : request->free();
    for (size_t i = 0; i < state_.items.size() && free > 0; ++i) {
      FakeItem& item = state_.items[i];
      if (!item.holder.empty() || item.result || item.cancelled || item.parked) continue;
      item.holder = request->runner();
      ++item.attempt;
      --free;
      news = true;
      v1::Lease& lease = *response->add_granted();
      lease.mutable_token()->mutable_item()->set_job(kJob);
      lease.mutable_token()->mutable_item()->set_number(static_cast<uint32_t>(i));
      lease.mutable_token()->set_attempt(item.attempt);
      *lease.mutable_task() = item.task;
      *lease.mutable_views() = item.views;
      for (const v1::Step& step : item.steps) *lease.add_steps() = step;
      lease.set_verified_samples(state_.verified_samples);
      if (state_.job.has_job_budget()) {
        *(*response->mutable_progress())[kJob].mutable_usage() = state_.used;
      }
      (*response->mutable_jobs())[kJob] = state_.job;
    }
    return news;
  };
  auto wait = std::chrono::milliseconds(request->wait().seconds() * 1000 +
                                        request->wait().nanos() / 1'000'000);
  changed_.wait_for(lock, wait, [&] { return stopping_ || fill(); });
  if (wait.count() == 0) fill();
  response->mutable_next_sync()->set_seconds(1);
  changed_.notify_all();
  return grpc::Status::OK;
}

grpc::Status FakeCoordinator::RecordStep(grpc::ServerContext*, const v1::RecordStepRequest* request,
                                         v1::RecordStepResponse*) {
  std::lock_guard lock(mutex_);
  changed_.notify_all();
  if (state_.away) return Away();
  FakeItem* item = Find(request->token());
  if (item == nullptr) return Stale();
  size_t number = request->step().number();
  if (number > item->steps.size()) return {grpc::StatusCode::OUT_OF_RANGE, "gap"};
  if (number < item->steps.size()) {
    bool same = item->steps[number].SerializeAsString() == request->step().SerializeAsString();
    if (!same) return {grpc::StatusCode::ALREADY_EXISTS, "another step"};
  } else {
    item->steps.push_back(request->step());
  }
  if (state_.lost_answers > 0) {
    --state_.lost_answers;
    return Away();
  }
  return grpc::Status::OK;
}

grpc::Status FakeCoordinator::Complete(grpc::ServerContext*, const v1::CompleteRequest* request,
                                       v1::CompleteResponse*) {
  std::lock_guard lock(mutex_);
  changed_.notify_all();
  if (state_.away) return Away();
  FakeItem* item = Find(request->token());
  if (item == nullptr) return Stale();
  item->result = request->result();
  item->holder.clear();
  return grpc::Status::OK;
}

grpc::Status FakeCoordinator::Release(grpc::ServerContext*, const v1::ReleaseRequest* request,
                                      v1::ReleaseResponse*) {
  std::lock_guard lock(mutex_);
  changed_.notify_all();
  if (state_.away) return Away();
  FakeItem* item = Find(request->token());
  if (item == nullptr) return Stale();
  item->releases.push_back(*request);
  item->holder.clear();
  item->parked = state_.park_released;
  return grpc::Status::OK;
}

grpc::Status FakeCoordinator::AcquireSlot(grpc::ServerContext*,
                                          const v1::AcquireSlotRequest* request, v1::Slot* slot) {
  std::lock_guard lock(mutex_);
  changed_.notify_all();
  if (state_.away) return Away();
  if (Find(request->token()) == nullptr) return Stale();
  if (state_.workers.empty()) return {grpc::StatusCode::FAILED_PRECONDITION, "no worker fits"};
  std::vector<std::string> avoid(request->avoid().begin(), request->avoid().end());
  state_.avoided.push_back(avoid);
  auto chosen = std::find_if(state_.workers.begin(), state_.workers.end(), [&](const auto& worker) {
    return std::find(avoid.begin(), avoid.end(), worker.first) == avoid.end();
  });
  if (chosen == state_.workers.end()) chosen = state_.workers.begin();
  slot->set_id("slot-" + std::to_string(++state_.slots_given));
  slot->set_worker(chosen->first);
  slot->set_endpoint(chosen->second);
  slot->set_grant("grant of " + RoleName(request->role()));
  slot->mutable_ttl()->set_seconds(60);
  state_.open_slots.insert(slot->id());
  return grpc::Status::OK;
}

grpc::Status FakeCoordinator::ReleaseSlot(grpc::ServerContext*,
                                          const v1::ReleaseSlotRequest* request,
                                          v1::ReleaseSlotResponse*) {
  std::lock_guard lock(mutex_);
  changed_.notify_all();
  state_.open_slots.erase(request->id());
  return grpc::Status::OK;
}

}  // namespace kmosaic
