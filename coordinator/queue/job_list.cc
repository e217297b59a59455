#include "coordinator/queue/job_list.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace kmosaic {
namespace {

constexpr uint32_t kDefaultPage = 50;
constexpr uint32_t kMaxPage = 1000;

std::tuple<int64_t, int32_t> CreatedAt(const v1::Job& job) {
  return {job.created().seconds(), job.created().nanos()};
}

}  // namespace

size_t JobPageSize(uint32_t asked) { return asked == 0 ? kDefaultPage : std::min(asked, kMaxPage); }

absl::StatusOr<std::vector<uint64_t>> ParseJobPage(const std::string& token, size_t shards) {
  std::vector<uint64_t> before(shards, std::numeric_limits<uint64_t>::max());
  if (token.empty()) return before;
  std::vector<std::string> parts = absl::StrSplit(token, ',');
  bool valid = parts.size() == shards;
  for (size_t i = 0; valid && i < shards; ++i) valid = absl::SimpleAtoi(parts[i], &before[i]);
  if (valid) return before;
  return absl::InvalidArgumentError(
      absl::StrCat("page_token '", token, "' is not one that a List returned"));
}

v1::ListJobsResponse MergeJobs(std::vector<NumberedJobs> lists, std::vector<uint64_t> before,
                               size_t size) {
  v1::ListJobsResponse response;
  std::vector<size_t> next(lists.size(), 0);
  auto newest = [&] {
    size_t best = lists.size();
    for (size_t shard = 0; shard < lists.size(); ++shard) {
      if (next[shard] == lists[shard].size()) continue;
      if (best == lists.size() ||
          CreatedAt(lists[shard][next[shard]].second) > CreatedAt(lists[best][next[best]].second)) {
        best = shard;
      }
    }
    return best;
  };
  while (static_cast<size_t>(response.jobs_size()) < size) {
    size_t shard = newest();
    if (shard == lists.size()) break;
    auto& [number, job] = lists[shard][next[shard]++];
    before[shard] = number;
    *response.add_jobs() = std::move(job);
  }
  if (newest() < lists.size()) response.set_next_page_token(absl::StrJoin(before, ","));
  return response;
}

}  // namespace kmosaic
