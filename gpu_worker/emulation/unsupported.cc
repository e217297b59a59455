#include "gpu_worker/emulation/unsupported.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gpu_worker/emulation/masked_source.h"

namespace kmosaic {

namespace {

struct Construct {
  std::string_view identifier;
  std::string_view what;
};

constexpr Construct kIdentifiers[] = {
    {"asm", "inline PTX (asm)"},
    {"__asm__", "inline PTX (asm)"},
    {"__asm", "inline PTX (asm)"},
    {"wmma", "tensor cores (wmma)"},
    {"nvcuda", "tensor cores (nvcuda)"},
    {"cudaTextureObject_t", "textures"},
    {"cudaSurfaceObject_t", "surfaces"},
    {"tex1D", "textures"},
    {"tex2D", "textures"},
    {"tex3D", "textures"},
    {"tex1Dfetch", "textures"},
    {"this_grid", "grid-wide synchronisation (cooperative_groups::this_grid)"},
    {"this_cluster", "thread block clusters"},
    {"cluster_group", "thread block clusters"},
    {"memcpy_async", "asynchronous copies (memcpy_async)"},
    {"__pipeline_memcpy_async", "asynchronous copies"},
    {"cudaLaunchCooperativeKernel", "cooperative launches"},
    {"cudaLaunchKernelEx", "extended launches (cudaLaunchKernelEx)"},
    {"cudaLaunchKernelExC", "extended launches (cudaLaunchKernelExC)"},
    {"cudaGraph_t", "CUDA graphs"},
    {"cudaGraphExec_t", "CUDA graphs"},
    {"cudaStreamBeginCapture", "CUDA graphs"},
    {"cudaGraphLaunch", "CUDA graphs"},
    {"cudaMemcpy3D", "three-dimensional copies"},
    {"cudaMalloc3D", "three-dimensional allocations"},
    {"cudaMallocArray", "CUDA arrays"},
    {"cudaCreateTextureObject", "textures"},
    {"cudaIpcGetMemHandle", "memory shared between processes"},
    {"cudaMemPoolCreate", "memory pools"},
    {"cudaMallocFromPoolAsync", "memory pools"},
    {"cuLaunchKernel", "the driver interface"},
    {"cuModuleLoad", "the driver interface"},
    {"cuModuleLoadData", "the driver interface"},
    {"nvrtcCompileProgram", "run-time compilation (nvrtc)"},
    {"getCurrentCUDABlasHandle", "torch's own cuBLAS handle"},
    {"TORCH_LIBRARY", "operators registered with TORCH_LIBRARY"},
    {"TORCH_LIBRARY_IMPL", "operators registered with TORCH_LIBRARY_IMPL"},
    {"class_", "classes bound with pybind11"},
};

// Headers (by the beginning of their name) of libraries that are not there.
constexpr Construct kHeaders[] = {
    {"mma.h", "tensor cores (mma.h)"},
    {"cutlass/", "CUTLASS"},
    {"cute/", "CuTe"},
    {"thrust/", "Thrust"},
    {"cudnn", "cuDNN"},
    {"cufft", "cuFFT"},
    {"curand", "cuRAND"},
    {"cusparse", "cuSPARSE"},
    {"cusolver", "cuSOLVER"},
    {"cublasLt", "cuBLASLt"},
    {"nvrtc", "run-time compilation (nvrtc)"},
    {"cuda/", "libcu++ (cuda/)"},
    {"cuda_pipeline", "asynchronous copies (cuda_pipeline.h)"},
    {"cuda_fp8", "8-bit floating point"},
    {"cuda_fp4", "4-bit floating point"},
    {"cooperative_groups/memcpy_async", "asynchronous copies"},
};

// What include/cublas_v2.h declares.
constexpr std::string_view kCublas[] = {"cublasCreate",
                                        "cublasCreate_v2",
                                        "cublasDestroy",
                                        "cublasDestroy_v2",
                                        "cublasSetStream",
                                        "cublasSetStream_v2",
                                        "cublasSetMathMode",
                                        "cublasSetPointerMode",
                                        "cublasGetStatusString",
                                        "cublasSgemm",
                                        "cublasSgemm_v2",
                                        "cublasDgemm",
                                        "cublasDgemm_v2",
                                        "cublasHgemm",
                                        "cublasSgemmStridedBatched",
                                        "cublasDgemmStridedBatched",
                                        "cublasSgemmBatched",
                                        "cublasDgemmBatched",
                                        "cublasSgemv",
                                        "cublasSgemv_v2",
                                        "cublasDgemv",
                                        "cublasSaxpy",
                                        "cublasDaxpy",
                                        "cublasSscal",
                                        "cublasDscal",
                                        "cublasSdot",
                                        "cublasDdot",
                                        "cublasSgeam",
                                        "cublasDgeam",
                                        "cublasGemmEx",
                                        "cublasGemmStridedBatchedEx"};

std::size_t LineOf(std::string_view text, std::size_t position) {
  return 1 + static_cast<std::size_t>(std::count(
                 text.begin(), text.begin() + static_cast<std::ptrdiff_t>(position), '\n'));
}

std::optional<std::string> UnsupportedHeader(const MaskedSource& source) {
  const std::string_view raw = source.raw();
  for (std::size_t at = source.FindIdentifier("include", 0); at != MaskedSource::kNone;
       at = source.FindIdentifier("include", at + 1)) {
    if (!source.InDirective(at)) continue;
    const std::size_t open = raw.find_first_of("<\"\n", at);
    if (open == std::string_view::npos || raw[open] == '\n') continue;
    const std::string_view name = raw.substr(open + 1, 128);
    for (const Construct& header : kHeaders) {
      if (name.substr(0, header.identifier.size()) == header.identifier) {
        return absl::StrCat("line ", LineOf(raw, at), ": ", std::string(header.what));
      }
    }
  }
  return std::nullopt;
}

// Does the name at `at` stand where a declaration has it: behind another name, * or &?
bool IsDeclared(const MaskedSource& source, std::size_t at) {
  const std::string_view code = source.code();
  std::size_t end = at;
  while (end > 0 && (code[end - 1] == ' ' || code[end - 1] == '\n')) --end;
  std::size_t begin = end;
  while (begin > 0 && IsIdentifierCharacter(code[begin - 1])) --begin;
  const std::string_view before = code.substr(begin, end - begin);
  return !before.empty() && before != "return";
}

// A call of a cuBLAS function that is not there and that the source does not define itself.
std::optional<std::string> UnsupportedCublas(const MaskedSource& source) {
  constexpr std::string_view kPrefix = "cublas";
  const std::string_view code = source.code();
  std::optional<std::string> found;
  for (std::size_t at = code.find(kPrefix); at != MaskedSource::kNone;
       at = code.find(kPrefix, at + kPrefix.size())) {
    if (at > 0 && IsIdentifierCharacter(code[at - 1])) continue;
    std::size_t end = at;
    while (end < code.size() && IsIdentifierCharacter(code[end])) ++end;
    const std::string_view name = code.substr(at, end - at);
    const std::size_t next = source.SkipSpace(end);
    if (next >= code.size() || code[next] != '(' ||
        std::find(std::begin(kCublas), std::end(kCublas), name) != std::end(kCublas)) {
      continue;
    }
    if (IsDeclared(source, at)) return std::nullopt;
    if (!found) {
      found = absl::StrCat("line ", LineOf(code, at), ": the cuBLAS function ", std::string(name));
    }
  }
  return found;
}

// asm volatile("" ::: "memory") orders the compiler only and works here too.
bool IsEmptyAssembly(const MaskedSource& source, std::size_t at) {
  const std::size_t open = source.code().find('(', at);
  if (open == std::string_view::npos) return false;
  const std::size_t quote = source.SkipSpace(open + 1);
  return source.raw().substr(quote, 2) == "\"\"";
}

// A reduction over a warp through volatile shared memory relies on the lanes running in step,
// which they do not here (nor by the programming model since compute capability 7.0).
bool IsWarpSynchronous(const MaskedSource& source) {
  const std::string_view code = source.code();
  if (source.HasIdentifier("__syncwarp")) return false;
  constexpr std::size_t kLongestSpecifiers = 256;
  std::size_t statement = 0;  // where the one that holds `at` begins
  std::size_t scanned = 0;
  for (std::size_t at = source.FindIdentifier("volatile", 0); at != MaskedSource::kNone;
       at = source.FindIdentifier("volatile", at + 1)) {
    const std::string_view rest = code.substr(at, kLongestSpecifiers);
    const std::string_view declaration = rest.substr(0, rest.find_first_of(";,){="));
    if (declaration.find('*') != std::string_view::npos ||
        declaration.find("__shared__") != std::string_view::npos) {
      return true;
    }
    for (; scanned < at; ++scanned) {
      if (code[scanned] == ';' || code[scanned] == '{' || code[scanned] == '}') {
        statement = scanned + 1;
      }
    }
    if (at - statement < kLongestSpecifiers &&
        code.substr(statement, at - statement).find("__shared__") != std::string_view::npos) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::optional<std::string> FindUnsupported(std::string_view source) {
  const MaskedSource masked(source);
  if (auto header = UnsupportedHeader(masked)) return header;
  for (const Construct& construct : kIdentifiers) {
    for (std::size_t at = masked.FindIdentifier(construct.identifier, 0); at != MaskedSource::kNone;
         at = masked.FindIdentifier(construct.identifier, at + 1)) {
      if (absl::StrContains(std::string(construct.identifier), "asm") &&
          IsEmptyAssembly(masked, at)) {
        continue;
      }
      return absl::StrCat("line ", LineOf(source, at), ": ", std::string(construct.what));
    }
  }
  if (auto function = UnsupportedCublas(masked)) return function;
  if (IsWarpSynchronous(masked)) {
    return "a reduction through volatile shared memory without __syncwarp";
  }
  return std::nullopt;
}

}  // namespace kmosaic
