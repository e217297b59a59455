// Which shard has which job.
#ifndef KMOSAIC_COORDINATOR_QUEUE_JOB_ROUTES_H_
#define KMOSAIC_COORDINATOR_QUEUE_JOB_ROUTES_H_

#include <cstddef>
#include <cstdint>
#include <shared_mutex>
#include <string>
#include <unordered_map>

#include "absl/base/thread_annotations.h"

namespace kmosaic {

// Thread-safe.
class JobRoutes {
 public:
  // New jobs go to the first `shards` ones.
  explicit JobRoutes(size_t shards) : shards_(shards) {}

  // 0 for an unknown job: there it is found to be unknown.
  size_t Of(const std::string& job) const;
  // Where a submission goes: to the job that it made before, otherwise by a hash. `random` is
  // for one without a request id.
  size_t ForSubmission(const std::string& request_id, uint64_t random) const;

  void Add(const std::string& job, const std::string& request_id, size_t shard);
  void Remove(const std::string& job);

 private:
  struct Job {
    size_t shard = 0;
    std::string request_id;
  };
  const size_t shards_;
  mutable std::shared_mutex mutex_;
  std::unordered_map<std::string, Job> jobs_ ABSL_GUARDED_BY(mutex_);
  std::unordered_map<std::string, size_t> requests_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kmosaic

#endif  // KMOSAIC_COORDINATOR_QUEUE_JOB_ROUTES_H_
