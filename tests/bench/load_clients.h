// Simulated clients of a coordinator, each with a connection of its own, as a runner or a
// submitter in another process would have.
#ifndef KMOSAIC_TESTS_BENCH_LOAD_CLIENTS_H_
#define KMOSAIC_TESTS_BENCH_LOAD_CLIENTS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernelmosaic/v1/job.grpc.pb.h"
#include "kernelmosaic/v1/runner.grpc.pb.h"

namespace kmosaic {

namespace v1 = kernelmosaic::v1;

std::shared_ptr<grpc::Channel> OwnConnection(const std::string& target, int number);

// A task whose serialized form is about `payload_bytes` longer than an empty one.
v1::TaskSpec LoadTask(uint64_t number, size_t payload_bytes);
v1::JobSpec LoadSpec(const std::string& name, uint32_t weight);

// A job with the tasks first..first+count-1; its id.
absl::StatusOr<std::string> SubmitJob(v1::JobService::Stub& stub, const v1::JobSpec& spec,
                                      uint64_t first, uint64_t count, size_t payload_bytes);

// How a worker of the load talks to the coordinator. One thread at a time.
class LoadClient {
 public:
  virtual ~LoadClient() = default;
  // Adds tasks first..first+count-1; durable when it returns.
  virtual absl::Status Submit(uint64_t first, uint64_t count) = 0;
  // Completes what it holds, then leases up to `free` items, waiting at most a second for
  // the first. `free` 0: only completes.
  virtual absl::StatusOr<uint64_t> CompleteAndLease(uint32_t free) = 0;
};

// Over Session and Extend: what it holds is completed in the message that asks for more.
absl::StatusOr<std::unique_ptr<LoadClient>> MakeSessionClient(const std::string& target, int number,
                                                              const std::string& job,
                                                              size_t payload_bytes);
// Over unary calls: Submit of a job for each call, Sync, a Complete for each item.
std::unique_ptr<LoadClient> MakeUnaryClient(const std::string& target, int number,
                                            size_t payload_bytes);

}  // namespace kmosaic

#endif  // KMOSAIC_TESTS_BENCH_LOAD_CLIENTS_H_
