// Writes an export so that a folder never holds half of one.
#ifndef KMOSAIC_CLI_DATASET_DATASET_WRITER_H_
#define KMOSAIC_CLI_DATASET_DATASET_WRITER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kernelmosaic/v1/dataset.pb.h"

namespace kmosaic {

// What an export is about; goes into manifest.json and the card.
struct DatasetInfo {
  // "trajectory" or "direct".
  std::string format;
  std::vector<std::string> jobs;
  bool include_emulated = false;
  bool include_unverified = false;
  // Unset when below zero.
  double min_speedup = -1;
  absl::Time created;
};

struct DatasetCounts {
  // Rows by split; only splits that have rows.
  std::map<std::string, uint64_t> rows;
  // Rows that the emulated device alone verified.
  uint64_t emulated = 0;
  // Rows without a verified solution, whatever judged them.
  uint64_t unverified = 0;
};

// Rows go to hidden temporary files in the folder; Finish makes them durable and gives them
// their names. Without Finish the destructor removes them, and what was there stays. One
// thread.
class DatasetWriter {
 public:
  // Makes the folder. FAILED_PRECONDITION when it holds files under our names that are not
  // an earlier export (a manifest.json of ours says that they are).
  static absl::StatusOr<std::unique_ptr<DatasetWriter>> Open(const std::string& folder);
  ~DatasetWriter();
  DatasetWriter(const DatasetWriter&) = delete;
  DatasetWriter& operator=(const DatasetWriter&) = delete;

  // DATA_LOSS when the row is not one JSON object or its split is none of train, validation
  // and test.
  absl::Status Add(const kernelmosaic::v1::ExportRow& row);

  // Writes manifest.json and README.md, then replaces an earlier export as a whole: the
  // manifest goes first and comes last, so a crash in between leaves no folder that looks
  // complete.
  absl::Status Finish(const DatasetInfo& info, const kernelmosaic::v1::ExportSummary& summary);

  const DatasetCounts& counts() const { return counts_; }

 private:
  class File;

  explicit DatasetWriter(std::string folder);
  // The temporary file behind `name`, made with the first call.
  absl::StatusOr<File*> Temporary(const std::string& name);
  absl::Status WriteWhole(const std::string& name, const std::string& text);

  std::string folder_;
  // By final name.
  std::map<std::string, std::unique_ptr<File>> files_;
  DatasetCounts counts_;
};

// The dataset card. Pure.
std::string DatasetCard(const DatasetInfo& info, const DatasetCounts& counts,
                        const kernelmosaic::v1::ExportSummary& summary);

}  // namespace kmosaic

#endif  // KMOSAIC_CLI_DATASET_DATASET_WRITER_H_
