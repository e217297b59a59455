// Holds conversations: takes leases, keeps them, passes the coordinator's orders on.
#ifndef KMOSAIC_AGENT_RUNNER_RUNNER_LOOP_H_
#define KMOSAIC_AGENT_RUNNER_RUNNER_LOOP_H_

#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "agent_runner/conversation.h"
#include "agent_runner/small_thread.h"

namespace kmosaic {

class RunnerLoop {
 public:
  struct Options {
    std::string http_endpoint;
    uint32_t max_conversations = 64;
    // Longest that the coordinator may hold a Sync back.
    absl::Duration sync_wait = absl::Seconds(2);
    // Longest pause between two Syncs, also when the coordinator allows more.
    absl::Duration longest_pause = absl::Seconds(1);
    // On top of sync_wait, for one Sync.
    absl::Duration sync_timeout = absl::Seconds(5);
    // How long calls in flight and unfinished verbs may go on when draining.
    absl::Duration drain_grace = absl::Seconds(25);
    absl::Duration backoff_base = absl::Milliseconds(200);
    absl::Duration backoff_cap = absl::Seconds(5);
  };

  // `services` must outlive the loop.
  RunnerLoop(const ConversationServices& services, Options options);
  ~RunnerLoop();

  // Syncs and holds conversations until drained: by Drain, or by the coordinator's order.
  // While the coordinator is away conversations go on and leases are kept. Once.
  void Run();

  // Takes no more leases, hands back the ones held, ends Run. Thread-safe.
  void Drain();

  // The last Sync succeeded. Thread-safe.
  bool connected() const;

 private:
  struct Held {
    std::unique_ptr<Conversation> conversation;
    std::unique_ptr<SmallThread> thread;
    bool finished = false;
  };

  // One Sync; returns how long to pause before the next.
  absl::Duration SyncOnce();
  void Take(const kernelmosaic::v1::RunnerSyncResponse& response);
  void Start(const v1::Lease& lease, std::shared_ptr<const v1::JobSpec> job,
             const JobStanding& standing);
  void Refuse(const v1::Lease& lease, const std::string& reason);
  void Obey(const kernelmosaic::v1::RunnerSyncResponse& response);
  void JoinFinished();
  void GiveAll(Conversation::Order order);
  // Ends early when a conversation has ended, or Drain was called.
  void Pause(absl::Duration duration);

  const ConversationServices& services_;
  const Options options_;
  int failures_in_a_row_ = 0;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Held> held_ ABSL_GUARDED_BY(mutex_);
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  bool wake_ ABSL_GUARDED_BY(mutex_) = false;
  bool connected_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace kmosaic

#endif  // KMOSAIC_AGENT_RUNNER_RUNNER_LOOP_H_
