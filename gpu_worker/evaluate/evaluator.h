// The stages of an evaluation, one after the other.
#ifndef KMOSAIC_GPU_WORKER_EVALUATE_EVALUATOR_H_
#define KMOSAIC_GPU_WORKER_EVALUATE_EVALUATOR_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "gpu_worker/compile/compiler.h"
#include "gpu_worker/device/device.h"
#include "gpu_worker/evaluate/benchmark.h"
#include "gpu_worker/evaluate/cancellation.h"
#include "gpu_worker/evaluate/candidate.h"
#include "gpu_worker/evaluate/device_use.h"
#include "gpu_worker/evaluate/examiner.h"
#include "gpu_worker/evaluate/limits.h"
#include "gpu_worker/evaluate/memory_admission.h"
#include "gpu_worker/evaluate/reference.h"
#include "gpu_worker/evaluate/role.h"
#include "kernelmosaic/v1/kernel.pb.h"

namespace kmosaic {

// Thread-safe.
class Evaluator {
 public:
  struct Options {
    const Device* device = nullptr;  // these outlive the evaluator
    Compiler* compiler = nullptr;
    RoleStarter* roles = nullptr;
    Examiner* examiner = nullptr;
    ReferenceCache* references = nullptr;
    BaselineCache* baselines = nullptr;
    // Of this machine and its GPU; null: evaluations do not wait for memory.
    MemoryAdmission* memory = nullptr;
    const Clock* clock = nullptr;
    std::string worker;  // name, for reports
    std::string torch;   // version
    bool unsandboxed = false;
    EvaluationLimits limits;
    uint32_t public_seeds = 2;
    uint32_t secret_seeds = 5;
    // Whether nvcc judges sources on the emulated device too, which takes seconds: not at
    // all, as a note in the report, or as COMPILE_ERROR.
    enum class NvccGate { kOff, kNote, kOn };
    NvccGate nvcc_gate = NvccGate::kOff;
    // Secret seeds come from here.
    std::function<uint64_t()> random;
  };
  explicit Evaluator(Options options);

  // Runs the stages up to and including `last_stage` and stops at the first that fails.
  // A failed candidate and a failed machine are reports. INVALID_ARGUMENT: the request
  // makes no sense; CANCELLED: nobody waits any more.
  absl::StatusOr<kernelmosaic::v1::EvaluationReport> Evaluate(
      const kernelmosaic::v1::KernelRequest& request, kernelmosaic::v1::Role last_stage,
      Cancellation* cancellation) const;

 private:
  struct Work;

  // `failed`: keys of extensions whose build shall raise.
  std::variant<std::vector<ExtensionSource>, struct Conclusion> Collect(
      Work& work, const std::vector<std::string>& failed) const;
  // The artifact's directory. The run build collects first.
  std::variant<std::string, struct Conclusion> Build(Work& work, Device::Purpose purpose) const;
  std::variant<std::string, struct Conclusion> BuildCollected(Work& work,
                                                              Device::Purpose purpose) const;
  // Waits for the memory that the task is estimated to need; before any lock of the device.
  absl::StatusOr<MemoryAdmission::Permit> AdmitToMemory(Work& work) const;
  // Once more with weights from the CPU where those of the GPU may be why it failed.
  struct Conclusion Verify(Work& work, const std::string& artifact) const;
  // Once more at sizes that the solution holds as numbers, or larger ones where nothing is told
  // apart.
  struct Conclusion VerifyWithShapes(Work& work, const std::string& artifact) const;
  // After `first`, a degenerate INVALID_TASK at reduced shapes: larger ones, or whose fault
  // it is.
  struct Conclusion VerifyLarger(Work& work, const std::string& artifact,
                                 const struct Conclusion& first) const;
  // One round at the shapes of work.reference; a second one with the GPU and all of its memory
  // where that ran out beside others.
  struct Conclusion VerifyAtShapes(Work& work, const std::string& artifact) const;
  struct Conclusion VerifyOnce(Work& work, const std::string& artifact) const;
  // Whether this very solution passed here before; then work.report has what was found.
  bool FindVerified(Work& work) const;
  void RememberVerified(const Work& work) const;
  std::string VerifiedKey(const Work& work) const;
  struct Conclusion Measure(Work& work, const std::string& artifact) const;
  Candidate::Options CandidateOptions(const Work& work, const std::string& artifact) const;
  std::unique_ptr<Reference> MakeReference(Work& work,
                                           const std::map<std::string, int64_t>& fixed) const;
  // NO_CUSTOM_KERNEL when the solution gives right outputs also where none of its kernels runs.
  struct Conclusion CheckWithoutKernels(Work& work, const std::string& artifact) const;
  // Emulated device: once more with counting. What `verified` becomes by it; after a wrong output,
  // notes.
  struct Conclusion CheckEveryAccess(Work& work, const struct Conclusion& verified) const;
  // Judges single calls by the request's oracle.
  class Verifier JudgeOf(Work& work) const;
  struct Conclusion CheckWithNvcc(Work& work) const;

  const Options options_;
  // Reports of solutions that passed, so that Benchmark after Verify does not verify again.
  const std::unique_ptr<LruCache<kernelmosaic::v1::EvaluationReport>> verified_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_EVALUATE_EVALUATOR_H_
