// Measures how long a verified solution takes on a GPU, against the reference.
//
// Prepare, Measure, Judge, in this order; a step that does not pass ends it. What is timed has the
// device alone: a block of the eager baseline, then the solution in a process of its own and the
// baseline again; a baseline that is known from an earlier evaluation on this GPU is
// not measured again. Each call is asked for one by one with a new key, its time is
// bounded by this process's clock (timing_bounds.h), and the outputs of some, chosen after the
// call, are compared with those of the reference for the same key.
#ifndef KMOSAIC_GPU_WORKER_EVALUATE_BENCHMARK_H_
#define KMOSAIC_GPU_WORKER_EVALUATE_BENCHMARK_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/base/clock.h"
#include "gpu_worker/evaluate/candidate.h"
#include "gpu_worker/evaluate/device_use.h"
#include "gpu_worker/evaluate/examiner.h"
#include "gpu_worker/evaluate/lru_cache.h"
#include "gpu_worker/evaluate/reference.h"
#include "gpu_worker/evaluate/time_floor.h"
#include "gpu_worker/evaluate/timed_call.h"
#include "gpu_worker/evaluate/timing_bounds.h"
#include "gpu_worker/evaluate/timing_statistics.h"
#include "gpu_worker/evaluate/verdict.h"
#include "kernelmosaic/v1/types.pb.h"

namespace kmosaic {

// Times of a reference on one GPU.
struct Baseline {
  // Of the calls, both blocks together, on the current stream.
  TimingSummary summary;
  CallSurroundings around;
  // Median of the second block over that of the first; 0 with one block.
  double drift = 0;
  double launch_us = 0;
  bool tf32_matmul = false;
  bool tf32_cudnn = false;
};
using BaselineCache = LruCache<Baseline>;

// For one evaluation; not thread-safe.
class Benchmark {
 public:
  struct Options {
    kernelmosaic::v1::Oracle oracle;
    Candidate::Options candidate;
    // Name, uuid and driver of the GPU count for the baseline's key.
    kernelmosaic::v1::DeviceInfo device;
    bool compile_baseline = false;
    StopRule stop;
    WarmUp warm_up;
    const Clock* clock = nullptr;  // these outlive the benchmark
    BaselineCache* baselines = nullptr;
    std::function<uint64_t()> random;  // seeds, keys, and which calls are checked
  };
  // All outlive it.
  Benchmark(Options options, Reference* reference, Examiner* examiner, RoleStarter* starter,
            DeviceUse* device, Cancellation* cancellation);
  ~Benchmark();

  Conclusion Prepare();
  Conclusion Measure();
  // Fills `report.benchmark`, and only when it passes.
  Conclusion Judge(kernelmosaic::v1::EvaluationReport* report);

 private:
  // What a timed call gave, until it is compared.
  struct Kept {
    uint64_t key = 0;
    Parcel outputs;
  };
  using Calls = std::vector<TimedCall>;
  using OrCalls = std::variant<Calls, Conclusion>;
  using SampleFunction = std::function<std::variant<nlohmann::json, Conclusion>(uint64_t key)>;
  // Told of each call that counts: its key, the times so far with its own as the last one, and
  // whether it is the last call.
  using AfterFunction =
      std::function<Conclusion(uint64_t key, const std::vector<double>& times, bool last)>;

  OrCalls MeasureBlock(Untrusted whose, const StopRule& rule, const SampleFunction& sample,
                       const AfterFunction& after);
  OrCalls MeasureBaselineBlock();
  // Loads the reference's side; the times of launching and the policies go to `baseline`.
  Conclusion BeginBaseline(bool compiled, Baseline* baseline);
  Conclusion MeasureCompiled();
  Conclusion MeasureEager(Baseline* eager, Calls* first);
  Conclusion MeasureCandidate(Candidate& candidate);
  // Runs `what` with the device alone.
  Conclusion Alone(const std::function<Conclusion()>& what);
  // Keeps what some of the calls gave, each with the same chance however many there will be: of
  // the faster half, where leaving work out would show.
  Conclusion Keep(Candidate& candidate, uint64_t key, const std::vector<double>& times, bool last);
  Conclusion Check(const Kept& kept);
  Conclusion JudgeTimes(kernelmosaic::v1::BenchmarkReport* benchmark);
  std::string BaselineKey(bool compiled) const;
  std::optional<TimeFloor> Floor() const;
  uint64_t Key() { return options_.random() >> 1; }
  void Note(const std::string& note);

  const Options options_;
  Reference* const reference_;
  Examiner* const examiner_;
  RoleStarter* const starter_;
  DeviceUse* const device_;
  Cancellation* const cancellation_;
  absl::Duration start_;
  std::shared_ptr<const TaskShape> shape_;
  std::shared_ptr<const TaskCase> base_;  // inputs that every call starts from
  std::shared_ptr<const Baseline> eager_;
  std::shared_ptr<const Baseline> compiled_;
  bool eager_cached_ = false;
  Calls calls_;  // of the solution
  size_t checks_wanted_ = 0;
  std::vector<Kept> kept_;
  uint64_t candidates_for_check_ = 0;  // calls that could have been kept
  std::vector<std::string> notes_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_EVALUATE_BENCHMARK_H_
