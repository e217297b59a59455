#include "gpu_worker/server.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/enum_names.h"
#include "common/base/ids.h"
#include "common/base/install.h"
#include "common/base/status.h"
#include "common/base/version.h"
#include "common/http/http_server.h"
#include "common/log/log.h"
#include "common/rpc/channel.h"
#include "common/rpc/server.h"
#include "gpu_worker/compile/sandbox_runner.h"
#include "gpu_worker/compile/toolchain.h"
#include "gpu_worker/device/cuda_device.h"
#include "gpu_worker/device/emulated_device.h"
#include "gpu_worker/evaluate/launcher.h"
#include "gpu_worker/evaluate/memory_admission.h"
#include "gpu_worker/registry_loop.h"
#include "gpu_worker/self_test.h"
#include "gpu_worker/service/health_keeper.h"
#include "gpu_worker/service/kernel_service.h"

namespace kmosaic {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Some ten thousand baselines.
constexpr uint64_t kBaselineBytes = 8 << 20;
// Processes that compare on a GPU; each has a context of its own there (half a GiB).
constexpr size_t kLaunchers = 4;

uint64_t Mib(int64_t count) { return static_cast<uint64_t>(std::max<int64_t>(count, 1)) << 20; }

std::string DefaultCacheDir() {
  if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg != nullptr && *xdg != '\0') {
    return absl::StrCat(xdg, "/kernelmosaic/worker");
  }
  const char* home = std::getenv("HOME");
  return absl::StrCat(home == nullptr ? "/tmp" : home, "/.cache/kernelmosaic/worker");
}

// The interpreter to use: as named, an active environment, or python3 in PATH.
std::string DefaultPython() {
  for (const char* variable : {"KMOSAIC_PYTHON", "VIRTUAL_ENV"}) {
    const char* value = std::getenv(variable);
    if (value == nullptr || *value == '\0') continue;
    return std::string(variable) == "VIRTUAL_ENV" ? absl::StrCat(value, "/bin/python") : value;
  }
  return "python3";
}

int64_t DefaultSlots() {
  return std::max<int64_t>(1, static_cast<int64_t>(std::thread::hardware_concurrency()));
}

class Worker : public WorkerServer {
 public:
  Worker(const WorkerOptions& options, std::function<void()> on_end)
      : options_(options),
        on_end_(std::move(on_end)),
        name_(options.name.empty() ? RandomId("worker") : options.name),
        incarnation_(RandomId("run")),
        process_metrics_("kmosaic-gpu-worker"),
        metrics_(&process_metrics_),
        grants_(name_) {}

  ~Worker() override {
    // Nothing may call into what goes away below.
    if (health_ != nullptr) health_->Stop();
    registry_.reset();
    rpc_.reset();
    http_.reset();
  }

  absl::Status Start() {
    if (options_.coordinator.empty() && !options_.no_grants) {
      return absl::InvalidArgumentError(
          "no coordinator: name one with --coordinator HOST:PORT (requests need its grants)");
    }
    KMOSAIC_RETURN_IF_ERROR(StartSandbox());
    KMOSAIC_RETURN_IF_ERROR(StartDevice());
    KMOSAIC_RETURN_IF_ERROR(StartZygote());
    KMOSAIC_RETURN_IF_ERROR(StartExaminer());
    KMOSAIC_RETURN_IF_ERROR(StartEvaluator());
    if (!options_.no_self_test) {
      absl::Duration start = clock_.Steady();
      Cancellation none;
      absl::Status tested = RunSelfTest(*evaluator_, "at the start", &none);
      if (!tested.ok()) return Annotate(tested, "the self-test failed");
      self_test_seconds_ = absl::ToDoubleSeconds(clock_.Steady() - start);
      LogInfo("the self-test passed", {{"seconds", self_test_seconds_}});
    }
    return Serve();
  }

  std::string grpc_target() const override { return rpc_->target(); }
  std::string http_address() const override { return http_->address(); }

  std::string SummaryJson() const override {
    v1::DeviceInfo info = device_->info();
    json summary = {{"device", DeviceName(device_->kind())},
                    {"name", info.name()},
                    {"toolchain", info.toolchain()},
                    {"torch", zygote_->info().torch},
                    {"python", zygote_->info().python},
                    {"sandbox", options_.unsandboxed ? "off" : "on"},
                    {"limits", guard_->Describe()},
                    {"labels", Labels()},
                    {"exchange", BlockMemoryName(examiner_->memory())}};
    if (!info.uuid().empty()) summary["uuid"] = info.uuid();
    if (!info.arch().empty()) summary["arch"] = info.arch();
    if (!info.driver().empty()) summary["driver"] = info.driver();
    summary["self_test"] =
        options_.no_self_test ? json() : json{{"passed", true}, {"seconds", self_test_seconds_}};
    return summary.dump();
  }

  void Drain() override {
    draining_ = true;
    health_->Stop();
    rpc_->SetServing(false);
    if (registry_ != nullptr) registry_->Wake();
    absl::Duration deadline = clock_.Steady() + options_.grace;
    while (service_->busy() > 0 && clock_.Steady() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    if (uint32_t left = service_->busy(); left > 0) {
      LogWarning("the grace time is over; running requests are ended", {{"requests", left}});
    }
    if (registry_ != nullptr) registry_->SyncOnce().IgnoreError();
  }

 private:
  absl::Status StartSandbox() {
    auto guard = MemoryGuard::Create(MemoryGuard::Mode::kAuto);
    if (!guard.ok()) return Annotate(guard.status(), "memory limits");
    guard_ = *std::move(guard);
    auto sandbox = CompilerSandbox::Create(guard_.get(), options_.unsandboxed);
    if (!sandbox.ok()) return Annotate(sandbox.status(), "sandbox of the compilers");
    sandbox_ = *std::move(sandbox);
    runner_ = std::make_unique<SandboxRunner>(sandbox_.get());
    if (options_.unsandboxed) {
      LogWarning(
          "THE SANDBOX IS OFF: candidates run with this user's rights, and every report "
          "says so");
    }
    return absl::OkStatus();
  }

  absl::Status StartDevice() {
    cache_dir_ = options_.cache_dir.empty() ? DefaultCacheDir() : options_.cache_dir;
    cache_dir_ = fs::absolute(cache_dir_).lexically_normal().string();
    KMOSAIC_ASSIGN_OR_RETURN(
        python_, FindProgram(options_.python.empty() ? DefaultPython() : options_.python));
    KMOSAIC_ASSIGN_OR_RETURN(Toolchain toolchain,
                             FindToolchain({options_.gxx, options_.cuda_home, python_}));
    bool wants_cuda = options_.device == "cuda";
    if (!wants_cuda && options_.device != "auto" && options_.device != "emulated") {
      return absl::InvalidArgumentError(
          absl::StrCat("--device is '", options_.device, "'; it is one of auto, cuda, emulated"));
    }
    if (options_.device != "emulated") {
      auto gpu = OpenGpu(toolchain);
      if (gpu.ok()) {
        device_ = *std::move(gpu);
        return absl::OkStatus();
      }
      if (wants_cuda) return Annotate(gpu.status(), "GPU");
      LogInfo("no usable GPU: candidates run on the emulated device",
              {{"cause", std::string(gpu.status().message())}});
    }
    EmulatedDevice::Options emulated;
    emulated.toolchain = toolchain;
    emulated.paths.compiler = toolchain.gxx;
    emulated.paths.headers = SharePath("emulation/include");
    emulated.paths.torch_headers = SharePath("torch_abi/include");
    emulated.paths.support_sources = SharePath("emulation/support");
    emulated.paths.toolkit_headers = toolchain.cuda_include;
    emulated.paths.runtime_library =
        absl::StrCat(InstallRoot(), "/lib/libkmosaic_emulation_runtime.so");
    // The compilers' sandbox shows real paths only.
    std::error_code error;
    for (std::string* path : {&emulated.paths.headers, &emulated.paths.torch_headers,
                              &emulated.paths.support_sources, &emulated.paths.runtime_library}) {
      fs::path real = fs::canonical(*path, error);
      if (error) {
        return absl::FailedPreconditionError(
            absl::StrCat(*path, ": ", error.message(), "; the installation is incomplete"));
      }
      *path = real.string();
    }
    emulated.support_cache = absl::StrCat(cache_dir_, "/support");
    emulated.runner = runner_.get();
    emulated.torch_include = FindTorchInclude(python_);
    auto device = EmulatedDevice::Create(emulated);
    if (!device.ok()) return Annotate(device.status(), "emulated device");
    device_ = *std::move(device);
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<Device>> OpenGpu(const Toolchain& toolchain) {
    KMOSAIC_ASSIGN_OR_RETURN(DriverTable driver, LoadDriver());
    CudaDevice::Options cuda;
    cuda.gpu = static_cast<int>(std::clamp<int64_t>(options_.gpu, 0, 1 << 20));
    cuda.toolchain = toolchain;
    // The compilers' sandbox shows real paths only.
    std::error_code error;
    fs::path headers = SharePath("torch_abi/include");
    if (fs::path real = fs::canonical(headers, error); !error) headers = real;
    cuda.torch_headers = headers.string();
    cuda.torch_include = FindTorchInclude(python_);
    cuda.lock_folder = fs::temp_directory_path().string();
    cuda.on_lock = [this](DeviceLock::Mode mode, absl::Duration waited) {
      metrics_.lock_seconds
          .Add({{"mode", mode == DeviceLock::Mode::kShared ? "shared" : "exclusive"}},
               SecondsBuckets())
          .Observe(absl::ToDoubleSeconds(waited));
    };
    return CudaDevice::Create(cuda, driver);
  }

  absl::Status StartZygote() {
    SandboxAccess access = device_->access();
    ZygoteOptions zygote;
    zygote.python = python_;
    zygote.harness_dir = SharePath("harness");
    std::error_code error;
    if (fs::path real = fs::canonical(zygote.harness_dir, error); !error) {
      zygote.harness_dir = real.string();
    }
    zygote.enter_library = absl::StrCat(InstallRoot(), "/lib/libkmosaic_enter.so");
    zygote.readable = access.readable;
    zygote.devices = access.nodes;
    zygote.env = access.environment;
    if (!device_->is_emulated()) ShowKernels(zygote);
    zygote.unsandboxed = options_.unsandboxed;
    auto started = Zygote::Start(std::move(zygote), guard_.get());
    if (!started.ok()) return Annotate(started.status(), "Python with torch");
    zygote_ = *std::move(started);
    roles_ = std::make_unique<ZygoteRoles>(
        zygote_.get(), [this](const std::string& role, const std::string& op, absl::Duration took) {
          metrics_.role_seconds.Add({{"role", role}, {"op", op}}, SecondsBuckets())
              .Observe(absl::ToDoubleSeconds(took));
        });
    return absl::OkStatus();
  }

  // On a GPU values go from process to process in its own memory, and are compared there.
  absl::Status StartExaminer() {
    examiner_ = std::make_unique<HostExaminer>();
    if (device_->is_emulated()) return absl::OkStatus();
    RoleLimits limits;
    limits.memory_bytes = RoleMemoryBytes();
    limits.file_bytes = std::max(limits.file_bytes, EvaluationLimits().block_bytes);
    launchers_ = std::make_unique<LauncherPool>(roles_.get(), limits, DeviceName(device_->kind()),
                                                kLaunchers);
    auto device_memory = launchers_->HasDeviceMemory();
    if (!device_memory.ok()) return device_memory.status();
    if (!*device_memory) {
      LogWarning(
          "this GPU's memory cannot be handed from process to process (the driver has no file "
          "descriptors for it): values pass through the memory of this machine, which is slow");
      return absl::OkStatus();
    }
    examiner_ = std::make_unique<LauncherExaminer>(launchers_.get(), BlockMemory::kDevice,
                                                   EvaluationLimits().block_bytes);
    return absl::OkStatus();
  }

  // Our own kernels, for the processes that measure.
  static void ShowKernels(ZygoteOptions& zygote) {
    std::error_code error;
    fs::path kernels = fs::canonical(SharePath("device/kernels.fatbin"), error);
    if (error) {
      LogWarning(
          "this installation has no kernels of its own (it was built without nvcc): L2 is emptied, "
          "memory poisoned and outputs compared by operations of torch, and reports of times say "
          "so",
          {{"path", SharePath("device/kernels.fatbin")}});
      return;
    }
    zygote.env.push_back("KMOSAIC_DEVICE_KERNELS=" + kernels.string());
    zygote.readable.push_back(kernels.string());
  }

  // 0 on the emulated device.
  int64_t GpuMemoryGib() const {
    std::map<std::string, std::string> labels = device_->labels();
    auto memory = labels.find("vram_gb");
    int64_t gib = 0;
    return memory != labels.end() && absl::SimpleAtoi(memory->second, &gib) ? gib : 0;
  }

  int64_t DefaultVerifySlots() const {
    constexpr int64_t kGibPerSlot = 16;
    if (device_->is_emulated()) return DefaultSlots();
    return std::clamp<int64_t>(GpuMemoryGib() / kGibPerSlot, 1, DefaultSlots());
  }

  static uint64_t MachineMemoryBytes() {
    return static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) *
           static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  }

  // Bytes of one candidate or reference process.
  uint64_t RoleMemoryBytes() const {
    if (options_.memory_mib > 0) return Mib(options_.memory_mib);
    constexpr uint64_t kEmulated = uint64_t{4} << 30;
    if (device_->is_emulated()) return kEmulated;
    return std::max(kEmulated, MachineMemoryBytes() / 2);
  }

  // For all evaluations on the GPU together: most of the memory that values pass through.
  uint64_t EvaluationMemoryBytes() const {
    uint64_t bytes = static_cast<uint64_t>(GpuMemoryGib()) << 30;
    if (examiner_->memory() == BlockMemory::kHost) bytes = std::min(bytes, MachineMemoryBytes());
    return bytes / 8 * 7;
  }

  absl::Status StartEvaluator() {
    KMOSAIC_ASSIGN_OR_RETURN(
        cache_, ArtifactCache::Open({absl::StrCat(cache_dir_, "/artifacts"),
                                     Mib(options_.cache_mib), absl::Minutes(10), &clock_}));
    Compiler::Options compiler;
    compiler.cache = cache_.get();
    compiler.runner = runner_.get();
    compiler.clock = &clock_;
    int64_t compile_slots = options_.compile_slots > 0 ? options_.compile_slots : DefaultSlots();
    int64_t verify_slots = options_.verify_slots > 0 ? options_.verify_slots : DefaultVerifySlots();
    int64_t benchmark_slots =
        options_.benchmark_slots > 0 ? options_.benchmark_slots : verify_slots;
    compiler.slots = static_cast<uint32_t>(compile_slots);
    compiler.wall_limit = options_.compile_limit;
    compiler.memory_bytes = Mib(options_.compile_memory_mib);
    compiler_ = std::make_unique<Compiler>(compiler);
    references_ = std::make_unique<ReferenceCache>(Mib(options_.reference_cache_mib));
    baselines_ = std::make_unique<BaselineCache>(kBaselineBytes);

    Evaluator::Options evaluator;
    evaluator.device = device_.get();
    evaluator.compiler = compiler_.get();
    evaluator.roles = roles_.get();
    evaluator.examiner = examiner_.get();
    evaluator.references = references_.get();
    evaluator.baselines = baselines_.get();
    if (!device_->is_emulated()) {
      memory_ = std::make_unique<MemoryAdmission>(EvaluationMemoryBytes());
      evaluator.memory = memory_.get();
    }
    evaluator.clock = &clock_;
    evaluator.worker = name_;
    evaluator.torch = zygote_->info().torch;
    evaluator.unsandboxed = options_.unsandboxed;
    evaluator.limits.role.memory_bytes = RoleMemoryBytes();
    // What goes to the daemon lies in memory files.
    evaluator.limits.role.file_bytes =
        std::max(evaluator.limits.role.file_bytes, evaluator.limits.block_bytes);
    evaluator.limits.role.processes =
        static_cast<uint64_t>(std::max<int64_t>(options_.processes, 1));
    evaluator.limits.role.tmp_bytes = Mib(options_.tmp_mib);
    evaluator.limits.load = options_.load_limit;
    evaluator.limits.run = options_.run_limit;
    evaluator.public_seeds =
        static_cast<uint32_t>(std::clamp<int64_t>(options_.public_seeds, 1, 100));
    evaluator.secret_seeds =
        static_cast<uint32_t>(std::clamp<int64_t>(options_.secret_seeds, 1, 1000));
    using NvccGate = Evaluator::Options::NvccGate;
    if (options_.nvcc_gate == "on") {
      evaluator.nvcc_gate = NvccGate::kOn;
    } else if (options_.nvcc_gate == "note") {
      evaluator.nvcc_gate = NvccGate::kNote;
    } else if (options_.nvcc_gate != "off") {
      return absl::InvalidArgumentError(
          absl::StrCat("--nvcc-gate is '", options_.nvcc_gate, "'; it is one of off, note, on"));
    }
    evaluator.random = [] { return RandomUint64(); };
    evaluator_ = std::make_unique<Evaluator>(std::move(evaluator));

    compile_requests_ = std::make_unique<Slots>(static_cast<uint32_t>(compile_slots));
    verify_requests_ = std::make_unique<Slots>(static_cast<uint32_t>(verify_slots));
    benchmark_requests_ = std::make_unique<Slots>(static_cast<uint32_t>(benchmark_slots));
    return absl::OkStatus();
  }

  absl::Status Serve() {
    KernelService::Options service;
    service.evaluator = evaluator_.get();
    service.grants = &grants_;
    service.watch = &watch_;
    service.metrics = &metrics_;
    service.clock = &clock_;
    service.compile_slots = compile_requests_.get();
    service.verify_slots = verify_requests_.get();
    service.benchmark_slots = benchmark_requests_.get();
    service.require_grants = !options_.no_grants;
    health_ = MakeHealth();
    service.on_evaluation = [this](const std::optional<std::string>& failure) {
      health_->OnEvaluation(failure);
    };
    service_ = std::make_unique<KernelService>(std::move(service));
    RpcServer::Options rpc;
    rpc.listen = options_.listen;
    rpc.services = {service_.get()};
    KMOSAIC_ASSIGN_OR_RETURN(rpc_, RpcServer::Start(rpc));
    rpc_->SetServing(true);
    HttpServer::Options http;
    http.listen = options_.http_listen;
    http.metrics = &process_metrics_;
    http.healthy = [this] { return !draining_ && health_->well(); };
    KMOSAIC_ASSIGN_OR_RETURN(http_, HttpServer::Start(std::move(http)));
    if (!options_.coordinator.empty()) StartRegistry();
    // Last, since it tells all of these.
    health_->Start();
    return absl::OkStatus();
  }

  std::unique_ptr<HealthKeeper> MakeHealth() {
    HealthKeeper::Options health;
    health.clock = &clock_;
    health.self_test = [this](Cancellation* cancellation) {
      return RunSelfTest(*evaluator_, RandomId("again"), cancellation);
    };
    health.on_change = [this](bool well, const std::string& reason) {
      if (well) {
        LogInfo("the self-test passed; this worker takes work again");
      } else {
        LogError("this worker takes no work until its self-test passes", {{"reason", reason}});
      }
      metrics_.healthy.Add({}).Set(well ? 1 : 0);
      rpc_->SetServing(well);
      if (registry_ != nullptr) registry_->Wake();
    };
    metrics_.healthy.Add({}).Set(1);
    return std::make_unique<HealthKeeper>(std::move(health));
  }

  void StartRegistry() {
    RegistryLoop::Options registry;
    registry.channel = MakeChannel(options_.coordinator);
    registry.state = [this] { return State(); };
    registry.on_reply = [this](const v1::WorkerSyncResponse& reply) {
      grants_.Set(reply.grant_key());
      if (drain_ordered_.exchange(reply.drain()) != reply.drain()) {
        LogInfo(reply.drain() ? "the coordinator drains this worker"
                              : "the coordinator takes this worker into service again");
      }
      if (reply.end() && service_->busy() == 0) on_end_();
    };
    registry.metrics = &metrics_;
    registry_ = std::make_unique<RegistryLoop>(std::move(registry));
  }

  std::map<std::string, std::string> Labels() const {
    std::map<std::string, std::string> labels = device_->labels();
    for (const auto& [name, value] : options_.labels) labels[name] = value;
    return labels;
  }

  v1::WorkerSyncRequest State() const {
    v1::WorkerSyncRequest state;
    state.set_worker(name_);
    state.set_incarnation(incarnation_);
    state.set_endpoint(options_.advertise.empty() ? rpc_->target() : options_.advertise);
    state.set_http_endpoint(http_->address());
    state.set_version(kVersion);
    for (const auto& [name, value] : Labels()) (*state.mutable_labels())[name] = value;
    for (auto [role, slots] : {std::pair{v1::ROLE_COMPILE, compile_requests_.get()},
                               std::pair{v1::ROLE_VERIFY, verify_requests_.get()},
                               std::pair{v1::ROLE_BENCHMARK, benchmark_requests_.get()}}) {
      if (role == v1::ROLE_BENCHMARK && device_->is_emulated()) continue;
      v1::RoleSlots* offered = state.add_slots();
      offered->set_role(role);
      offered->set_total(slots->total());
    }
    // Asked once: it may change in between.
    std::string sick = health_->reason();
    state.set_health(sick.empty() ? v1::WORKER_HEALTH_OK : v1::WORKER_HEALTH_SICK);
    state.set_health_reason(sick);
    state.set_draining(draining_ || drain_ordered_);
    state.set_busy(service_->busy());
    *state.mutable_device() = device_->info();
    state.mutable_device()->set_torch(zygote_->info().torch);
    state.mutable_device()->set_worker(name_);
    return state;
  }

  const WorkerOptions options_;
  const std::function<void()> on_end_;
  const std::string name_;
  const std::string incarnation_;
  SystemClock clock_;
  Metrics process_metrics_;
  WorkerMetrics metrics_;
  GrantKeys grants_;
  CallWatch watch_;
  std::string cache_dir_;
  std::string python_;
  std::unique_ptr<MemoryGuard> guard_;
  std::unique_ptr<CompilerSandbox> sandbox_;
  std::unique_ptr<SandboxRunner> runner_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Zygote> zygote_;
  std::unique_ptr<ZygoteRoles> roles_;
  std::unique_ptr<LauncherPool> launchers_;
  std::unique_ptr<Examiner> examiner_;
  std::unique_ptr<ArtifactCache> cache_;
  std::unique_ptr<Compiler> compiler_;
  std::unique_ptr<ReferenceCache> references_;
  std::unique_ptr<BaselineCache> baselines_;
  std::unique_ptr<MemoryAdmission> memory_;
  std::unique_ptr<Evaluator> evaluator_;
  std::unique_ptr<Slots> compile_requests_;
  std::unique_ptr<Slots> verify_requests_;
  std::unique_ptr<Slots> benchmark_requests_;
  double self_test_seconds_ = 0;
  std::atomic<bool> draining_ = false;
  std::atomic<bool> drain_ordered_ = false;
  std::unique_ptr<HealthKeeper> health_;
  std::unique_ptr<KernelService> service_;
  std::unique_ptr<RpcServer> rpc_;
  std::unique_ptr<HttpServer> http_;
  std::unique_ptr<RegistryLoop> registry_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<WorkerServer>> WorkerServer::Start(const WorkerOptions& options,
                                                                  std::function<void()> on_end) {
  auto worker = std::make_unique<Worker>(options, std::move(on_end));
  KMOSAIC_RETURN_IF_ERROR(worker->Start());
  return worker;
}

}  // namespace kmosaic
