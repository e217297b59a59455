// The sections endpoint, sampling, budget and evaluation of a job file.
#ifndef KMOSAIC_CLI_TASKFILES_JOB_SECTIONS_H_
#define KMOSAIC_CLI_TASKFILES_JOB_SECTIONS_H_

#include <set>
#include <string>

#include "cli/taskfiles/yaml_mapping.h"
#include "kernelmosaic/v1/job.pb.h"

namespace kmosaic {

// Each reads the section from the job's mapping and leaves the defaults of docs/tasks.md
// where a key is absent. `folder` is where relative paths start.

// Returns the tasks that a replay endpoint has recordings for; empty for other kinds.
std::set<std::string> ReadEndpointSection(YamlMapping& job, const std::string& folder,
                                          kernelmosaic::v1::Endpoint& endpoint, Problems& problems);
void ReadSamplingSection(YamlMapping& job, kernelmosaic::v1::Sampling& sampling);
void ReadBudgetSection(YamlMapping& job, kernelmosaic::v1::Budget& budget);
void ReadEvaluationSection(YamlMapping& job, kernelmosaic::v1::EvaluationSpec& evaluation);

// Path relative to `folder` unless absolute, without "." and "..".
std::string ResolvePath(const std::string& folder, const std::string& path);

}  // namespace kmosaic

#endif  // KMOSAIC_CLI_TASKFILES_JOB_SECTIONS_H_
