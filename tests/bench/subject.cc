#include "tests/bench/subject.h"

#include <signal.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/lifecycle/ready_line.h"

namespace kmosaic {

absl::Status Subject::Start() {
  absl::Time begin = absl::Now();
  ChildProcess::Options options;
  options.argv = {program_,
                  "--data-dir",
                  data_dir_,
                  "--log-level",
                  "error",
                  "--listen",
                  target_.empty() ? "127.0.0.1:0" : target_};
  options.argv.insert(options.argv.end(), options_.begin(), options_.end());
  options.pipe_stdout = true;
  absl::StatusOr<ChildProcess> child = ChildProcess::Start(options);
  if (!child.ok()) return child.status();
  child_ = std::make_unique<ChildProcess>(*std::move(child));
  absl::StatusOr<std::string> line = child_->ReadLine(absl::Minutes(10));
  if (!line.ok()) return line.status();
  absl::StatusOr<ReadyLine> ready = ParseReadyLine(*line);
  if (!ready.ok()) return ready.status();
  target_ = ready->grpc;
  start_seconds_ = absl::ToDoubleSeconds(absl::Now() - begin);
  return absl::OkStatus();
}

absl::Status Subject::Stop() {
  child_->Signal(SIGTERM);
  if (!child_->Wait(absl::Minutes(2)).has_value()) return absl::InternalError("it did not stop");
  child_.reset();
  return absl::OkStatus();
}

absl::Status Subject::Kill() {
  child_->Signal(SIGKILL);
  if (!child_->Wait(absl::Minutes(1)).has_value()) return absl::InternalError("it did not die");
  child_.reset();
  return absl::OkStatus();
}

absl::Status Subject::Check() const {
  ChildProcess::Options options;
  options.argv = {program_, "--data-dir", data_dir_, "--check"};
  absl::StatusOr<ChildProcess> child = ChildProcess::Start(options);
  if (!child.ok()) return child.status();
  std::optional<int> code = child->Wait(absl::Minutes(10));
  if (code == 0) return absl::OkStatus();
  return absl::DataLossError("the store contradicts itself");
}

}  // namespace kmosaic
