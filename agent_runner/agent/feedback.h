// What a model is told about its latest reply: short and exact.
#ifndef KMOSAIC_AGENT_RUNNER_AGENT_FEEDBACK_H_
#define KMOSAIC_AGENT_RUNNER_AGENT_FEEDBACK_H_

#include <cstdint>
#include <string>

#include "agent_runner/agent/code_extraction.h"
#include "agent_runner/agent/history.h"
#include "common/base/enum_names.h"

namespace kmosaic {

// What an evaluation found, for any verdict about a candidate. A mismatch under a public
// seed is given with seed, family, index and values; one under a secret seed only with
// its extent and pattern. Empty for INFRASTRUCTURE and INVALID_TASK, which say nothing
// about the candidate and are never shown.
std::string VerdictFeedback(const v1::EvaluationReport& report);

// Time against baseline and floor on a GPU; counted work, called so, on the emulated
// device; empty where neither was measured.
std::string MeasureText(const v1::EvaluationReport& report);

// How a version is handed in.
struct AnswerForm {
  EntryPoint entry;
  bool tools = false;
};

// Why the reply holds no version and how to answer instead. `kind` is neither kNone nor
// kReadGuidance; `error` is the result's extraction_error.
std::string NoVersionFeedback(NoVersion kind, const std::string& error, const AnswerForm& form,
                              uint32_t max_tokens);

// The reply repeats the version of `turn` (from 1), which was judged already.
std::string ResubmissionFeedback(uint32_t turn, const v1::EvaluationReport& report);

// A version that was verified first: what it measured, and the call to make it faster.
std::string OptimiseFeedback(const v1::EvaluationReport& best);

// An optimisation that is not kept: the evidence, and the version to go on from.
std::string RollbackFeedback(const v1::EvaluationReport& last, const v1::TurnResult& best);

// What went wrong in one text for guidance's error patterns: verdict name, reason, log.
std::string ErrorText(const v1::EvaluationReport& report);

}  // namespace kmosaic

#endif  // KMOSAIC_AGENT_RUNNER_AGENT_FEEDBACK_H_
