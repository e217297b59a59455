#include "coordinator/service/worker_channels.h"

#include <algorithm>

#include "common/rpc/channel.h"

namespace kmosaic {

std::shared_ptr<grpc::Channel> WorkerChannels::Get(const std::string& endpoint) {
  std::lock_guard lock(mutex_);
  Entry& entry = channels_[endpoint];
  entry.used = ++uses_;
  if (entry.channel == nullptr) entry.channel = MakeChannel(endpoint);
  std::shared_ptr<grpc::Channel> channel = entry.channel;
  if (channels_.size() > capacity_) {
    channels_.erase(std::min_element(
        channels_.begin(), channels_.end(),
        [](const auto& a, const auto& b) { return a.second.used < b.second.used; }));
  }
  return channel;
}

}  // namespace kmosaic
