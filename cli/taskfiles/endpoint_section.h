// The sections endpoint and endpoints of a job file.
#ifndef KMOSAIC_CLI_TASKFILES_ENDPOINT_SECTION_H_
#define KMOSAIC_CLI_TASKFILES_ENDPOINT_SECTION_H_

#include <set>
#include <string>

#include "cli/taskfiles/yaml_mapping.h"
#include "kernelmosaic/v1/job.pb.h"

namespace kmosaic {

// Reads `endpoint`, or `endpoints` of which the first becomes JobSpec.endpoint, with the
// defaults of docs/tasks.md where a key is absent. `folder` is where relative paths start.
// Returns the tasks that a replay endpoint has recordings for; empty for other kinds.
std::set<std::string> ReadEndpoints(YamlMapping& job, const std::string& folder,
                                    kernelmosaic::v1::JobSpec& spec, Problems& problems);

}  // namespace kmosaic

#endif  // KMOSAIC_CLI_TASKFILES_ENDPOINT_SECTION_H_
