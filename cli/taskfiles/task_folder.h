// Task folders as docs/tasks.md defines them.
#ifndef KMOSAIC_CLI_TASKFILES_TASK_FOLDER_H_
#define KMOSAIC_CLI_TASKFILES_TASK_FOLDER_H_

#include <optional>
#include <string>

#include "cli/taskfiles/problems.h"
#include "kernelmosaic/v1/types.pb.h"

namespace kmosaic {

// Largest file of a task folder.
inline constexpr size_t kMaxTaskFileBytes = 1024 * 1024;

struct TaskFolder {
  std::string path;
  kernelmosaic::v1::TaskSpec spec;
  // Of `id` in task.yaml.
  Location id_at;
};

// Nothing, and all that is wrong with the folder added to `problems`, when it is not a
// good task. Runs nothing: whether the reference works is for a worker to say.
std::optional<TaskFolder> ReadTaskFolder(const std::string& path, Problems& problems);

}  // namespace kmosaic

#endif  // KMOSAIC_CLI_TASKFILES_TASK_FOLDER_H_
