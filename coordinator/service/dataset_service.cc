#include "coordinator/service/dataset_service.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "coordinator/dataset/direct.h"
#include "coordinator/dataset/filter.h"
#include "coordinator/dataset/split.h"
#include "coordinator/dataset/trajectory.h"
#include "coordinator/queue/reader.h"

namespace kmosaic {
namespace {

// One export under way.
class Exporter {
 public:
  // `write` says whether the client still reads.
  Exporter(const v1::ExportRequest& request, std::function<bool(v1::ExportRow)> write)
      : request_(request), write_(std::move(write)) {}

  absl::Status Job(const JobReader& reader, const std::string& id) {
    return reader.ForEachItem(0, [&](const v1::Item& item) { return Item(reader, id, item); });
  }

  const v1::ExportSummary& summary() const { return summary_; }

 private:
  absl::StatusOr<bool> Item(const JobReader& reader, const std::string& job, const v1::Item& item) {
    summary_.set_items(summary_.items() + 1);
    if (auto why = WhyItemDropped(item, request_)) return Drop(*why);
    KMOSAIC_ASSIGN_OR_RETURN(v1::TaskSpec task, reader.ReadTask(item.id().number()));
    KMOSAIC_ASSIGN_OR_RETURN(std::vector<v1::Step> steps, reader.ReadSteps(item.id().number()));
    std::string split(SplitOfTask(task.id()));
    absl::StatusOr<Record> record =
        MakeRecord(job, reader.spec(), item, std::move(task), std::move(steps));
    if (!record.ok()) return Drop(WhyNoRecord(record.status()));
    if (auto why = WhyRecordDropped(*record, request_)) return Drop(*why);
    v1::ExportRow row;
    row.set_json(ToLine(request_.format() == v1::EXPORT_FORMAT_DIRECT ? DirectRow(*record)
                                                                      : TrajectoryRow(*record)));
    row.set_split(std::move(split));
    summary_.set_rows(summary_.rows() + 1);
    if (!write_(std::move(row))) return absl::CancelledError("the client went away");
    return true;
  }

  bool Drop(const std::string& why) {
    ++(*summary_.mutable_dropped())[why];
    return true;
  }

  const v1::ExportRequest& request_;
  const std::function<bool(v1::ExportRow)> write_;
  v1::ExportSummary summary_;
};

}  // namespace

grpc::Status DatasetService::Export(grpc::ServerContext*, const v1::ExportRequest* request,
                                    grpc::ServerWriter<v1::ExportResponse>* writer) {
  if (absl::Status status = CheckExport(*request); !status.ok()) return ToGrpc(status);
  std::vector<std::string> jobs;
  for (const std::string& job : request->jobs()) {
    if (std::find(jobs.begin(), jobs.end(), job) != jobs.end()) continue;
    if (auto reader = JobReader::Open(queue_.StoreOf(job), job); !reader.ok())
      return ToGrpc(reader.status());
    jobs.push_back(job);
  }
  Exporter exporter(*request, [&](v1::ExportRow row) {
    v1::ExportResponse response;
    *response.mutable_row() = std::move(row);
    metrics_.rows.Increment();
    return writer->Write(response);
  });
  for (const std::string& job : jobs) {
    // Opened anew: a snapshot is not to be kept for the time of the whole export.
    absl::StatusOr<JobReader> reader = JobReader::Open(queue_.StoreOf(job), job);
    if (!reader.ok()) return ToGrpc(reader.status());
    if (absl::Status status = exporter.Job(*reader, job); !status.ok()) {
      return ToGrpc(Annotate(status, absl::StrCat("export of ", job)));
    }
  }
  v1::ExportResponse last;
  *last.mutable_summary() = exporter.summary();
  writer->Write(last);
  return grpc::Status::OK;
}

}  // namespace kmosaic
