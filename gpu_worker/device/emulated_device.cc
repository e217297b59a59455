#include "gpu_worker/device/emulated_device.h"

#include <filesystem>
#include <future>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "gpu_worker/compile/artifact_cache.h"
#include "gpu_worker/compile/build_log.h"
#include "gpu_worker/compile/plan_files.h"
#include "gpu_worker/device/light_toolkit.h"
#include "gpu_worker/torch_abi/plan.h"

namespace kmosaic {
namespace {

namespace fs = std::filesystem;
namespace v1 = kernelmosaic::v1;

constexpr absl::Duration kSupportTimeout = absl::Minutes(5);
constexpr uint64_t kSupportMemory = uint64_t{4} << 30;
constexpr uint64_t kSupportFile = uint64_t{1} << 30;
constexpr uint32_t kSupportProcesses = 128;
// A few versions side by side.
constexpr uint64_t kSupportCacheBytes = uint64_t{2} << 30;
// What nvcc compiles for when it is only asked whether it would.
constexpr char kCheckArch[] = "sm_90";

absl::Status NoNvcc() { return absl::UnimplementedError("nvcc not present, not checked"); }

absl::StatusOr<BuildOutcome> BuildSupport(const BuildPlan& plan, CommandRunner* runner,
                                          const std::string& directory) {
  KMOSAIC_RETURN_IF_ERROR(WritePlanFiles(plan, directory));
  // All but the last need nothing of each other.
  std::vector<std::future<absl::StatusOr<CommandResult>>> running;
  auto finish = [&]() -> absl::Status {
    absl::Status status;
    for (auto& future : std::exchange(running, {})) {
      absl::StatusOr<CommandResult> result = future.get();
      if (!status.ok()) continue;
      if (!result.ok()) {
        status = result.status();
      } else if (result->exit_code != 0 || result->limit != CommandResult::Limit::kNone) {
        status = absl::FailedPreconditionError(
            absl::StrCat("the support of the emulated device does not compile: ",
                         TrimLog(result->output, 4096, {directory}).text));
      }
    }
    return status;
  };
  for (const std::vector<std::string>& command : plan.commands) {
    if (&command == &plan.commands.back()) KMOSAIC_RETURN_IF_ERROR(finish());
    CommandRequest request;
    request.argv = command;
    request.directory = directory;
    request.readable = plan.readable;
    request.wall_limit = kSupportTimeout;
    request.memory_bytes = kSupportMemory;
    request.file_bytes = kSupportFile;
    request.processes = kSupportProcesses;
    running.push_back(std::async(std::launch::async, [runner, request = std::move(request)] {
      return runner->Run(request);
    }));
  }
  KMOSAIC_RETURN_IF_ERROR(finish());
  BuildOutcome outcome;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, error)) {
    if (entry.is_regular_file(error)) outcome.files.push_back(entry.path().filename().string());
  }
  return outcome;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Device>> EmulatedDevice::Create(const Options& options) {
  KMOSAIC_RETURN_IF_ERROR(CheckEmulationPaths(options.paths));
  KMOSAIC_ASSIGN_OR_RETURN(std::string key,
                           EmulationToolchainKey(options.paths, options.toolchain.HostName()));
  SystemClock clock;
  KMOSAIC_ASSIGN_OR_RETURN(
      std::unique_ptr<ArtifactCache> cache,
      ArtifactCache::Open({options.support_cache, kSupportCacheBytes, absl::Minutes(10), &clock}));
  KMOSAIC_ASSIGN_OR_RETURN(BuildPlan plan, PlanSupport(options.paths));
  KMOSAIC_ASSIGN_OR_RETURN(CachedBuild support, cache->GetOrBuild(
                                                    key,
                                                    [&](const std::string& directory) {
                                                      return BuildSupport(plan, options.runner,
                                                                          directory);
                                                    },
                                                    [] { return false; }));
  EmulationPaths paths = options.paths;
  paths.support = support.directory;
  return std::unique_ptr<Device>(new EmulatedDevice(options, std::move(paths), std::move(key)));
}

v1::DeviceKind EmulatedDevice::kind() const { return v1::DEVICE_KIND_EMULATED; }

v1::DeviceInfo EmulatedDevice::info() const {
  v1::DeviceInfo info;
  info.set_kind(v1::DEVICE_KIND_EMULATED);
#if defined(__x86_64__)
  info.set_name("emulated x86-64");
#else
  info.set_name("emulated");
#endif
  info.set_toolchain(options_.toolchain.HostName());
  return info;
}

std::map<std::string, std::string> EmulatedDevice::labels() const {
  return {{"device", "emulated"}};
}

absl::StatusOr<BuildPlan> EmulatedDevice::Plan(const ExtensionSource& source,
                                               Purpose purpose) const {
  if (purpose == Purpose::kCheck) {
    if (options_.toolchain.nvcc.empty()) return NoNvcc();
    return PlanLight(source, LightToolkitOf(options_.toolchain, paths_.torch_headers), kCheckArch);
  }
  return PlanEmulated(source, paths_, {.count = purpose == Purpose::kCount});
}

absl::StatusOr<BuildPlan> EmulatedDevice::PlanEntry(const std::string& source,
                                                    Purpose purpose) const {
  if (purpose == Purpose::kCheck) {
    if (options_.toolchain.nvcc.empty()) return NoNvcc();
    return PlanLightCuda(source, LightToolkitOf(options_.toolchain, paths_.torch_headers),
                         kCheckArch);
  }
  return PlanEmulatedCuda(source, paths_, {.count = purpose == Purpose::kCount});
}

bool EmulatedDevice::LacksTorchApi(const std::string& log) const {
  return kmosaic::LacksTorchApi(log, options_.torch_include);
}

SandboxAccess EmulatedDevice::access() const {
  SandboxAccess access;
  access.readable = {paths_.runtime_library};
  // The harness loads the same library that artifacts are linked to.
  access.environment = {"KMOSAIC_EMULATION_RUNTIME=" + paths_.runtime_library};
  return access;
}

absl::StatusOr<DeviceLock> EmulatedDevice::Lock(DeviceLock::Mode,
                                                const std::function<bool()>&) const {
  return DeviceLock();
}

}  // namespace kmosaic
