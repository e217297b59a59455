#include "gpu_worker/device/light_toolkit.h"

#include <filesystem>

namespace kmosaic {

LightToolkit LightToolkitOf(const Toolchain& toolchain, const std::string& torch_headers) {
  LightToolkit toolkit;
  toolkit.nvcc = toolchain.nvcc;
  toolkit.include = toolchain.cuda_include;
  // Distributions have lib64, wheels have lib.
  std::error_code error;
  std::string wide = toolchain.cuda_home + "/lib64";
  toolkit.library =
      std::filesystem::is_directory(wide, error) ? wide : toolchain.cuda_home + "/lib";
  toolkit.host_compiler = toolchain.gxx;
  toolkit.torch_headers = torch_headers;
  return toolkit;
}

}  // namespace kmosaic
