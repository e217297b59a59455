// The reference program of one task: inputs and expected outputs from seeds.
#ifndef KMOSAIC_GPU_WORKER_EVALUATE_REFERENCE_H_
#define KMOSAIC_GPU_WORKER_EVALUATE_REFERENCE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "gpu_worker/evaluate/cancellation.h"
#include "gpu_worker/evaluate/limits.h"
#include "gpu_worker/evaluate/parcel.h"
#include "gpu_worker/evaluate/role.h"
#include "gpu_worker/evaluate/verdict.h"
#include "gpu_worker/sandbox/unique_fd.h"
#include "kernelmosaic/v1/types.pb.h"

namespace kmosaic {

// What a task is at certain shapes.
struct TaskShape {
  Parcel init;
  // Sizes that were reduced, with what they are now.
  std::map<std::string, int64_t> shapes;
  // Every size that the program names, as its source has it.
  std::map<std::string, int64_t> sizes;
  std::vector<std::string> families;
  std::vector<std::string> notes;
  // Of one call: of its matrix products, convolutions and attention.
  uint64_t multiply_adds = 0;
  uint64_t parameter_bytes = 0;
  // Of the inputs and outputs of one call.
  uint64_t case_bytes = 0;
  // Whose random generator gives a constructor its weights: "cpu" or "cuda".
  std::string weights_on = "cpu";
};

// One set of inputs with the expected outputs.
struct TaskCase {
  uint64_t seed = 0;
  std::string family;
  // Of the constructor; unset for the weights that the reference was loaded with.
  std::optional<uint64_t> weight_seed;
  Parcel inputs;
  Parcel expected;
  std::optional<Parcel> expected64;
  // state_dict of the reference; only when asked for.
  std::optional<Parcel> parameters;
  std::optional<int64_t> reduction;
  // Leaves of the inputs whose elements a timed call's key changes.
  std::vector<uint32_t> fresh;
  std::vector<std::string> notes;

  uint64_t size_bytes() const;
};

// Results of references, by content, least recently used first out. Thread-safe.
class ReferenceCache {
 public:
  explicit ReferenceCache(uint64_t max_bytes);
  ~ReferenceCache();
  std::shared_ptr<const TaskShape> FindShape(const std::string& key);
  std::shared_ptr<const TaskCase> FindCase(const std::string& key);
  void Put(const std::string& key, std::shared_ptr<const TaskShape> shape);
  void Put(const std::string& key, std::shared_ptr<const TaskCase> task_case);
  uint64_t size_bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

template <typename T>
using OrConclusion = std::variant<std::shared_ptr<const T>, Conclusion>;

// For one evaluation; starts the process when something is asked that the cache does not
// have. Not thread-safe (the cancellation is).
class Reference {
 public:
  struct Options {
    kernelmosaic::v1::Oracle oracle;
    std::string device;  // "emulated", "cuda"
    // Where the trees of cases lie.
    BlockMemory memory = BlockMemory::kHost;
    double scale = 1;
    uint64_t weight_seed = 0;
    // Weights come from the CPU's generator even where that is slow.
    bool weights_on_cpu = false;
    bool want_parameters = false;
    std::string torch;  // version, for the cache's key
    EvaluationLimits limits;
  };
  Reference(Options options, RoleStarter* starter, ReferenceCache* cache,
            Cancellation* cancellation);
  ~Reference();

  // INVALID_TASK with the Python error, UNSUPPORTED, or INFRASTRUCTURE when it fails.
  OrConclusion<TaskShape> Shape();
  // `keep`: for seeds that come again, whose expected values are in float64 too however long that
  // takes; cases in memory of a GPU are not kept, since who gets
  // them can write them.
  OrConclusion<TaskCase> Case(uint64_t seed, const std::string& family, bool keep);
  // The task's own values, the program constructed anew with other weights. Never kept.
  OrConclusion<TaskCase> CaseWithWeights(uint64_t seed, uint64_t weight_seed);
  // Computed anew, past the cache.
  OrConclusion<TaskCase> Repeat(const TaskCase& task_case);
  // The inputs of `seed` changed by the key of a timed call, and what is expected of them.
  OrConclusion<TaskCase> TimedCase(uint64_t seed, uint64_t key);

  // Timed calls of the program itself (harness/timing.py), on the inputs of `seed`; under
  // torch.compile when `compiled`. The reply's further fields are in harness/reference.py.
  std::variant<nlohmann::json, Conclusion> BeginTiming(uint64_t seed, bool compiled);
  // The answer to one timed call, not looked into.
  std::variant<nlohmann::json, Conclusion> TimeCall(uint64_t key);

  // Stands for all that decides what the program computes: text, shapes, weights, device
  // kind, torch.
  const std::string& key() const { return key_; }

 private:
  // Why it is not; said again to each who asks.
  std::optional<Conclusion> EnsureLoaded();
  std::optional<Conclusion> Load();
  std::variant<Frame, Conclusion> Call(const nlohmann::json& request, const std::string& doing,
                                       absl::Duration limit);
  // `key`: of a timed call.
  OrConclusion<TaskCase> Compute(uint64_t seed, const std::string& family,
                                 std::optional<uint64_t> weight_seed, std::optional<uint64_t> key,
                                 bool always64);

  const Options options_;
  RoleStarter* const starter_;
  ReferenceCache* const cache_;
  Cancellation* const cancellation_;
  std::string key_;
  std::unique_ptr<Role> role_;
  std::optional<Conclusion> load_failure_;
  Cancellation::Callback on_cancel_;
  std::shared_ptr<const TaskShape> shape_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_EVALUATE_REFERENCE_H_
