// The CUDA language on a CPU: qualifiers, built-in variables, launches, shared memory. Read by
// code compiled from a candidate's CUDA source after the rewriter has been over it; C++17.
#ifndef KMOSAIC_EMULATION_LANGUAGE_H_
#define KMOSAIC_EMULATION_LANGUAGE_H_

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "kmosaic_emulation/runtime_api.h"

#undef __global__
#undef __device__
#undef __host__
#undef __shared__
#undef __constant__
#undef __managed__
#undef __launch_bounds__
#undef __maxnreg__
#undef __cluster_dims__
#undef __grid_constant__
#define __global__
#define __device__
#define __host__
#define __constant__
#define __managed__
#define __launch_bounds__(...)
#define __maxnreg__(...)
#define __cluster_dims__(...)
#define __grid_constant__
// The rewriter replaces declarations of shared variables; what it leaves alone (text of a macro)
// becomes a static variable: blocks run one after another, so it is the block's own.
#define __shared__ static

// Device code and host code are one translation unit here.
#define __CUDA_ARCH__ 900
#define __CUDA_ARCH_LIST__ 900
#define __CUDACC_VER_MAJOR__ 13
#define __CUDACC_VER_MINOR__ 0

#define KMOSAIC_EMULATED_DEVICE 1

// One copy per extension: hidden, so that two extensions in a process do not share them, and
// reached without an indirection.
#define KMOSAIC_EMU_VARIABLE inline __attribute__((visibility("hidden")))

KMOSAIC_EMU_VARIABLE uint3 threadIdx;
KMOSAIC_EMU_VARIABLE uint3 blockIdx;
KMOSAIC_EMU_VARIABLE dim3 blockDim;
KMOSAIC_EMU_VARIABLE dim3 gridDim;
constexpr int warpSize = 32;

namespace kmosaic_emulation {

KMOSAIC_EMU_VARIABLE uint64_t block_serial;
KMOSAIC_EMU_VARIABLE const KmEmuVariables variables = {&threadIdx.x, &blockIdx.x, &blockDim.x,
                                                       &gridDim.x, &block_serial};

struct LaunchShape {
  dim3 grid;
  dim3 block;
  size_t shared_bytes;
  // As the <<<>>> of the language: the stream has no meaning here, work is done at once.
  LaunchShape(dim3 grid_dim, dim3 block_dim, size_t shared = 0, cudaStream_t = nullptr)
      : grid(grid_dim), block(block_dim), shared_bytes(shared) {}
};

// Runs `kernel(arguments...)` for every thread. The arguments are copied once, and once more for
// each thread, as kernel parameters are.
template <class Kernel, class... Arguments>
void Launch(const LaunchShape& shape, const char* name, Kernel kernel, Arguments... arguments) {
  auto run = [&] { kernel(arguments...); };
  KmEmuLaunch launch = {};
  launch.grid[0] = shape.grid.x;
  launch.grid[1] = shape.grid.y;
  launch.grid[2] = shape.grid.z;
  launch.block[0] = shape.block.x;
  launch.block[1] = shape.block.y;
  launch.block[2] = shape.block.z;
  launch.dynamic_shared_bytes = shape.shared_bytes;
  launch.kernel = name;
  launch.body = [](const void* context) {
    const auto& thread = *static_cast<const decltype(run)*>(context);
    while (kmosaic_emu_next_thread()) thread();
  };
  launch.context = &run;
  launch.variables = &variables;
  kmosaic_emu_launch(&launch);
}

// A literal 0 among a kernel's arguments: a number or a null pointer, as the parameter wants.
struct Zero {
  template <class T, class = std::enable_if_t<std::is_arithmetic<T>::value ||
                                              std::is_pointer<T>::value>>
  constexpr operator T() const {
    return T(0);
  }
};

// A static shared variable's home.
template <class T>
inline T& SharedVariable(KmEmuSharedSite* site, const char* name) {
  if (__builtin_expect(site->block_serial != block_serial, 0)) {
    return *static_cast<T*>(kmosaic_emu_shared(site, sizeof(T), name));
  }
  return *static_cast<T*>(site->address);
}

// Stands for `extern __shared__ T name[];` outside of a function.
template <class T>
struct DynamicShared {
  operator T*() const { return static_cast<T*>(kmosaic_emu_dynamic_shared()); }
  template <class Index>
  T& operator[](Index index) const {
    return static_cast<T*>(kmosaic_emu_dynamic_shared())[index];
  }
};

}  // namespace kmosaic_emulation

#endif  // KMOSAIC_EMULATION_LANGUAGE_H_
