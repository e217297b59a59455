// Who asked for what: a line of JSON for each call that changes jobs or the fleet.
#ifndef KMOSAIC_COORDINATOR_SERVICE_AUDIT_LOG_H_
#define KMOSAIC_COORDINATOR_SERVICE_AUDIT_LOG_H_

#include <grpcpp/server_context.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"

namespace kmosaic {

// Thread-safe. Lines are written before the call is answered and not synced: they outlive the
// process, but perhaps not a power cut in the next seconds. A file that is full becomes
// PATH.1, in place of an older one.
class AuditLog {
 public:
  // `clock` must outlive it. The error names the file.
  static absl::StatusOr<std::unique_ptr<AuditLog>> Open(const std::string& path, const Clock& clock,
                                                        uint64_t max_bytes = 64u << 20);
  ~AuditLog();
  AuditLog(const AuditLog&) = delete;
  AuditLog& operator=(const AuditLog&) = delete;

  struct Entry {
    // As gRPC names the other side.
    std::string peer;
    // "cancel", "drain".
    std::string verb;
    // Job, worker or directory.
    std::string subject;
    // Also those that were refused.
    absl::Status outcome;
  };
  // One that cannot be written is logged; the call goes on.
  void Add(const Entry& entry);

 private:
  AuditLog(std::string path, const Clock& clock, uint64_t max_bytes);
  absl::Status OpenFile() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Write(const std::string& line) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string path_;
  const Clock& clock_;
  const uint64_t max_bytes_;
  std::mutex mutex_;
  int file_ ABSL_GUARDED_BY(mutex_) = -1;
  uint64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

// `done`, which first notes the outcome in `log` (null: there is none).
template <typename T>
std::function<void(absl::StatusOr<T>)> Audited(AuditLog* log,
                                               const grpc::CallbackServerContext& context,
                                               const char* verb, const std::string& subject,
                                               std::function<void(absl::StatusOr<T>)> done) {
  if (log == nullptr) return done;
  return [log, peer = context.peer(), verb, subject,
          done = std::move(done)](absl::StatusOr<T> result) {
    log->Add({peer, verb, subject, result.status()});
    done(std::move(result));
  };
}

}  // namespace kmosaic

#endif  // KMOSAIC_COORDINATOR_SERVICE_AUDIT_LOG_H_
