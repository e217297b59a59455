// gRPC channels to workers, kept between calls.
#ifndef KMOSAIC_COORDINATOR_SERVICE_WORKER_CHANNELS_H_
#define KMOSAIC_COORDINATOR_SERVICE_WORKER_CHANNELS_H_

#include <grpcpp/channel.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "absl/base/thread_annotations.h"

namespace kmosaic {

// Thread-safe. Keeps at most `capacity` channels; the one that was asked for longest ago
// goes first (calls on it go on).
class WorkerChannels {
 public:
  explicit WorkerChannels(size_t capacity = 1024) : capacity_(capacity) {}

  std::shared_ptr<grpc::Channel> Get(const std::string& endpoint);

 private:
  struct Entry {
    std::shared_ptr<grpc::Channel> channel;
    uint64_t used = 0;
  };

  const size_t capacity_;
  std::mutex mutex_;
  std::map<std::string, Entry> channels_ ABSL_GUARDED_BY(mutex_);
  uint64_t uses_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace kmosaic

#endif  // KMOSAIC_COORDINATOR_SERVICE_WORKER_CHANNELS_H_
