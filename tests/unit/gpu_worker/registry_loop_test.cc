#include "gpu_worker/registry_loop.h"

#include <catch2/catch.hpp>
#include <condition_variable>
#include <deque>
#include <mutex>

#include "common/log/log.h"
#include "common/rpc/channel.h"
#include "common/rpc/server.h"

namespace kmosaic {
namespace {

namespace v1 = kernelmosaic::v1;

// Answers with what is set and remembers what came.
class FakeCoordinator : public v1::WorkerRegistry::Service {
 public:
  grpc::Status Sync(grpc::ServerContext*, const v1::WorkerSyncRequest* request,
                    v1::WorkerSyncResponse* response) override {
    std::lock_guard lock(mutex_);
    requests_.push_back(*request);
    changed_.notify_all();
    if (failing_) return {grpc::StatusCode::UNAVAILABLE, "starting"};
    *response = reply_;
    return grpc::Status::OK;
  }
  void Set(const v1::WorkerSyncResponse& reply, bool failing = false) {
    std::lock_guard lock(mutex_);
    reply_ = reply;
    failing_ = failing;
  }
  // Waits until `count` syncs came in all, and returns the last.
  v1::WorkerSyncRequest WaitFor(size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return requests_.size() >= count; });
    return requests_.back();
  }
  size_t count() {
    std::lock_guard lock(mutex_);
    return requests_.size();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<v1::WorkerSyncRequest> requests_;
  v1::WorkerSyncResponse reply_;
  bool failing_ = false;
};

struct Fixture {
  Metrics process{"test"};
  WorkerMetrics metrics{&process};
  FakeCoordinator coordinator;
  std::unique_ptr<RpcServer> server;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<v1::WorkerSyncResponse> replies;

  Fixture() {
    StartLog("test", LogLevel::kError);
    RpcServer::Options options;
    options.services = {&coordinator};
    server = *RpcServer::Start(options);
  }
  RegistryLoop::Options Options() {
    RegistryLoop::Options options;
    options.channel = MakeChannel(server->target());
    options.state = [] {
      v1::WorkerSyncRequest state;
      state.set_worker("w1");
      (*state.mutable_labels())["device"] = "emulated";
      return state;
    };
    options.on_reply = [this](const v1::WorkerSyncResponse& reply) {
      std::lock_guard lock(mutex);
      replies.push_back(reply);
      changed.notify_all();
    };
    options.metrics = &metrics;
    options.first_backoff = absl::Milliseconds(1);
    options.longest_backoff = absl::Milliseconds(5);
    options.default_interval = absl::Hours(1);
    return options;
  }
  v1::WorkerSyncResponse WaitForReply(size_t count) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return replies.size() >= count; });
    return replies.back();
  }
};

TEST_CASE("the state goes out at once and the reply's key and orders come in") {
  Fixture f;
  v1::WorkerSyncResponse reply;
  reply.set_grant_key("secret");
  reply.set_drain(true);
  f.coordinator.Set(reply);
  RegistryLoop loop(f.Options());
  CHECK(f.coordinator.WaitFor(1).labels().at("device") == "emulated");
  v1::WorkerSyncResponse got = f.WaitForReply(1);
  CHECK(got.grant_key() == "secret");
  CHECK(got.drain());
}

TEST_CASE("syncs repeat within the time that the coordinator names") {
  Fixture f;
  v1::WorkerSyncResponse reply;
  reply.mutable_next_sync()->set_nanos(2'000'000);
  f.coordinator.Set(reply);
  RegistryLoop loop(f.Options());
  f.coordinator.WaitFor(5);
}

TEST_CASE("a change of state does not wait for the next turn") {
  Fixture f;
  RegistryLoop loop(f.Options());
  f.WaitForReply(1);
  loop.Wake();
  f.coordinator.WaitFor(2);
}

TEST_CASE("a coordinator that is away is tried again until it is back") {
  Fixture f;
  f.coordinator.Set({}, /*failing=*/true);
  RegistryLoop loop(f.Options());
  f.coordinator.WaitFor(3);
  CHECK(f.replies.empty());
  v1::WorkerSyncResponse reply;
  reply.set_grant_key("new");
  f.coordinator.Set(reply);
  CHECK(f.WaitForReply(1).grant_key() == "new");
}

TEST_CASE("a loop that cannot reach anybody ends when it is told to") {
  Fixture f;
  RegistryLoop::Options options = f.Options();
  options.channel = MakeChannel("unix:/nonexistent/socket");
  options.first_backoff = absl::Hours(1);
  options.longest_backoff = absl::Hours(1);
  RegistryLoop loop(std::move(options));
}

TEST_CASE("the last word before the end is sent on the caller's thread") {
  Fixture f;
  RegistryLoop loop(f.Options());
  f.WaitForReply(1);
  size_t before = f.coordinator.count();
  CHECK(loop.SyncOnce().ok());
  CHECK(f.coordinator.count() == before + 1);
}

}  // namespace
}  // namespace kmosaic
