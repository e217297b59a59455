// SIGTERM and SIGINT as a process sees them: the first asks to drain, the second to
// stop at once.
#ifndef KMOSAIC_COMMON_LIFECYCLE_SHUTDOWN_H_
#define KMOSAIC_COMMON_LIFECYCLE_SHUTDOWN_H_

#include <functional>
#include <memory>

namespace kmosaic {

// Make it in main before any other thread: it blocks the two signals for all threads
// and takes them in a thread of its own.
class ShutdownSignals {
 public:
  // `on_drain` runs on that thread at the first signal; a second signal ends the
  // process at once with exit code 4 (interrupted).
  explicit ShutdownSignals(std::function<void()> on_drain);
  ~ShutdownSignals();
  ShutdownSignals(const ShutdownSignals&) = delete;
  ShutdownSignals& operator=(const ShutdownSignals&) = delete;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Blocks until set. Thread-safe.
class Event {
 public:
  Event();
  ~Event();
  void Set();
  bool IsSet() const;
  void Wait();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_COMMON_LIFECYCLE_SHUTDOWN_H_
