#include "coordinator/queue/job_routes.h"

#include <cstdint>
#include <mutex>
#include <utility>

namespace kmosaic {
namespace {

// FNV-1a: the same in every build, so that a repeated submission goes where the first one
// went though that was not answered.
uint64_t Hash(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3u;
  }
  return hash;
}

}  // namespace

size_t JobRoutes::Of(const std::string& job) const {
  std::shared_lock lock(mutex_);
  auto found = jobs_.find(job);
  return found == jobs_.end() ? 0 : found->second.shard;
}

size_t JobRoutes::ForSubmission(const std::string& request_id, uint64_t random) const {
  if (request_id.empty()) return random % shards_;
  {
    std::shared_lock lock(mutex_);
    auto found = requests_.find(request_id);
    if (found != requests_.end()) return found->second;
  }
  return Hash(request_id) % shards_;
}

void JobRoutes::Add(const std::string& job, const std::string& request_id, size_t shard) {
  std::unique_lock lock(mutex_);
  jobs_[job] = {shard, request_id};
  if (!request_id.empty()) requests_[request_id] = shard;
}

void JobRoutes::Remove(const std::string& job) {
  std::unique_lock lock(mutex_);
  auto found = jobs_.find(job);
  if (found == jobs_.end()) return;
  requests_.erase(found->second.request_id);
  jobs_.erase(found);
}

}  // namespace kmosaic
