// Job files as docs/tasks.md defines them, with the tasks that they name.
#ifndef KMOSAIC_CLI_TASKFILES_JOB_FILE_H_
#define KMOSAIC_CLI_TASKFILES_JOB_FILE_H_

#include <optional>
#include <string>
#include <vector>

#include "cli/taskfiles/problems.h"
#include "cli/taskfiles/task_folder.h"
#include "kernelmosaic/v1/job.pb.h"

namespace kmosaic {

inline constexpr size_t kMaxJobFileBytes = 1024 * 1024;

struct JobFile {
  std::string path;
  kernelmosaic::v1::JobSpec spec;
  // In the order of submission.
  std::vector<TaskFolder> tasks;
  // What is allowed but probably not meant, with its place.
  std::vector<std::string> warnings;
};

// Reads the file, its task folders and its recordings. `overrides` as for
// YamlDocument::Parse. Nothing, and all problems of all files, when anything is wrong.
std::optional<JobFile> ReadJobFile(const std::string& path,
                                   const std::vector<std::string>& overrides, Problems& problems);

// One conversation to be held.
struct PlannedItem {
  size_t task;
  int views;
  uint32_t sample;
};

// As the coordinator splits the job: task by task, view set by view set, sample by sample.
std::vector<PlannedItem> PlanItems(const kernelmosaic::v1::JobSpec& spec, size_t tasks);

}  // namespace kmosaic

#endif  // KMOSAIC_CLI_TASKFILES_JOB_FILE_H_
