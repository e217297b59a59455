// JobService as commands use it: whole lists, retries, resumed streams.
#ifndef KMOSAIC_CLI_JOBS_JOB_CLIENT_H_
#define KMOSAIC_CLI_JOBS_JOB_CLIENT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/program/connection.h"
#include "cli/program/host.h"
#include "kernelmosaic/v1/job.grpc.pb.h"

namespace kmosaic {

namespace v1 = kernelmosaic::v1;

// `host` must outlive it. One thread.
class JobClient {
 public:
  JobClient(const Host& host, Connection connection);

  // Submits under `request_id` (not empty), again when the connection was cut: the id makes
  // sure that there is one job.
  absl::StatusOr<v1::SubmitResponse> Submit(const std::string& request_id, const v1::JobSpec& spec,
                                            const std::vector<v1::TaskSpec>& tasks);

  absl::StatusOr<v1::Job> Get(const std::string& id);
  absl::StatusOr<v1::Job> Cancel(const std::string& id);
  absl::StatusOr<v1::Job> Pause(const std::string& id);
  absl::StatusOr<v1::Job> Resume(const std::string& id);
  absl::StatusOr<v1::Job> Delete(const std::string& id);
  // Number of items that are READY again.
  absl::StatusOr<uint64_t> Retry(const std::string& id, const std::vector<v1::ItemState>& states,
                                 const std::vector<uint32_t>& items = {});
  // Number of dead letters that are given up; without `items` all of the job.
  absl::StatusOr<uint64_t> PurgeDeadLetters(const std::string& id,
                                            const std::vector<uint32_t>& items);

  // All pages.
  absl::StatusOr<std::vector<v1::Job>> List();
  absl::StatusOr<std::vector<v1::Item>> ListItems(const std::string& job,
                                                  const std::vector<v1::ItemState>& states = {});
  // FAILED and DEAD items; of all jobs when `job` is empty.
  absl::StatusOr<std::vector<v1::Item>> ListDeadLetters(const std::string& job);
  absl::StatusOr<v1::ItemDetail> GetItem(const std::string& job, uint32_t number);

  // Calls `on_event` for each event from `from_seq` on, and `on_idle` at least every 200 ms,
  // both on this thread, until the job is finished. A lost connection is taken up again
  // where it ended; UNAVAILABLE when there is none for `patience` (ask for the job first to
  // fail at once). CANCELLED on Ctrl-C or when `on_event` returns false.
  absl::Status Watch(const std::string& id, uint64_t from_seq,
                     const std::function<bool(const v1::JobEvent&)>& on_event,
                     const std::function<void()>& on_idle,
                     absl::Duration patience = absl::Minutes(2));

  const Connection& connection() const { return connection_; }

 private:
  absl::Status WatchOnce(const std::string& id, uint64_t& next_seq,
                         const std::function<bool(const v1::JobEvent&)>& on_event,
                         const std::function<void()>& on_idle);

  const Host& host_;
  Connection connection_;
  std::unique_ptr<v1::JobService::Stub> stub_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_CLI_JOBS_JOB_CLIENT_H_
