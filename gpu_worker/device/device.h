// What candidates run on. One contract for the emulated device and a GPU; the tests of
// the contract run on both.
#ifndef KMOSAIC_GPU_WORKER_DEVICE_DEVICE_H_
#define KMOSAIC_GPU_WORKER_DEVICE_DEVICE_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "gpu_worker/compile/build_plan.h"
#include "gpu_worker/device/device_lock.h"
#include "kernelmosaic/v1/types.pb.h"

namespace kmosaic {

// What a sandboxed process needs to use the device.
struct SandboxAccess {
  // Device nodes, "/dev/nvidia0".
  std::vector<std::string> nodes;
  // "NAME=value".
  std::vector<std::string> environment;
  // Folders and files that it reads.
  std::vector<std::string> readable;
};

// Immutable after it is made; thread-safe.
class Device {
 public:
  virtual ~Device() = default;

  virtual kernelmosaic::v1::DeviceKind kind() const = 0;
  // Name, uuid, arch, driver, toolchain; `torch` and `worker` are filled by others.
  virtual kernelmosaic::v1::DeviceInfo info() const = 0;
  // How artifacts are bound to torch: CompileReport.abi of a modelnew solution.
  virtual std::string abi() const = 0;
  // Labels for placement: device, and on a GPU sm, gpu, cuda, vram_gb.
  virtual std::map<std::string, std::string> labels() const = 0;

  // What a build is for.
  enum class Purpose {
    kRun,
    // Loads and stores are counted, at several times the run time; emulated only.
    kCount,
    // nvcc compiles it for a GPU that need not be there, to know whether it would;
    // emulated only, UNIMPLEMENTED where there is no nvcc.
    kCheck,
  };
  // INVALID_ARGUMENT: the source is at fault (COMPILE_ERROR with that text);
  // UNIMPLEMENTED: this device cannot run it.
  virtual absl::StatusOr<BuildPlan> Plan(const ExtensionSource& source, Purpose purpose) const = 0;
  // The same for one .cu file with an extern "C" entry.
  virtual absl::StatusOr<BuildPlan> PlanEntry(const std::string& source, Purpose purpose) const = 0;
  // Whether a failed compile (its log) only met what the light torch headers lack, so that
  // nothing is known about the source.
  virtual bool LacksTorchApi(const std::string& log) const = 0;
  // Digest of the headers that plans include.
  virtual std::string header_digest() const = 0;

  virtual SandboxAccess access() const = 0;

  // Launches and work are counted, and the order of threads can be chosen.
  virtual bool is_emulated() const { return kind() == kernelmosaic::v1::DEVICE_KIND_EMULATED; }
  // Share of the full shapes that is used when a request names none.
  virtual double default_scale() const = 0;

  // Held while a candidate is on the device: shared to verify, exclusive to measure.
  // CANCELLED once `cancelled` says so.
  virtual absl::StatusOr<DeviceLock> Lock(DeviceLock::Mode mode,
                                          const std::function<bool()>& cancelled) const = 0;
};

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_DEVICE_DEVICE_H_
