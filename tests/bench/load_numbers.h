// Latencies and CPU times of a load run.
#ifndef KMOSAIC_TESTS_BENCH_LOAD_NUMBERS_H_
#define KMOSAIC_TESTS_BENCH_LOAD_NUMBERS_H_

#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "absl/time/time.h"

namespace kmosaic {

// Seconds. One thread at a time.
class Latencies {
 public:
  void Add(absl::Duration latency) { seconds_.push_back(absl::ToDoubleSeconds(latency)); }
  void AddAll(const Latencies& other);
  size_t count() const { return seconds_.size(); }
  // The value below which `share` (0..1) of all lie; 0 when there is none.
  double Quantile(double share) const;

 private:
  mutable std::vector<double> seconds_;
};

// CPU seconds (user and system) that a process has used; 0 when it is gone.
double CpuSeconds(pid_t process);
// Resident memory in bytes.
uint64_t ResidentBytes(pid_t process);

}  // namespace kmosaic

#endif  // KMOSAIC_TESTS_BENCH_LOAD_NUMBERS_H_
