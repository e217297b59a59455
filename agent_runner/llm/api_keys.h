// Keys of LLM endpoints.
#ifndef KMOSAIC_AGENT_RUNNER_LLM_API_KEYS_H_
#define KMOSAIC_AGENT_RUNNER_LLM_API_KEYS_H_

#include <string>

#include "absl/status/statusor.h"

namespace kmosaic {

// Thread-safe. Keys are read anew each time, so that they can be exchanged while the
// process runs.
class ApiKeys {
 public:
  // `folder` holds one file per key, named like the key; empty: there is none.
  explicit ApiKeys(std::string folder) : folder_(std::move(folder)) {}

  // The file of that name, else the environment variable, without white space around it.
  // NOT_FOUND saying where it was looked for; INVALID_ARGUMENT for a name that could leave
  // the folder, or a key that fits into no header. The messages hold no key.
  absl::StatusOr<std::string> Get(const std::string& name) const;

 private:
  const std::string folder_;
};

// `text` with "[key]" in place of the key, wherever it stands; as it is for an empty key.
std::string WithoutKey(std::string text, const std::string& key);

}  // namespace kmosaic

#endif  // KMOSAIC_AGENT_RUNNER_LLM_API_KEYS_H_
