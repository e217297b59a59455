// Jobs and their conversations as tables, lines and JSON. Pure.
#ifndef KMOSAIC_CLI_JOBS_JOB_VIEW_H_
#define KMOSAIC_CLI_JOBS_JOB_VIEW_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "cli/output/progress.h"
#include "cli/program/host.h"
#include "common/base/enum_names.h"

namespace kmosaic {

// One row for each job.
std::string JobTable(const Host& host, const std::vector<v1::Job>& jobs, absl::Time now);

// All about one job, a line for each thing.
std::string JobSummary(const Host& host, const v1::Job& job, absl::Time now);

// One row for each conversation: task, views, verdict, stop reason, turns, tokens, gain. A
// column that no row has anything in is left out.
std::string ItemTable(const Host& host, const std::vector<v1::Item>& items);

// "16 conversations: 15 verified, 1 not; 41 turns, 52.3k tokens" and what the gain means.
std::string ItemTotals(const std::vector<v1::Item>& items);

// What the live bar shows.
Progress JobProgress(const std::string& name, const v1::JobCounts& counts,
                     const std::string& unsatisfiable);

// "12  row-softmax  leased -> done  PASSED": one event as a line.
std::string EventLine(const v1::JobEvent& event);

// Without the text of the recordings, which can be megabytes: their size instead.
nlohmann::ordered_json JobJson(const v1::Job& job);

// Whether every conversation of the job ended verified.
bool AllVerified(const v1::JobCounts& counts);

}  // namespace kmosaic

#endif  // KMOSAIC_CLI_JOBS_JOB_VIEW_H_
