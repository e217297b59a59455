// Guidance documents: what a model is told about CUDA beyond its task.
//
// A document is a Markdown file with a YAML front matter (docs/guidance.md):
//
//   ---
//   name: warp-reduction        letters, digits, '-'
//   version: 1
//   stages: [implement, repair, optimise]
//   families: [reduction, softmax]     optional; none: every family
//   errors: ['illegal memory access']  optional RE2 patterns; with them the document is
//                                      only picked when the last error matches one
//   contracts: [cuda]                  optional; none: every contract
//   regimes: [memory]                  optional; what bounds the kernel; none: whatever does
//   devices: [cuda]                    optional; where it is run; none: everywhere
//   ---
//   text
//
// Words behind a fence's language are for the tests of the samples and no part of the text that
// a model is shown.
#ifndef KMOSAIC_AGENT_RUNNER_GUIDANCE_GUIDANCE_LIBRARY_H_
#define KMOSAIC_AGENT_RUNNER_GUIDANCE_GUIDANCE_LIBRARY_H_

#include <re2/re2.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/enum_names.h"

namespace kmosaic {

// What bounds a kernel.
enum class Regime {
  kUnknown,
  kMemory,      // bytes moved
  kArithmetic,  // operations
  kLaunch,      // launches and the host
};

// By a benchmark: kLaunch within four times the time of a call that does almost nothing, else by
// what the hardware's floor comes from; kUnknown where neither was measured.
Regime RegimeOf(const v1::EvaluationReport& report);

struct GuidanceDocument {
  std::string name;
  uint32_t version = 1;
  std::vector<v1::Stage> stages;
  std::vector<std::string> families;
  std::vector<v1::Contract> contracts;
  std::vector<Regime> regimes;
  std::vector<v1::DeviceKind> devices;
  std::vector<std::shared_ptr<const RE2>> errors;
  std::string text;

  // "NAME@VERSION".
  std::string id() const;
};

// INVALID_ARGUMENT naming `path`, the line where YAML knows it, and what was expected.
absl::StatusOr<GuidanceDocument> ParseGuidanceDocument(std::string_view text,
                                                       const std::string& path);

struct GuidanceQuery {
  v1::Stage stage = v1::STAGE_IMPLEMENT;
  v1::Contract contract = v1::CONTRACT_MODELNEW;
  std::string family;
  // kUnknown excludes nothing.
  Regime regime = Regime::kUnknown;
  // Unspecified excludes nothing.
  v1::DeviceKind device = v1::DEVICE_KIND_UNSPECIFIED;
  // Text of the last error; empty where there was none.
  std::string error;
  // Ids already in the conversation's context: not picked again.
  std::vector<std::string> present;
  // Most estimated tokens of all documents picked together.
  uint64_t token_budget = 0;
};

// Immutable after making; any thread.
class GuidanceLibrary {
 public:
  GuidanceLibrary() = default;
  explicit GuidanceLibrary(std::vector<GuidanceDocument> documents);

  // All *.md files of a folder. NOT_FOUND when there is no such folder, ALREADY_EXISTS
  // when two documents have one name, else the first file's parse error.
  static absl::StatusOr<GuidanceLibrary> Load(const std::string& folder);

  // Best first: matched by error, by family and regime, by family, by regime, general ones;
  // by name among equals. A document that does not fit into what is left of the budget is
  // passed over.
  std::vector<const GuidanceDocument*> Pick(const GuidanceQuery& query) const;

  // All documents for this contract and device (unspecified: any), by name.
  std::vector<const GuidanceDocument*> Fitting(v1::Contract contract, v1::DeviceKind device) const;

  // By id ("NAME@VERSION"), or by name; null where there is none.
  const GuidanceDocument* Find(std::string_view id) const;
  const GuidanceDocument* FindByName(std::string_view name) const;

  size_t size() const { return documents_.size(); }

 private:
  std::vector<GuidanceDocument> documents_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_AGENT_RUNNER_GUIDANCE_GUIDANCE_LIBRARY_H_
