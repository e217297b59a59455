#include "gpu_worker/emulation/rewrite_cuda.h"

#include "gpu_worker/emulation/masked_source.h"
#include "gpu_worker/emulation/rewrite_launches.h"
#include "gpu_worker/emulation/rewrite_shared.h"
#include "gpu_worker/emulation/text_edits.h"

namespace kmosaic {

absl::StatusOr<std::string> RewriteCuda(std::string_view source) {
  const MaskedSource masked(source);
  TextEdits edits;
  if (absl::Status status = RewriteLaunches(masked, &edits); !status.ok()) return status;
  RewriteSharedMemory(masked, &edits);
  return edits.ApplyTo(source);
}

}  // namespace kmosaic
