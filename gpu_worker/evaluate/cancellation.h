// Tells everything that works for one request that nobody waits for it any more.
#ifndef KMOSAIC_GPU_WORKER_EVALUATE_CANCELLATION_H_
#define KMOSAIC_GPU_WORKER_EVALUATE_CANCELLATION_H_

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <utility>

namespace kmosaic {

// Thread-safe.
class Cancellation {
 public:
  // Called once, at the first Cancel, on its thread; at once when that was before. Ends
  // with the object.
  class Callback {
   public:
    Callback() = default;
    Callback(Cancellation* owner, int id) : owner_(owner), id_(id) {}
    Callback(Callback&& other) noexcept
        : owner_(std::exchange(other.owner_, nullptr)), id_(other.id_) {}
    Callback& operator=(Callback&& other) noexcept {
      Remove();
      owner_ = std::exchange(other.owner_, nullptr);
      id_ = other.id_;
      return *this;
    }
    ~Callback() { Remove(); }

   private:
    void Remove() {
      if (owner_ != nullptr) owner_->RemoveCallback(id_);
      owner_ = nullptr;
    }
    Cancellation* owner_ = nullptr;
    int id_ = 0;
  };

  bool cancelled() const { return cancelled_; }

  void Cancel() {
    std::lock_guard lock(mutex_);
    if (cancelled_.exchange(true)) return;
    // Under the lock, so that an object whose callback was removed is not touched.
    for (auto& [id, callback] : callbacks_) callback();
  }

  // `callback` must not call back into this object.
  [[nodiscard]] Callback OnCancel(std::function<void()> callback) {
    std::lock_guard lock(mutex_);
    if (cancelled_) {
      callback();
      return Callback();
    }
    callbacks_[++last_id_] = std::move(callback);
    return Callback(this, last_id_);
  }

 private:
  void RemoveCallback(int id) {
    std::lock_guard lock(mutex_);
    callbacks_.erase(id);
  }

  std::atomic<bool> cancelled_ = false;
  std::mutex mutex_;
  std::map<int, std::function<void()>> callbacks_;
  int last_id_ = 0;
};

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_EVALUATE_CANCELLATION_H_
