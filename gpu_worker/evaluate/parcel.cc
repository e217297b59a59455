#include "gpu_worker/evaluate/parcel.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "gpu_worker/sandbox/memfd.h"

namespace kmosaic {
namespace {

absl::StatusOr<UniqueFd> Duplicate(int fd) {
  UniqueFd copy(fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!copy.valid()) return ErrnoStatus(errno, "duplicate a descriptor of GPU memory");
  return copy;
}

}  // namespace

std::string BlockMemoryName(BlockMemory memory) {
  return memory == BlockMemory::kDevice ? "device" : "host";
}

absl::StatusOr<UniqueFd> Parcel::ToDescriptor(const std::string& name) const {
  if (on_device()) return Duplicate(device_block->get());
  return SealedMemfd(name, block == nullptr ? std::string_view() : std::string_view(*block));
}

absl::StatusOr<Parcel> ReadParcel(const nlohmann::json& node, const std::vector<UniqueFd>& fds,
                                  size_t* next, uint64_t max_bytes, BlockMemory memory) {
  if (*next >= fds.size()) return absl::InvalidArgumentError("a reply lacks a descriptor");
  const UniqueFd& fd = fds[(*next)++];
  Parcel parcel;
  parcel.node = node;
  if (memory == BlockMemory::kHost) {
    KMOSAIC_ASSIGN_OR_RETURN(parcel.block, ReadBlock(fd.get(), max_bytes));
    KMOSAIC_ASSIGN_OR_RETURN(parcel.value, ParseValue(node, parcel.block));
    return parcel;
  }
  KMOSAIC_ASSIGN_OR_RETURN(parcel.value, ParseValueElsewhere(node, max_bytes));
  KMOSAIC_ASSIGN_OR_RETURN(UniqueFd kept, Duplicate(fd.get()));
  parcel.device_block = std::make_shared<const UniqueFd>(std::move(kept));
  for (const Leaf& leaf : Leaves(parcel.value)) {
    const Tensor& tensor = leaf.value->tensor;
    if (tensor.size_bytes > 0) {
      parcel.device_bytes =
          std::max<uint64_t>(parcel.device_bytes, tensor.offset + tensor.size_bytes);
    }
  }
  return parcel;
}

}  // namespace kmosaic
