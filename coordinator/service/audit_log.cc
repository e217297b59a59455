#include "coordinator/service/audit_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/base/text.h"
#include "common/log/log.h"

namespace kmosaic {

AuditLog::AuditLog(std::string path, const Clock& clock, uint64_t max_bytes)
    : path_(std::move(path)), clock_(clock), max_bytes_(max_bytes) {}

AuditLog::~AuditLog() {
  std::lock_guard lock(mutex_);
  if (file_ >= 0) close(file_);
}

absl::StatusOr<std::unique_ptr<AuditLog>> AuditLog::Open(const std::string& path,
                                                         const Clock& clock, uint64_t max_bytes) {
  std::unique_ptr<AuditLog> log(new AuditLog(path, clock, max_bytes));
  std::lock_guard lock(log->mutex_);
  KMOSAIC_RETURN_IF_ERROR(log->OpenFile());
  return log;
}

absl::Status AuditLog::OpenFile() {
  file_ = open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0640);
  if (file_ < 0) return ErrnoStatus(errno, absl::StrCat("open the audit log ", path_));
  struct stat status = {};
  bytes_ = fstat(file_, &status) == 0 ? static_cast<uint64_t>(status.st_size) : 0;
  return absl::OkStatus();
}

absl::Status AuditLog::Write(const std::string& line) {
  if (bytes_ + line.size() > max_bytes_ && bytes_ > 0) {
    close(file_);
    if (rename(path_.c_str(), (path_ + ".1").c_str()) != 0) {
      return ErrnoStatus(errno, absl::StrCat("rename the audit log ", path_));
    }
    KMOSAIC_RETURN_IF_ERROR(OpenFile());
  }
  ssize_t written = write(file_, line.data(), line.size());
  if (written != static_cast<ssize_t>(line.size())) {
    return ErrnoStatus(written < 0 ? errno : ENOSPC, absl::StrCat("write the audit log ", path_));
  }
  bytes_ += line.size();
  return absl::OkStatus();
}

void AuditLog::Add(const Entry& entry) {
  nlohmann::ordered_json json = {
      {"at", absl::FormatTime(absl::RFC3339_full, clock_.Wall(), absl::UTCTimeZone())},
      {"peer", ToValidUtf8(entry.peer)},
      {"verb", entry.verb},
      {"subject", ToValidUtf8(entry.subject)},
      {"outcome", absl::StatusCodeToString(entry.outcome.code())}};
  if (!entry.outcome.ok()) json["error"] = ToValidUtf8(std::string(entry.outcome.message()));
  std::lock_guard lock(mutex_);
  if (absl::Status status = Write(json.dump() + "\n"); !status.ok()) {
    LogError("a call is missing in the audit log",
             {{"verb", entry.verb}, {"subject", entry.subject}, {"error", status.ToString()}});
  }
}

}  // namespace kmosaic
