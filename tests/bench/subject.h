// The coordinator that a load drives.
#ifndef KMOSAIC_TESTS_BENCH_SUBJECT_H_
#define KMOSAIC_TESTS_BENCH_SUBJECT_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/lifecycle/child_process.h"

namespace kmosaic {

// One thread at a time.
class Subject {
 public:
  // `options`: further options of the program.
  Subject(std::string program, std::string data_dir, std::vector<std::string> options = {})
      : program_(std::move(program)),
        data_dir_(std::move(data_dir)),
        options_(std::move(options)) {}

  // Serves when it returns; the second time at the address of the first.
  absl::Status Start();
  // Lets it end by itself.
  absl::Status Stop();
  // SIGKILL; gone when it returns.
  absl::Status Kill();
  // Has the program check the store, which nobody has open.
  absl::Status Check() const;

  const std::string& target() const { return target_; }
  pid_t pid() const { return child_->pid(); }
  double start_seconds() const { return start_seconds_; }

 private:
  const std::string program_;
  const std::string data_dir_;
  const std::vector<std::string> options_;
  std::unique_ptr<ChildProcess> child_;
  std::string target_;
  double start_seconds_ = 0;
};

}  // namespace kmosaic

#endif  // KMOSAIC_TESTS_BENCH_SUBJECT_H_
