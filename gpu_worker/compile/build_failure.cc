#include "gpu_worker/compile/build_failure.h"

#include <array>
#include <string_view>

#include "absl/strings/str_cat.h"

namespace kmosaic {
namespace {

namespace v1 = kernelmosaic::v1;

struct HostFault {
  std::string_view mark;
  std::string_view advice;
};

// What compilers say when the machine is not right. No source text is among these, and
// quoted source lines (which start with blanks or a line number and a bar) are not
// searched, so a candidate cannot pass its error off as ours by a comment.
constexpr std::array<HostFault, 12> kHostFaults = {{
    {"unsupported GNU version", "install a host compiler that this CUDA toolkit supports"},
    {"unsupported clang version", "install a host compiler that this CUDA toolkit supports"},
    {"Failed to preprocess host compiler properties", "check the host compiler of nvcc"},
    {"nvcc fatal   : Cannot find compiler", "install g++ or put it in PATH"},
    {"nvcc fatal   : Could not open", "check the cache directory"},
    {"Unsupported gpu architecture", "install a CUDA toolkit that knows this GPU"},
    {"No space left on device", "free space on the volume of the cache directory"},
    {"Read-only file system", "make the cache directory writable"},
    {"Disk quota exceeded", "free space on the volume of the cache directory"},
    {"cannot execute 'cc1plus'", "reinstall g++"},
    {"error while loading shared libraries", "reinstall the compiler"},
    {"Too many open files", "raise the limit of open files"},
}};

bool IsQuotedSource(std::string_view line) {
  return line.empty() || line[0] == ' ' || line[0] == '\t' || line.find(" | ") != line.npos;
}

const HostFault* FindHostFault(std::string_view output) {
  while (!output.empty()) {
    size_t end = output.find('\n');
    std::string_view line = output.substr(0, end);
    output.remove_prefix(end == std::string_view::npos ? output.size() : end + 1);
    if (IsQuotedSource(line)) continue;
    // #error and static_assert repeat the candidate's own words.
    if (line.find("#error") != line.npos || line.find("static assertion") != line.npos ||
        line.find("#warning") != line.npos) {
      // The toolkit's own host check is an #error in one of its headers.
      if (line.find("host_config.h") == line.npos) continue;
    }
    for (const HostFault& fault : kHostFaults) {
      if (line.find(fault.mark) != line.npos) return &fault;
    }
  }
  return nullptr;
}

bool RanOutOfMemory(std::string_view output) {
  for (std::string_view mark :
       {"virtual memory exhausted", "cc1plus: out of memory", "Cannot allocate memory",
        "std::bad_alloc", "Killed signal terminated program"}) {
    if (output.find(mark) != output.npos) return true;
  }
  return false;
}

}  // namespace

BuildFailure ClassifyFailure(const CommandRequest& request, const CommandResult& result) {
  using Limit = CommandResult::Limit;
  std::string tool = request.argv.empty() ? "compiler" : request.argv[0];
  tool = tool.substr(tool.rfind('/') == std::string::npos ? 0 : tool.rfind('/') + 1);
  switch (result.limit) {
    case Limit::kTime:
      return {v1::VERDICT_COMPILE_TIMEOUT,
              absl::StrCat(tool, " did not finish within ",
                           absl::ToInt64Seconds(request.wall_limit), " s")};
    case Limit::kMemory:
      return {v1::VERDICT_COMPILE_RESOURCES,
              absl::StrCat(tool, " used more than the allowed ", request.memory_bytes >> 20,
                           " MiB of memory")};
    case Limit::kFileSize:
      return {v1::VERDICT_COMPILE_RESOURCES,
              absl::StrCat(tool, " wrote a file larger than the allowed ", request.file_bytes >> 20,
                           " MiB")};
    case Limit::kProcesses:
      return {v1::VERDICT_COMPILE_RESOURCES, absl::StrCat(tool, " started more than the allowed ",
                                                          request.processes, " processes")};
    case Limit::kCancelled:
    case Limit::kNone:
      break;
  }
  if (const HostFault* fault = FindHostFault(result.output); fault != nullptr) {
    return {v1::VERDICT_INFRASTRUCTURE,
            absl::StrCat(tool, ": ", std::string(fault->mark), "; ", std::string(fault->advice))};
  }
  if (result.exit_code == 127 || result.exit_code == 126) {
    return {v1::VERDICT_INFRASTRUCTURE,
            absl::StrCat(request.argv.empty() ? "" : request.argv[0],
                         " cannot be run in the sandbox; reinstall it or name another compiler")};
  }
  if (RanOutOfMemory(result.output)) {
    return {v1::VERDICT_COMPILE_RESOURCES, absl::StrCat(tool, " ran out of memory")};
  }
  if (result.exit_code > 128) {
    return {v1::VERDICT_COMPILE_ERROR,
            absl::StrCat(tool, " crashed with signal ", result.exit_code - 128)};
  }
  return {v1::VERDICT_COMPILE_ERROR, absl::StrCat(tool, " refused the source")};
}

}  // namespace kmosaic
