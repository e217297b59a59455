#include "gpu_worker/emulation/runtime/device.h"

#include <cstring>
#include <utility>

#include "gpu_worker/emulation/runtime/fault_handler.h"

namespace kmosaic::emulation {

namespace {

// The device whose kernel runs; a signal handler has no argument of ours.
Device* faulting_device = nullptr;

std::string Triple(const unsigned* values) {
  return "(" + std::to_string(values[0]) + "," + std::to_string(values[1]) + "," +
         std::to_string(values[2]) + ")";
}

}  // namespace

Device::Device()
    : scheduler_([this](const char* kind, const std::string& detail) { Report(kind, detail); }),
      monitor_([this](const char* kind, const AccessMonitor::Actor& actor,
                      const std::string& detail) { ReportAccess(kind, actor, detail); },
               [this](const AccessMonitor::Place& place, std::size_t bytes) {
                 CountAccess(place.is_shared, true, bytes);
               }) {}

bool Device::Configure(std::string_view schedule, unsigned char poison, int report_fd) {
  const std::scoped_lock lock(host_mutex_);
  auto parsed = Schedule::Parse(schedule);
  if (!parsed) return false;
  schedule_ = std::move(*parsed);
  poison_ = poison;
  findings_.Reset(report_fd);
  last_error_ = KM_EMU_SUCCESS;
  sticky_ = false;
  dynamic_shared_allowed_ = kSharedBytesWithoutOptIn;
  counters_ = {};
  monitor_.Reset();
  return true;
}

void Device::Report(const char* kind, const std::string& detail) {
  Finding finding;
  finding.kind = kind;
  finding.kernel = launch_ == nullptr ? "" : launch_->kernel;
  if (in_kernel_) {
    finding.block = scheduler_.BlockIndex();
    finding.thread = scheduler_.ThreadIndex();
  }
  finding.detail = detail;
  findings_.Add(std::move(finding));
}

void Device::ReportAccess(const char* kind, const AccessMonitor::Actor& actor,
                          const std::string& detail) {
  Finding finding;
  finding.kind = kind;
  finding.kernel = launch_->kernel;
  finding.block = {actor.block % launch_->grid[0],
                   actor.block / launch_->grid[0] % launch_->grid[1],
                   actor.block / launch_->grid[0] / launch_->grid[1]};
  finding.thread = scheduler_.IndexOf(actor.thread);
  finding.detail = detail;
  findings_.Add(std::move(finding));
}

void Device::Fail(const char* kind, const std::string& detail, int error) {
  Report(kind, detail);
  kernel_error_ = error;
  scheduler_.Abort();
}

int Device::CheckLaunch(const KmEmuLaunch& launch) {
  const std::string shape = "grid " + Triple(launch.grid) + ", block " + Triple(launch.block);
  std::size_t threads = 1;
  for (int i = 0; i < 3; ++i) {
    if (launch.grid[i] == 0 || launch.grid[i] > kMaxGridDim[i] || launch.block[i] == 0 ||
        launch.block[i] > kMaxBlockDim[i]) {
      Report("illegal_launch", shape + " is outside of what a device can run");
      return KM_EMU_INVALID_CONFIGURATION;
    }
    threads *= launch.block[i];
  }
  if (threads > kMaxThreadsPerBlock) {
    Report("illegal_launch",
           shape + ": " + std::to_string(threads) + " threads in a block, the limit is 1024");
    return KM_EMU_INVALID_CONFIGURATION;
  }
  if (launch.dynamic_shared_bytes > dynamic_shared_allowed_) {
    Report("illegal_launch",
           std::to_string(launch.dynamic_shared_bytes) +
               " bytes of dynamic shared memory; allowed are " +
               std::to_string(dynamic_shared_allowed_) +
               " (cudaFuncAttributeMaxDynamicSharedMemorySize raises that to at most " +
               std::to_string(kSharedBytesWithOptIn) + ")");
    return KM_EMU_INVALID_VALUE;
  }
  return KM_EMU_SUCCESS;
}

int Device::Launch(const KmEmuLaunch& launch) {
  if (in_kernel_) {
    Fail("unsupported", "a kernel launched from a kernel (dynamic parallelism) is not emulated",
         KM_EMU_NOT_SUPPORTED);
  }
  const std::scoped_lock lock(host_mutex_);
  if (sticky_) return last_error_;
  launch_ = &launch;
  int error = CheckLaunch(launch);
  if (error == KM_EMU_SUCCESS) error = RunGrid(launch);
  launch_ = nullptr;
  if (error != KM_EMU_SUCCESS) last_error_ = error;
  return error;
}

int Device::RunGrid(const KmEmuLaunch& launch) {
  ++counters_.launches;
  if (schedule_.ablated()) return KM_EMU_SUCCESS;
  if (launch.dynamic_shared_bytes != dynamic_shared_.bytes() ||
      dynamic_shared_.start() == nullptr) {
    GuardedRegion region;
    if (!region.Map(launch.dynamic_shared_bytes, poison_)) return KM_EMU_OUT_OF_MEMORY;
    dynamic_shared_ = std::move(region);
  }
  for (int i = 0; i < 3; ++i) {
    launch.variables->block_dim[i] = launch.block[i];
    launch.variables->grid_dim[i] = launch.grid[i];
  }
  const std::uint64_t threads_per_block =
      std::uint64_t{launch.block[0]} * launch.block[1] * launch.block[2];
  const std::uint64_t blocks = std::uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2];
  schedule_.BeginGrid(blocks);
  scheduler_.BeginGrid(launch, &schedule_);
  kernel_error_ = KM_EMU_SUCCESS;
  last_range_ = {};
  monitor_.BeginGrid(blocks, static_cast<unsigned>(threads_per_block), launch.kernel);
  faulting_device = this;
  const FaultHandlerScope faults(
      [](int signal, const siginfo_t& info) { faulting_device->OnFault(signal, info); });
  in_kernel_ = true;
  bool completed = true;
  for (std::uint64_t i = 0; i < blocks && completed; ++i) {
    const std::uint64_t linear = schedule_.BlockAt(i);
    const std::array<unsigned, 3> block = {
        static_cast<unsigned>(linear % launch.grid[0]),
        static_cast<unsigned>(linear / launch.grid[0] % launch.grid[1]),
        static_cast<unsigned>(linear / launch.grid[0] / launch.grid[1])};
    std::memcpy(launch.variables->block_index, block.data(), sizeof(block));
    *launch.variables->block_serial = ++block_serial_;
    block_linear_ = static_cast<std::uint32_t>(linear);
    monitor_.BeginBlock();
    shared_bytes_in_block_ = launch.dynamic_shared_bytes;
    if (i > 0 || launch.dynamic_shared_bytes > 0) dynamic_shared_.Fill(poison_);
    ++counters_.blocks;
    counters_.threads += threads_per_block;
    completed = scheduler_.RunBlock(block);
  }
  in_kernel_ = false;
  monitor_.EndGrid();
  counters_.barriers += scheduler_.barriers();
  counters_.warp_operations += scheduler_.warp_operations();
  ReportStrayWrites();
  if (completed) return KM_EMU_SUCCESS;
  sticky_ = true;
  return kernel_error_ == KM_EMU_SUCCESS ? KM_EMU_LAUNCH_FAILURE : kernel_error_;
}

void Device::ReportStrayWrites() {
  if (const auto stray = memory_.TakeStrayWrite()) Report("out_of_bounds", *stray);
  const auto report_shared = [&](GuardedRegion* region, const std::string& name) {
    if (const auto offset = region->TakeStrayWrite()) {
      Report("out_of_bounds", "a write at byte offset " + std::to_string(*offset) + " of " + name +
                                  " of " + std::to_string(region->bytes()) + " bytes");
    }
  };
  for (auto& [site, variable] : shared_) {
    report_shared(&variable.region, variable.name);
  }
  report_shared(&dynamic_shared_, "dynamic shared memory");
}

void* Device::Shared(KmEmuSharedSite* site, std::size_t bytes, const char* name) {
  if (!in_kernel_) return nullptr;
  SharedVariable& variable = shared_[site];
  if (variable.region.start() == nullptr || variable.region.bytes() != bytes) {
    GuardedRegion region;
    if (!region.Map(bytes, poison_)) {
      Fail("unsupported", "the system gives no memory for shared variables", KM_EMU_OUT_OF_MEMORY);
    }
    variable.region = std::move(region);
    variable.name = std::string("shared variable ") + name;
  } else {
    variable.region.Fill(poison_);
  }
  shared_bytes_in_block_ += bytes;
  const std::size_t static_bytes = shared_bytes_in_block_ - launch_->dynamic_shared_bytes;
  if (static_bytes > kSharedBytesWithoutOptIn || shared_bytes_in_block_ > kSharedBytesWithOptIn) {
    Fail("illegal_launch",
         std::to_string(static_bytes) + " bytes of static and " +
             std::to_string(launch_->dynamic_shared_bytes) +
             " bytes of dynamic shared memory in a block; the limits are 49152 static (the real "
             "assembler refuses more) and 232448 together",
         KM_EMU_INVALID_VALUE);
  }
  site->address = variable.region.start();
  site->block_serial = block_serial_;
  return site->address;
}

void Device::OnFault(int signal, const siginfo_t& info) {
  if (signal == SIGFPE) {
    Fail("division_by_zero", "an integer is divided by zero; the result on a device is undefined",
         KM_EMU_LAUNCH_FAILURE);
  }
  if (info.si_code == SI_KERNEL) {
    Fail("misaligned_access",
         "a vector load or store whose address is no multiple of its size, or an address outside "
         "the address space",
         KM_EMU_MISALIGNED_ADDRESS);
  }
  const void* address = info.si_addr;
  if (scheduler_.StackGuardHolds(address)) {
    Fail("unsupported", "a thread needs more than 512 KiB of local memory and call frames",
         KM_EMU_LAUNCH_FAILURE);
  }
  const auto shared_text = [&](const GuardedRegion& region, const std::string& name) {
    return "byte offset " + std::to_string(static_cast<const char*>(address) - region.start()) +
           " of " + name + " of " + std::to_string(region.bytes()) + " bytes";
  };
  for (const auto& [site, variable] : shared_) {
    if (variable.region.MappingHolds(address)) {
      Fail("out_of_bounds", shared_text(variable.region, variable.name), KM_EMU_ILLEGAL_ADDRESS);
    }
  }
  if (dynamic_shared_.MappingHolds(address)) {
    Fail("out_of_bounds", shared_text(dynamic_shared_, "dynamic shared memory"),
         KM_EMU_ILLEGAL_ADDRESS);
  }
  if (const auto text = memory_.Describe(address)) {
    Fail("out_of_bounds", *text, KM_EMU_ILLEGAL_ADDRESS);
  }
  const auto number = reinterpret_cast<std::uintptr_t>(address);
  char text[96];
  std::snprintf(text, sizeof(text), "address 0x%zx, which %s", static_cast<std::size_t>(number),
                number < 65536 ? "is a null pointer or near one" : "belongs to no allocation");
  Fail("out_of_bounds", text, KM_EMU_ILLEGAL_ADDRESS);
}

AccessMonitor::Actor Device::Actor() const {
  return {block_linear_, scheduler_.Current(), scheduler_.BarriersPassed(),
          scheduler_.WarpOperationsPassed()};
}

void Device::Fence() {
  if (in_kernel_) monitor_.Synchronise(Actor(), true);
}

void Device::Access(const void* address, std::size_t bytes, AccessMonitor::Kind kind) {
  if (!in_kernel_) return;
  counters_.instrumented = 1;
  if (kind == AccessMonitor::Kind::kAtomic) ++counters_.atomics;
  const char* at = static_cast<const char*>(address);
  if (at < last_range_.start || at >= last_range_.start + last_range_.bytes) {
    static const std::string kTensor = "a tensor";
    static const std::string kDynamic = "dynamic shared memory";
    const auto use = [&](const GuardedRegion& region, bool is_shared, const std::string& name) {
      last_range_ = {region.start(), region.bytes(), is_shared, &name};
    };
    const GuardedRegion* global = memory_.Find(address);
    if (global != nullptr) {
      use(*global, false, kTensor);
    } else if (dynamic_shared_.Holds(address)) {
      use(dynamic_shared_, true, kDynamic);
    } else {
      bool found = false;
      for (const auto& [site, variable] : shared_) {
        if (!variable.region.Holds(address)) continue;
        use(variable.region, true, variable.name);
        found = true;
        break;
      }
      if (!found) {
        ++counters_.other_accesses;
        return;
      }
    }
  }
  monitor_.Access(last_range_, at, bytes, kind, Actor());
  if (kind == AccessMonitor::Kind::kAtomic) return;
  CountAccess(last_range_.is_shared, kind == AccessMonitor::Kind::kStore, bytes);
}

void Device::CountAccess(bool is_shared, bool is_store, std::size_t bytes) {
  if (is_shared) {
    ++(is_store ? counters_.shared_stores : counters_.shared_loads);
    (is_store ? counters_.shared_store_bytes : counters_.shared_load_bytes) += bytes;
  } else {
    ++(is_store ? counters_.global_stores : counters_.global_loads);
    (is_store ? counters_.global_store_bytes : counters_.global_load_bytes) += bytes;
  }
}

void* Device::Allocate(std::size_t bytes) {
  const std::scoped_lock lock(host_mutex_);
  return memory_.Allocate(bytes, poison_);
}

bool Device::Free(void* address) {
  const std::scoped_lock lock(host_mutex_);
  return memory_.Free(address);
}

bool Device::Find(const void* address, void** start, std::size_t* bytes) {
  const std::scoped_lock lock(host_mutex_);
  const GuardedRegion* region = memory_.Find(address);
  if (region == nullptr) return false;
  if (start != nullptr) *start = region->start();
  if (bytes != nullptr) *bytes = region->bytes();
  return true;
}

std::size_t Device::AllocatedBytes() {
  const std::scoped_lock lock(host_mutex_);
  return memory_.allocated_bytes();
}

std::string Device::FindingsAsJson() {
  const std::scoped_lock lock(host_mutex_);
  return findings_.AllAsJson();
}

void Device::ClearFindings() {
  const std::scoped_lock lock(host_mutex_);
  findings_.Clear();
}

int Device::LastError(bool clear) {
  const std::scoped_lock lock(host_mutex_);
  const int error = last_error_;
  if (clear && !sticky_) last_error_ = KM_EMU_SUCCESS;
  return error;
}

void Device::SetError(int error) {
  const std::scoped_lock lock(host_mutex_);
  if (error != KM_EMU_SUCCESS && !sticky_) last_error_ = error;
}

void Device::AllowDynamicShared(std::size_t bytes) {
  const std::scoped_lock lock(host_mutex_);
  if (bytes > dynamic_shared_allowed_ && bytes <= kSharedBytesWithOptIn) {
    dynamic_shared_allowed_ = bytes;
  }
}

}  // namespace kmosaic::emulation
