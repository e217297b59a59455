// Finds the solution in a model's reply.
#ifndef KMOSAIC_AGENT_RUNNER_AGENT_CODE_EXTRACTION_H_
#define KMOSAIC_AGENT_RUNNER_AGENT_CODE_EXTRACTION_H_

#include <string>
#include <string_view>
#include <vector>

#include "common/base/enum_names.h"

namespace kmosaic {

// What a solution has to define to count as one.
struct EntryPoint {
  v1::Contract contract = v1::CONTRACT_MODELNEW;
  // CONTRACT_CUDA: name of the extern "C" host entry.
  std::string function;
};

// For CONTRACT_CUDA the name is the identifier before the prototype's '('; empty when
// the prototype has none.
EntryPoint EntryPointOf(const v1::TaskSpec& task);

enum class ExtractionOutcome {
  kCode,
  kTruncated,     // a fence is never closed
  kNoEntryPoint,  // complete blocks, none defines the entry point
  kUnfenced,      // the entry point is defined, but outside any fence
  kNoCode,        // neither
};

// "code", "truncated", "no_entry_point", "unfenced", "no_code".
std::string ExtractionOutcomeName(ExtractionOutcome outcome);

struct Extraction {
  ExtractionOutcome outcome = ExtractionOutcome::kNoCode;
  // The last complete block that defines the entry point, ending with a newline; empty
  // unless outcome is kCode.
  std::string code;
  // Complete blocks seen.
  int blocks = 0;
};

struct FencedBlock {
  std::string info;
  std::string text;
  bool closed = false;
};

// CommonMark's fenced code blocks, also inside list items: ` and ~ fences of three or
// more, closed by a fence of the same character at least as long. Line ends become '\n'.
std::vector<FencedBlock> FencedBlocks(std::string_view markdown);

// Whether `code` defines the entry point: `class ModelNew` at the start of a line, or a
// function definition of that name in a text that has extern "C". Comments and strings
// do not count.
bool DefinesEntryPoint(std::string_view code, const EntryPoint& entry);

// `reply` without reasoning text. An unclosed fence counts as truncated only when no
// complete block defines the entry point.
Extraction ExtractCode(std::string_view reply, const EntryPoint& entry);

}  // namespace kmosaic

#endif  // KMOSAIC_AGENT_RUNNER_AGENT_CODE_EXTRACTION_H_
