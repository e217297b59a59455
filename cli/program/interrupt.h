// Ctrl-C as commands see it.
#ifndef KMOSAIC_CLI_PROGRAM_INTERRUPT_H_
#define KMOSAIC_CLI_PROGRAM_INTERRUPT_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>

#include "absl/time/time.h"

namespace kmosaic {

// Thread-safe. Once triggered it stays so.
class Interrupt {
 public:
  void Trigger();
  bool triggered() const;

  // Waits at most `duration`; whether it was triggered.
  bool WaitFor(absl::Duration duration) const;

  // While a Scope lives, its callback runs when the interrupt is triggered (at once when
  // it already was). The callback must be quick and not use the interrupt.
  class Scope {
   public:
    Scope(Interrupt& interrupt, std::function<void()> callback);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Interrupt& interrupt_;
    uint64_t key_;
  };

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool triggered_ = false;
  uint64_t next_key_ = 0;
  std::map<uint64_t, std::function<void()>> callbacks_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_CLI_PROGRAM_INTERRUPT_H_
