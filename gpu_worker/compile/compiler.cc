#include "gpu_worker/compile/compiler.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "absl/strings/str_cat.h"
#include "common/base/digest.h"
#include "common/base/status.h"
#include "common/base/text.h"
#include "gpu_worker/compile/build_failure.h"
#include "gpu_worker/compile/build_log.h"
#include "gpu_worker/compile/plan_files.h"

namespace kmosaic {
namespace {

namespace fs = std::filesystem;
namespace v1 = kernelmosaic::v1;
using nlohmann::json;

constexpr int kKeyFormat = 2;

std::string Dump(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string LibraryName(size_t index) { return absl::StrCat("ext", index, ".so"); }

// `errors`: one per extension, empty for those that were built.
std::string Manifest(const CompileJob& job, const std::vector<std::string>& errors) {
  json extensions = json::array();
  for (size_t i = 0; i < job.extensions.size(); ++i) {
    const ExtensionSource& source = job.extensions[i].source;
    json extension = {{"key", source.key}, {"name", source.name}, {"functions", source.functions}};
    if (errors[i].empty()) {
      extension["library"] = LibraryName(i);
    } else {
      extension["error"] = errors[i];
    }
    extensions.push_back(std::move(extension));
  }
  return Dump({{"device", job.device},
               {"contract", job.contract},
               {"arch", job.arch},
               {"toolchain", job.toolchain},
               {"extensions", extensions}});
}

// How bad a failure is for the answer: the machine's trouble comes before the source's.
int Rank(v1::Verdict verdict) {
  switch (verdict) {
    case v1::VERDICT_INFRASTRUCTURE:
      return 0;
    case v1::VERDICT_COMPILE_ERROR:
      return 1;
    default:
      return 2;
  }
}

struct Run {
  CommandRequest request;
  absl::StatusOr<CommandResult> result = CommandResult();
};

}  // namespace

std::string JobKey(const CompileJob& job) {
  json extensions = json::array();
  for (const PlannedExtension& extension : job.extensions) {
    json files = json::array();
    for (const BuildPlan::File& file : extension.plan.files) {
      files.push_back({file.name, Sha256Hex(file.text)});
    }
    extensions.push_back({{"key", extension.source.key},
                          {"name", extension.source.name},
                          {"functions", extension.source.functions},
                          {"files", files},
                          {"commands", extension.plan.commands},
                          {"output", extension.plan.output},
                          {"refusal", extension.refusal}});
  }
  return Sha256Hex(Dump({{"format", kKeyFormat},
                         {"device", job.device},
                         {"contract", job.contract},
                         {"arch", job.arch},
                         {"toolchain", job.toolchain},
                         {"headers", job.header_digest},
                         {"extensions", extensions}}));
}

Compiler::Compiler(Options options) : options_(options), slots_(options.slots) {}

absl::StatusOr<CachedBuild> Compiler::Compile(const CompileJob& job,
                                              const std::function<bool()>& cancelled) {
  return options_.cache->GetOrBuild(
      JobKey(job), [&](const std::string& directory) { return Build(job, directory, cancelled); },
      cancelled);
}

absl::StatusOr<BuildOutcome> Compiler::BuildExtension(const PlannedExtension& extension,
                                                      const std::string& work,
                                                      const std::function<bool()>& cancelled) {
  BuildOutcome outcome;
  if (!extension.refusal.empty()) {
    outcome.failure = v1::VERDICT_COMPILE_ERROR;
    outcome.reason = outcome.log = extension.refusal;
    return outcome;
  }
  const BuildPlan& plan = extension.plan;
  KMOSAIC_RETURN_IF_ERROR(WritePlanFiles(plan, work));
  std::vector<Run> runs;
  for (const std::vector<std::string>& command : plan.commands) {
    CommandRequest request;
    request.argv = command;
    request.directory = work;
    request.readable = plan.readable;
    request.wall_limit = options_.wall_limit;
    request.memory_bytes = options_.memory_bytes;
    request.file_bytes = options_.file_bytes;
    request.processes = options_.processes;
    request.cancelled = cancelled;
    runs.push_back({std::move(request)});
  }
  // Those of [first, last) at once; they only share the directory.
  auto run_range = [&](size_t first, size_t last) {
    std::vector<std::thread> threads;
    for (size_t r = first + 1; r < last; ++r) {
      threads.emplace_back([&, r] { runs[r].result = options_.runner->Run(runs[r].request); });
    }
    runs[first].result = options_.runner->Run(runs[first].request);
    for (std::thread& thread : threads) thread.join();
  };
  size_t next = 0;
  while (next < runs.size() && outcome.ok()) {
    size_t first = next;
    next = plan.parallel && first + 1 < runs.size() ? runs.size() - 1 : first + 1;
    run_range(first, next);
    std::string log;
    std::vector<BuildFailure> failures;
    for (size_t r = first; r < next; ++r) {
      if (!runs[r].result.ok()) return runs[r].result.status();
      const CommandResult& result = *runs[r].result;
      if (result.limit == CommandResult::Limit::kCancelled) {
        return absl::CancelledError("cancelled while compiling");
      }
      if (result.exit_code == 0 && result.limit == CommandResult::Limit::kNone) continue;
      failures.push_back(ClassifyFailure(runs[r].request, result));
      outcome.log_dropped_bytes += result.output_dropped_bytes;
      absl::StrAppend(&log, result.output);
    }
    if (failures.empty()) continue;
    auto worst = std::min_element(failures.begin(), failures.end(),
                                  [](const BuildFailure& a, const BuildFailure& b) {
                                    return Rank(a.verdict) < Rank(b.verdict);
                                  });
    outcome.failure = worst->verdict;
    outcome.reason = worst->reason;
    std::vector<std::string> hidden = {work};
    for (const std::string& readable : plan.readable) hidden.push_back(readable);
    TrimmedLog trimmed = TrimLog(log, options_.log_bytes, hidden);
    outcome.log = std::move(trimmed.text);
    outcome.log_dropped_bytes += trimmed.dropped_bytes;
  }
  return outcome;
}

absl::StatusOr<BuildOutcome> Compiler::Build(const CompileJob& job, const std::string& directory,
                                             const std::function<bool()>& cancelled) {
  KMOSAIC_ASSIGN_OR_RETURN(Slots::Permit permit, slots_.Acquire(cancelled));
  absl::Duration start = options_.clock->Steady();
  BuildOutcome outcome;
  std::vector<std::string> errors(job.extensions.size());
  for (size_t i = 0; i < job.extensions.size() && outcome.ok(); ++i) {
    const PlannedExtension& extension = job.extensions[i];
    fs::path work = fs::path(directory) / absl::StrCat("ext", i);
    KMOSAIC_ASSIGN_OR_RETURN(BuildOutcome one, BuildExtension(extension, work.string(), cancelled));
    if (one.failure == v1::VERDICT_COMPILE_ERROR) {
      // As in torch: this call of load_inline raises, and the program may go on without.
      errors[i] = absl::StrCat(one.reason, "\n", one.log);
      if (outcome.failed_parts.empty()) {
        outcome.reason = one.reason;
        if (job.extensions.size() > 1) {
          absl::StrAppend(&outcome.reason, " of extension '", ToValidUtf8(extension.source.name),
                          "'");
        }
      }
      absl::StrAppend(&outcome.log, one.log);
      outcome.log_dropped_bytes += one.log_dropped_bytes;
      outcome.failed_parts.push_back(extension.source.key);
      continue;
    }
    if (!one.ok()) {
      outcome = std::move(one);
      break;
    }
    std::error_code error;
    fs::rename(work / extension.plan.output, fs::path(directory) / LibraryName(i), error);
    if (error) {
      return absl::InternalError(absl::StrCat("the compilers succeeded but left no ",
                                              extension.plan.output, ": ", error.message()));
    }
    outcome.files.push_back(LibraryName(i));
  }
  if (outcome.ok() && outcome.files.empty()) outcome.failure = v1::VERDICT_COMPILE_ERROR;
  outcome.seconds = absl::ToDoubleSeconds(options_.clock->Steady() - start);
  if (!outcome.ok()) {
    outcome.files.clear();
    return outcome;
  }
  KMOSAIC_RETURN_IF_ERROR(WriteTextFile(directory + "/manifest.json", Manifest(job, errors)));
  outcome.files.push_back("manifest.json");
  return outcome;
}

}  // namespace kmosaic
