// A conversation that has seen everything: a compile error, a wrong answer, a repair, an
// optimisation that paid and one that was rolled back.
#ifndef KMOSAIC_TESTS_UNIT_DATASET_SAMPLE_RECORD_H_
#define KMOSAIC_TESTS_UNIT_DATASET_SAMPLE_RECORD_H_

#include "coordinator/dataset/record.h"

namespace kmosaic {

struct Sample {
  v1::JobSpec spec;
  v1::Item item;
  v1::TaskSpec task;
  std::vector<v1::Step> steps;

  // Adds a reply to the user's `question` and, unless the verdict is UNSPECIFIED, the
  // evaluation of `source`.
  void AddTurn(v1::Stage stage, const std::string& question, const std::string& source,
               v1::Verdict verdict);
  // The report of the newest result.
  v1::EvaluationReport& report();

  absl::StatusOr<Record> Make() const;
};

// Verified on the emulated device in its fourth turn.
Sample EmulatedSample();
// Verified on a GPU, twice as fast as eager.
Sample CudaSample();

}  // namespace kmosaic

#endif  // KMOSAIC_TESTS_UNIT_DATASET_SAMPLE_RECORD_H_
