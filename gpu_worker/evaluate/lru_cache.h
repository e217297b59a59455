// Values by key, the least recently used first out.
#ifndef KMOSAIC_GPU_WORKER_EVALUATE_LRU_CACHE_H_
#define KMOSAIC_GPU_WORKER_EVALUATE_LRU_CACHE_H_

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace kmosaic {

// Thread-safe. Values are shared and immutable: one that was taken out stays valid.
template <typename Value>
class LruCache {
 public:
  explicit LruCache(uint64_t max_bytes) : max_bytes_(max_bytes) {}

  // Null when there is none.
  std::shared_ptr<const Value> Find(const std::string& key) {
    std::lock_guard lock(mutex_);
    auto found = index_.find(key);
    if (found == index_.end()) return nullptr;
    order_.splice(order_.begin(), order_, found->second);
    return found->second->value;
  }

  // `bytes` without the key. Replaces what is there; a value that is too large by itself
  // is not kept.
  void Put(const std::string& key, std::shared_ptr<const Value> value, uint64_t bytes) {
    std::lock_guard lock(mutex_);
    if (auto found = index_.find(key); found != index_.end()) Remove(found->second);
    bytes += key.size() + kOverheadBytes;
    if (bytes > max_bytes_) return;
    order_.push_front({key, std::move(value), bytes});
    index_[key] = order_.begin();
    bytes_ += bytes;
    while (bytes_ > max_bytes_) Remove(std::prev(order_.end()));
  }

  uint64_t size_bytes() const {
    std::lock_guard lock(mutex_);
    return bytes_;
  }

 private:
  struct Entry {
    std::string key;
    std::shared_ptr<const Value> value;
    uint64_t bytes = 0;
  };
  // Of an entry in both containers, about.
  static constexpr uint64_t kOverheadBytes = 256;

  void Remove(typename std::list<Entry>::iterator entry) {
    bytes_ -= entry->bytes;
    index_.erase(entry->key);
    order_.erase(entry);
  }

  mutable std::mutex mutex_;
  const uint64_t max_bytes_;
  uint64_t bytes_ = 0;
  std::list<Entry> order_;
  std::map<std::string, typename std::list<Entry>::iterator> index_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_EVALUATE_LRU_CACHE_H_
