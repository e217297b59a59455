// What a collect process recorded.
#ifndef KMOSAIC_GPU_WORKER_EVALUATE_EXTENSION_SOURCE_H_
#define KMOSAIC_GPU_WORKER_EVALUATE_EXTENSION_SOURCE_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "gpu_worker/compile/build_plan.h"

namespace kmosaic {

// `list` is the "extensions" of a reply, from an untrusted process. INVALID_ARGUMENT when
// it is not as agreed or holds more than 64 extensions.
absl::StatusOr<std::vector<ExtensionSource>> ParseExtensions(const nlohmann::json& list);

// How often a Python text calls load_inline or load, by its words: a hint at how many
// extensions there may be, no more.
size_t CountBuildCalls(const std::string& python);

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_EVALUATE_EXTENSION_SOURCE_H_
