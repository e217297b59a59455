// What a reply hands in.
#ifndef KMOSAIC_AGENT_RUNNER_AGENT_VERSION_H_
#define KMOSAIC_AGENT_RUNNER_AGENT_VERSION_H_

#include <string>

#include "agent_runner/agent/history.h"
#include "common/base/enum_names.h"

namespace kmosaic {

struct Version {
  NoVersion kind = NoVersion::kNone;
  // Where there is no version: the kind's name, ": " and what is wrong.
  std::string error;
  // kReadGuidance: the name that was asked for.
  std::string document;

  v1::Solution solution;
  // SHA-256 of its source, hex.
  std::string digest;
  // It was handed in by `submit`: the conversation ends if it is verified.
  bool last_word = false;
};

// By the job's protocol; where tools are offered and none is called, a fenced block counts.
Version VersionOf(const v1::JobSpec& job, const v1::TaskSpec& task, const v1::ModelReply& reply);

// Whether the reply is kept out of what the model sees next: no endpoint takes an empty
// assistant message, and a model that reads its own loop goes on with it.
bool IsUnfit(const v1::ModelReply& reply, NoVersion kind);

}  // namespace kmosaic

#endif  // KMOSAIC_AGENT_RUNNER_AGENT_VERSION_H_
