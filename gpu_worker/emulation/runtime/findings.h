// What the emulated device noticed about the code it ran.
#ifndef KMOSAIC_GPU_WORKER_EMULATION_RUNTIME_FINDINGS_H_
#define KMOSAIC_GPU_WORKER_EMULATION_RUNTIME_FINDINGS_H_

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace kmosaic::emulation {

struct Finding {
  // out_of_bounds, misaligned_access, illegal_launch, deadlock, divergent_shuffle, race,
  // uninitialised_shared, device_assert, division_by_zero, unsupported.
  std::string kind;
  std::string kernel;
  std::array<unsigned, 3> block{};
  std::array<unsigned, 3> thread{};
  std::string detail;
  // How many times the same thing (kind, kernel, detail) was seen.
  unsigned long long count = 1;
};

// A JSON object on one line, without the line's end. Bytes that are no ASCII are escaped.
std::string ToJson(const Finding& finding);

// Collects findings. Each distinct one is written to the report file when it is first seen, so
// that it survives the process. Not synchronised.
class Findings {
 public:
  // More distinct ones are counted but not kept.
  static constexpr std::size_t kMaxKept = 64;

  void Reset(int report_fd);
  void Clear() { kept_.clear(); }
  void Add(Finding finding);
  std::string AllAsJson() const;

 private:
  std::vector<Finding> kept_;
  int report_fd_ = -1;
};

}  // namespace kmosaic::emulation

#endif  // KMOSAIC_GPU_WORKER_EMULATION_RUNTIME_FINDINGS_H_
