// What a CUDA source uses that the emulated device does not have.
#ifndef KMOSAIC_GPU_WORKER_EMULATION_UNSUPPORTED_H_
#define KMOSAIC_GPU_WORKER_EMULATION_UNSUPPORTED_H_

#include <optional>
#include <string>
#include <string_view>

namespace kmosaic {

// Names the first such thing and its line ("line 12: inline PTX (asm)"); nullopt when nothing
// speaks against running the source. Takes any text.
std::optional<std::string> FindUnsupported(std::string_view source);

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_EMULATION_UNSUPPORTED_H_
