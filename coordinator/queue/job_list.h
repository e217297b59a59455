// Pages of a list of jobs over several shards, newest first.
#ifndef KMOSAIC_COORDINATOR_QUEUE_JOB_LIST_H_
#define KMOSAIC_COORDINATOR_QUEUE_JOB_LIST_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "kernelmosaic/v1/job.pb.h"

namespace kmosaic {

namespace v1 = kernelmosaic::v1;

// Jobs of one shard with their numbers, newest first.
using NumberedJobs = std::vector<std::pair<uint64_t, v1::Job>>;

// Jobs of one page; `asked` 0 is the default.
size_t JobPageSize(uint32_t asked);

// For each shard the number below which its jobs are wanted. An empty token begins.
// INVALID_ARGUMENT when the token is not one that MergeJobs made for so many shards.
absl::StatusOr<std::vector<uint64_t>> ParseJobPage(const std::string& token, size_t shards);

// The newest `size` jobs. `lists` has for each shard its first jobs below `before`, one more
// than `size` where there are so many.
v1::ListJobsResponse MergeJobs(std::vector<NumberedJobs> lists, std::vector<uint64_t> before,
                               size_t size);

}  // namespace kmosaic

#endif  // KMOSAIC_COORDINATOR_QUEUE_JOB_LIST_H_
