// A coordinator in memory: grants items, keeps their steps, refuses stale tokens, and
// fails on demand.
#ifndef KMOSAIC_TESTS_UNIT_AGENT_RUNNER_FAKE_COORDINATOR_H_
#define KMOSAIC_TESTS_UNIT_AGENT_RUNNER_FAKE_COORDINATOR_H_

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/enum_names.h"
#include "common/rpc/server.h"
#include "kernelmosaic/v1/runner.grpc.pb.h"

namespace kmosaic {

// Serves while it lives. Thread-safe.
class FakeCoordinator : public v1::RunnerService::Service {
 public:
  struct FakeItem {
    v1::TaskSpec task;
    v1::ViewSet views;
    uint32_t attempt = 0;
    // Runner that holds it; empty: nobody.
    std::string holder;
    bool cancelled = false;
    // Not granted again until Allow.
    bool parked = false;
    std::vector<v1::Step> steps;
    std::optional<v1::ItemResult> result;
    std::vector<v1::ReleaseRequest> releases;
  };
  struct State {
    std::vector<FakeItem> items;
    v1::JobSpec job;
    // Workers in the order in which they are given out.
    std::vector<std::pair<std::string, std::string>> workers;  // name, endpoint
    // Everything answers UNAVAILABLE.
    bool away = false;
    // RecordStep does its work, but its answer is lost, this often.
    int lost_answers = 0;
    // Released items wait for Allow.
    bool park_released = false;
    size_t most_held = 0;
    int syncs = 0;
    std::set<std::string> open_slots;
    int slots_given = 0;
    std::vector<std::vector<std::string>> avoided;
    // What the job has used, told where it has a budget of its own.
    v1::Usage used;
    uint32_t verified_samples = 0;
  };

  FakeCoordinator();
  ~FakeCoordinator() override;

  const std::string& target() const { return server_->target(); }

  // Looks at or changes the state.
  void With(const std::function<void(State&)>& action);
  // Waits until it holds; false after a long time.
  bool WaitUntil(const std::function<bool(const State&)>& condition);

  // The lease of an item is over, as if its holder had died.
  void Expire(size_t item);

  grpc::Status Sync(grpc::ServerContext*, const v1::RunnerSyncRequest*,
                    v1::RunnerSyncResponse*) override;
  grpc::Status RecordStep(grpc::ServerContext*, const v1::RecordStepRequest*,
                          v1::RecordStepResponse*) override;
  grpc::Status Complete(grpc::ServerContext*, const v1::CompleteRequest*,
                        v1::CompleteResponse*) override;
  grpc::Status Release(grpc::ServerContext*, const v1::ReleaseRequest*,
                       v1::ReleaseResponse*) override;
  grpc::Status AcquireSlot(grpc::ServerContext*, const v1::AcquireSlotRequest*, v1::Slot*) override;
  grpc::Status ReleaseSlot(grpc::ServerContext*, const v1::ReleaseSlotRequest*,
                           v1::ReleaseSlotResponse*) override;

 private:
  // Null when the token is not the item's current one.
  FakeItem* Find(const v1::LeaseToken& token);

  std::mutex mutex_;
  std::condition_variable changed_;
  State state_;
  bool stopping_ = false;
  std::unique_ptr<RpcServer> server_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_TESTS_UNIT_AGENT_RUNNER_FAKE_COORDINATOR_H_
