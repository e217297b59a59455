#include "agent_runner/small_thread.h"

#include <cstddef>
#include <utility>

#include "common/base/status.h"

namespace kmosaic {
namespace {

constexpr size_t kStackBytes = 1024 * 1024;

}  // namespace

SmallThread::SmallThread(std::function<void()> body) : body_(std::move(body)) {}

absl::StatusOr<std::unique_ptr<SmallThread>> SmallThread::Start(std::function<void()> body) {
  std::unique_ptr<SmallThread> thread(new SmallThread(std::move(body)));
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  int error = pthread_create(&thread->thread_, &attributes, &SmallThread::Enter, thread.get());
  pthread_attr_destroy(&attributes);
  if (error != 0) {
    return absl::ResourceExhaustedError(ErrnoStatus(error, "start a thread").message());
  }
  thread->started_ = true;
  return thread;
}

SmallThread::~SmallThread() {
  if (started_) pthread_join(thread_, nullptr);
}

void* SmallThread::Enter(void* self) {
  static_cast<SmallThread*>(self)->body_();
  return nullptr;
}

}  // namespace kmosaic
