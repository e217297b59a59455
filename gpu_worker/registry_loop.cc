#include "gpu_worker/registry_loop.h"

#include <utility>

#include "common/base/status.h"
#include "common/log/log.h"
#include "common/rpc/channel.h"

namespace kmosaic {

namespace v1 = kernelmosaic::v1;

RegistryLoop::RegistryLoop(Options options)
    : options_(std::move(options)), stub_(v1::WorkerRegistry::NewStub(options_.channel)) {
  thread_ = std::thread([this] { Run(); });
}

RegistryLoop::~RegistryLoop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void RegistryLoop::Wake() {
  {
    std::lock_guard lock(mutex_);
    woken_ = true;
  }
  changed_.notify_all();
}

absl::Status RegistryLoop::SyncOnce() {
  absl::Duration unused;
  return Sync(&unused);
}

absl::Status RegistryLoop::Sync(absl::Duration* next) {
  grpc::ClientContext context;
  SetDeadline(context, options_.call_timeout);
  v1::WorkerSyncResponse reply;
  absl::Status status = FromGrpc(stub_->Sync(&context, options_.state(), &reply));
  options_.metrics->syncs.Add({{"result", absl::StatusCodeToString(status.code())}}).Increment();
  if (!status.ok()) return status;
  // The reply names the time after which the worker counts as lost: half of it leaves
  // room for one lost call.
  absl::Duration within =
      absl::Seconds(reply.next_sync().seconds()) + absl::Nanoseconds(reply.next_sync().nanos());
  *next = within > absl::ZeroDuration() ? within / 2 : options_.default_interval;
  options_.on_reply(reply);
  return absl::OkStatus();
}

void RegistryLoop::Run() {
  int failures = 0;
  while (true) {
    absl::Duration pause = options_.default_interval;
    absl::Status status = Sync(&pause);
    if (status.ok()) {
      if (failures > 0) LogInfo("the coordinator is back", {{"failed_syncs", failures}});
      failures = 0;
    } else {
      if (failures == 0) {
        LogWarning("sync with the coordinator failed; trying again",
                   {{"cause", std::string(status.message())}});
      }
      pause = options_.first_backoff / 2 +
              Backoff(failures++, options_.first_backoff, options_.longest_backoff);
    }
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, absl::ToChronoNanoseconds(pause),
                      [this] { return stopping_ || woken_; });
    woken_ = false;
    if (stopping_) return;
  }
}

}  // namespace kmosaic
