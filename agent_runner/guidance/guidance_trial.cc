#include "agent_runner/guidance/guidance_trial.h"

#include "absl/strings/str_cat.h"
#include "common/base/digest.h"

namespace kmosaic {

bool IsWithheld(const std::string& document, const std::string& task, const v1::ViewSet& views,
                uint32_t sample) {
  std::string digest =
      Sha256Hex(absl::StrCat(document, "\n", task, "\n", ViewSetName(views), "\n", sample / 2));
  bool first_of_pair = digest[0] < '8';
  return (sample % 2 == 0) == first_of_pair;
}

}  // namespace kmosaic
