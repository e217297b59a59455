// Runs C++ lambdas as kernels on the emulation runtime, without CUDA headers or a compiler.
#ifndef KMOSAIC_TESTS_UNIT_EMULATION_DEVICE_FIXTURE_H_
#define KMOSAIC_TESTS_UNIT_EMULATION_DEVICE_FIXTURE_H_

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "gpu_worker/emulation/include/kmosaic_emulation/runtime_api.h"

namespace kmosaic {

inline unsigned thread_index[3];
inline unsigned block_index[3];
inline unsigned block_dim[3];
inline unsigned grid_dim[3];
inline std::uint64_t block_serial;
inline constexpr KmEmuVariables kVariables = {thread_index, block_index, block_dim, grid_dim,
                                              &block_serial};

using Extent = std::array<unsigned, 3>;

template <class Kernel>
int Launch(Extent grid, Extent block, const Kernel& kernel, std::size_t shared_bytes = 0) {
  KmEmuLaunch launch{};
  std::memcpy(launch.grid, grid.data(), sizeof(launch.grid));
  std::memcpy(launch.block, block.data(), sizeof(launch.block));
  launch.dynamic_shared_bytes = shared_bytes;
  launch.kernel = "kernel";
  launch.body = [](const void* context) {
    const auto& threads = *static_cast<const Kernel*>(context);
    while (kmosaic_emu_next_thread() != 0) threads();
  };
  launch.context = &kernel;
  launch.variables = &kVariables;
  return kmosaic_emu_launch(&launch);
}

template <class Kernel>
int Launch(unsigned blocks, unsigned threads, const Kernel& kernel, std::size_t shared_bytes = 0) {
  return Launch(Extent{blocks, 1, 1}, Extent{threads, 1, 1}, kernel, shared_bytes);
}

inline void Sync() { kmosaic_emu_barrier(KM_BARRIER_PLAIN, 0); }
inline int ShuffleDown(unsigned mask, int value, int delta, int width = 32) {
  return static_cast<int>(
      kmosaic_emu_warp(KM_WARP_SHUFFLE_DOWN, mask, static_cast<unsigned>(value), delta, width));
}

inline std::string Findings() {
  std::string text(kmosaic_emu_findings(nullptr, 0), '\0');
  kmosaic_emu_findings(text.data(), text.size() + 1);
  return text;
}

inline bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

inline const char* const kSchedules[] = {"forward", "reverse", "random:1", "random:2"};

}  // namespace kmosaic

#endif  // KMOSAIC_TESTS_UNIT_EMULATION_DEVICE_FIXTURE_H_
