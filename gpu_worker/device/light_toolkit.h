// nvcc as the light binding uses it.
#ifndef KMOSAIC_GPU_WORKER_DEVICE_LIGHT_TOOLKIT_H_
#define KMOSAIC_GPU_WORKER_DEVICE_LIGHT_TOOLKIT_H_

#include <string>

#include "gpu_worker/compile/toolchain.h"
#include "gpu_worker/torch_abi/plan.h"

namespace kmosaic {

// `torch_headers`: torch_abi/include.
LightToolkit LightToolkitOf(const Toolchain& toolchain, const std::string& torch_headers);

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_DEVICE_LIGHT_TOOLKIT_H_
