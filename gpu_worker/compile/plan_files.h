// Puts a plan's files on disk.
#ifndef KMOSAIC_GPU_WORKER_COMPILE_PLAN_FILES_H_
#define KMOSAIC_GPU_WORKER_COMPILE_PLAN_FILES_H_

#include <string>

#include "absl/status/status.h"
#include "gpu_worker/compile/build_plan.h"

namespace kmosaic {

// Makes `directory` and writes the plan's files in it. INTERNAL when a name leads
// outside, else the file system's error with the path.
absl::Status WritePlanFiles(const BuildPlan& plan, const std::string& directory);

// Replaces what is there.
absl::Status WriteTextFile(const std::string& path, const std::string& text);

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_COMPILE_PLAN_FILES_H_
