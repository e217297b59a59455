// Looks at values wherever they lie.
#ifndef KMOSAIC_GPU_WORKER_EVALUATE_EXAMINER_H_
#define KMOSAIC_GPU_WORKER_EVALUATE_EXAMINER_H_

#include <optional>

#include "absl/status/statusor.h"
#include "gpu_worker/evaluate/comparator.h"
#include "gpu_worker/evaluate/parcel.h"

namespace kmosaic {

// Thread-safe. INVALID_ARGUMENT: what a solution gave (`got`, `after`) is not what it was said
// to be; every other status is the machine's trouble.
class Examiner {
 public:
  virtual ~Examiner() = default;

  // Where the values lie that it is made for; those in our own memory it always takes.
  virtual BlockMemory memory() const = 0;
  virtual absl::StatusOr<OutputSummary> Summarize(const Parcel& expected) = 0;
  // CompareOutputs; `expected64` may be null.
  virtual absl::StatusOr<Comparison> Compare(const Parcel& expected, const Parcel* expected64,
                                             const Parcel& got, const CompareOptions& options) = 0;
  virtual absl::StatusOr<std::optional<Difference>> FirstDifference(const Parcel& before,
                                                                    const Parcel& after) = 0;
  // The same in our own memory.
  virtual absl::StatusOr<Parcel> ToHost(const Parcel& parcel) = 0;
};

// Of values in our own memory.
class HostExaminer : public Examiner {
 public:
  BlockMemory memory() const override { return BlockMemory::kHost; }
  absl::StatusOr<OutputSummary> Summarize(const Parcel& expected) override;
  absl::StatusOr<Comparison> Compare(const Parcel& expected, const Parcel* expected64,
                                     const Parcel& got, const CompareOptions& options) override;
  absl::StatusOr<std::optional<Difference>> FirstDifference(const Parcel& before,
                                                            const Parcel& after) override;
  absl::StatusOr<Parcel> ToHost(const Parcel& parcel) override { return parcel; }
};

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_EVALUATE_EXAMINER_H_
