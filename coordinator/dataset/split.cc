#include "coordinator/dataset/split.h"

#include <string>

#include "common/base/digest.h"

namespace kmosaic {

std::string_view SplitOfTask(std::string_view task_id) {
  // 32 bits of the digest; a share of them is the same share of the tasks.
  uint64_t hash = std::stoul(Sha256Hex(task_id).substr(0, 8), nullptr, 16);
  uint64_t percent = hash * 100 >> 32;
  if (percent < 90) return "train";
  return percent < 95 ? "validation" : "test";
}

}  // namespace kmosaic
