#include "gpu_worker/evaluate/examiner.h"

namespace kmosaic {

absl::StatusOr<OutputSummary> HostExaminer::Summarize(const Parcel& expected) {
  return kmosaic::Summarize(expected.value);
}

absl::StatusOr<Comparison> HostExaminer::Compare(const Parcel& expected, const Parcel* expected64,
                                                 const Parcel& got, const CompareOptions& options) {
  return CompareOutputs(expected.value, expected64 == nullptr ? nullptr : &expected64->value,
                        got.value, options);
}

absl::StatusOr<std::optional<Difference>> HostExaminer::FirstDifference(const Parcel& before,
                                                                        const Parcel& after) {
  return kmosaic::FirstDifference(before.value, after.value);
}

}  // namespace kmosaic
