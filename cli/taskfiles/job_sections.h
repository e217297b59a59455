// The sections sampling, budget, job_budget and evaluation of a job file.
#ifndef KMOSAIC_CLI_TASKFILES_JOB_SECTIONS_H_
#define KMOSAIC_CLI_TASKFILES_JOB_SECTIONS_H_

#include <string>

#include "absl/time/time.h"
#include "cli/taskfiles/yaml_mapping.h"
#include "kernelmosaic/v1/job.pb.h"

namespace kmosaic {

// Each reads the section from the job's mapping and leaves the defaults of docs/tasks.md
// where a key is absent.
void ReadSamplingSection(YamlMapping& job, kernelmosaic::v1::Sampling& sampling);
void ReadBudgetSection(YamlMapping& job, kernelmosaic::v1::Budget& budget);
void ReadJobBudgetSection(YamlMapping& job, kernelmosaic::v1::JobSpec& spec);
void ReadEvaluationSection(YamlMapping& job, kernelmosaic::v1::EvaluationSpec& evaluation);

google::protobuf::Duration ToWireDuration(absl::Duration duration);

// Path relative to `folder` unless absolute, without "." and "..".
std::string ResolvePath(const std::string& folder, const std::string& path);

}  // namespace kmosaic

#endif  // KMOSAIC_CLI_TASKFILES_JOB_SECTIONS_H_
