#include "common/lifecycle/shutdown.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <thread>

namespace kmosaic {
namespace {

constexpr int kExitInterrupted = 4;
// Sent by the destructor to its own thread only.
constexpr int kWakeSignal = SIGUSR2;

sigset_t HandledSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  sigaddset(&set, kWakeSignal);
  return set;
}

}  // namespace

struct ShutdownSignals::Impl {
  std::function<void()> on_drain;
  std::thread thread;

  void Run() {
    sigset_t set = HandledSignals();
    bool draining = false;
    while (true) {
      int signal_number = 0;
      sigwait(&set, &signal_number);
      if (signal_number == kWakeSignal) return;
      if (draining) _exit(kExitInterrupted);
      draining = true;
      on_drain();
    }
  }
};

ShutdownSignals::ShutdownSignals(std::function<void()> on_drain) : impl_(std::make_unique<Impl>()) {
  impl_->on_drain = std::move(on_drain);
  signal(SIGPIPE, SIG_IGN);
  sigset_t set = HandledSignals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  impl_->thread = std::thread([impl = impl_.get()] { impl->Run(); });
}

ShutdownSignals::~ShutdownSignals() {
  pthread_kill(impl_->thread.native_handle(), kWakeSignal);
  impl_->thread.join();
}

struct Event::Impl {
  mutable std::mutex mutex;
  std::condition_variable changed;
  bool set = false;
};

Event::Event() : impl_(std::make_unique<Impl>()) {}
Event::~Event() = default;

void Event::Set() {
  std::lock_guard lock(impl_->mutex);
  impl_->set = true;
  impl_->changed.notify_all();
}

bool Event::IsSet() const {
  std::lock_guard lock(impl_->mutex);
  return impl_->set;
}

void Event::Wait() {
  std::unique_lock lock(impl_->mutex);
  impl_->changed.wait(lock, [this] { return impl_->set; });
}

}  // namespace kmosaic
