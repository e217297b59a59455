#include "coordinator/queue/submission.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "common/base/digest.h"
#include "common/base/status.h"
#include "common/base/views.h"
#include "coordinator/queue/item_plan.h"
#include "coordinator/queue/records.h"

namespace kmosaic {
namespace {

constexpr uint32_t kMaxSamples = 1000;
constexpr uint32_t kMaxWeight = 1000;
constexpr uint32_t kMaxPriority = 9;
constexpr uint32_t kMaxAttempts = 100;
constexpr size_t kMaxIdBytes = 128;
constexpr size_t kMaxRequestIdBytes = 256;
constexpr size_t kMaxTaskBytes = 5u << 20;
constexpr size_t kMaxRecordingsBytes = 32u << 20;

absl::Status Invalid(std::string_view what) {
  return absl::InvalidArgumentError(std::string(what));
}

bool IsTaskId(const std::string& id) {
  return !id.empty() && id.size() <= kMaxIdBytes &&
         std::all_of(id.begin(), id.end(), [](unsigned char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '.' || c == '_' || c == '-';
         });
}

absl::Status CheckViews(const v1::JobSpec& spec) {
  if (spec.views().empty()) return Invalid("spec.views: name at least one combination of views");
  std::set<std::set<int>> seen;
  for (int i = 0; i < spec.views_size(); ++i) {
    const auto& views = spec.views(i).views();
    if (views.empty()) return Invalid(absl::StrCat("spec.views[", i, "]: no view is named"));
    for (int view : views) {
      if (view < v1::VIEW_DESCRIPTION || view > v1::VIEW_SPEC) {
        return Invalid(absl::StrCat("spec.views[", i, "]: ", view, " is not a view"));
      }
    }
    std::set<int> set(views.begin(), views.end());
    if (set.size() != static_cast<size_t>(views.size())) {
      return Invalid(absl::StrCat("spec.views[", i, "]: a view is named twice"));
    }
    if (!seen.insert(set).second) {
      return Invalid(absl::StrCat("spec.views[", i, "]: this combination is named twice"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckEndpoint(const v1::Endpoint& endpoint) {
  switch (endpoint.kind()) {
    case v1::ENDPOINT_KIND_REPLAY:
      if (endpoint.recordings().size() > kMaxRecordingsBytes) {
        return Invalid(absl::StrCat("spec.endpoint.recordings: ", endpoint.recordings().size(),
                                    " bytes; at most ", kMaxRecordingsBytes));
      }
      return absl::OkStatus();
    case v1::ENDPOINT_KIND_OPENAI:
    case v1::ENDPOINT_KIND_ANTHROPIC:
      if (endpoint.url().empty()) return Invalid("spec.endpoint.url: this kind needs one");
      if (endpoint.model().empty()) return Invalid("spec.endpoint.model: this kind needs one");
      return absl::OkStatus();
    default:
      return Invalid("spec.endpoint.kind: it has to be replay, openai or anthropic");
  }
}

bool IsAtLeastZero(double value) { return std::isfinite(value) && value >= 0; }

// Fills in what a client may leave out.
void ApplyDefaults(v1::JobSpec& spec) {
  if (spec.kind().empty()) spec.set_kind("generate");
  if (spec.samples() == 0) spec.set_samples(1);
  if (spec.weight() == 0) spec.set_weight(1);
  if (spec.max_attempts() == 0) spec.set_max_attempts(3);
}

absl::Status CheckSpec(const v1::JobSpec& spec) {
  if (spec.kind() != "generate") {
    return Invalid(absl::StrCat("spec.kind: '", spec.kind(), "' is not known; use generate"));
  }
  KMOSAIC_RETURN_IF_ERROR(CheckViews(spec));
  if (spec.samples() > kMaxSamples) {
    return Invalid(absl::StrCat("spec.samples: ", spec.samples(), " is above ", kMaxSamples));
  }
  if (spec.weight() > kMaxWeight) {
    return Invalid(absl::StrCat("spec.weight: ", spec.weight(), " is above ", kMaxWeight));
  }
  if (spec.priority() > kMaxPriority) {
    return Invalid(absl::StrCat("spec.priority: ", spec.priority(), " is above ", kMaxPriority));
  }
  if (spec.max_attempts() > kMaxAttempts) {
    return Invalid(
        absl::StrCat("spec.max_attempts: ", spec.max_attempts(), " is above ", kMaxAttempts));
  }
  if (spec.assign() < v1::VIEW_ASSIGNMENT_UNSPECIFIED ||
      spec.assign() > v1::VIEW_ASSIGNMENT_ROUND_ROBIN) {
    return Invalid(absl::StrCat("spec.assign: ", spec.assign(), " is not known"));
  }
  if (!IsAtLeastZero(spec.target_speedup())) {
    return Invalid("spec.target_speedup: it has to be a number of at least 0");
  }
  if (!IsAtLeastZero(spec.evaluation().scale()) || spec.evaluation().scale() > 1) {
    return Invalid("spec.evaluation.scale: it has to be between 0 and 1");
  }
  if (!IsAtLeastZero(spec.budget().cost_usd())) {
    return Invalid("spec.budget.cost_usd: it has to be a number of at least 0");
  }
  if (!IsAtLeastZero(spec.job_budget().cost_usd())) {
    return Invalid("spec.job_budget.cost_usd: it has to be a number of at least 0");
  }
  std::set<std::string> names = {spec.endpoint().name()};
  for (const v1::Endpoint& endpoint : spec.further_endpoints()) {
    if (!names.insert(endpoint.name()).second) {
      return Invalid(absl::StrCat("spec.further_endpoints: two are named '", endpoint.name(), "'"));
    }
    KMOSAIC_RETURN_IF_ERROR(CheckEndpoint(endpoint));
  }
  return CheckEndpoint(spec.endpoint());
}

absl::Status CheckOracle(const v1::TaskSpec& task, const std::string& where) {
  if (task.oracle().reference().empty()) {
    return Invalid(absl::StrCat(where, ".oracle.reference: there is no program to judge by"));
  }
  if (task.contract() != v1::CONTRACT_MODELNEW && task.contract() != v1::CONTRACT_CUDA) {
    return Invalid(absl::StrCat(where, ".contract: it has to be modelnew or cuda"));
  }
  if (task.contract() == v1::CONTRACT_CUDA && task.oracle().entry().prototype().empty()) {
    return Invalid(absl::StrCat(where, ".oracle.entry: the cuda contract needs a prototype"));
  }
  return absl::OkStatus();
}

std::string NameOf(const v1::TaskSpec& task, size_t position) {
  return absl::StrCat("tasks[", position, "] (", task.id(), ")");
}

// Everything about a task that does not depend on its job. Adds its id to `ids`.
absl::StatusOr<SubmittedTask> PrepareTask(const v1::TaskSpec& task, size_t position,
                                          std::unordered_set<std::string>& ids) {
  if (!IsTaskId(task.id())) {
    return Invalid(absl::StrCat("tasks[", position, "].id: '", task.id(), "' has to be 1 to ",
                                kMaxIdBytes, " letters, digits, '.', '_' or '-'"));
  }
  std::string where = NameOf(task, position);
  if (!ids.insert(task.id()).second) {
    return Invalid(absl::StrCat(where, ".id: another task of the job has it"));
  }
  KMOSAIC_RETURN_IF_ERROR(CheckOracle(task, where));
  SubmittedTask submitted;
  submitted.id = task.id();
  submitted.id_hash = TaskIdHash(task.id());
  for (v1::View view : {v1::VIEW_DESCRIPTION, v1::VIEW_REFERENCE, v1::VIEW_SPEC}) {
    if (HasView(task, view)) submitted.views |= 1u << view;
  }
  submitted.serialized = SerializeDeterministic(task);
  if (submitted.serialized.size() > kMaxTaskBytes) {
    return Invalid(
        absl::StrCat(where, ": ", submitted.serialized.size(), " bytes; at most ", kMaxTaskBytes));
  }
  return submitted;
}

}  // namespace

uint64_t TaskIdHash(const std::string& id) {
  // FNV-1a.
  uint64_t hash = 0xcbf29ce484222325;
  for (unsigned char c : id) hash = (hash ^ c) * 0x100000001b3;
  return hash;
}

absl::Status CheckTaskViews(const v1::JobSpec& spec, size_t position, const SubmittedTask& task) {
  for (int i = 0; i < spec.views_size(); ++i) {
    if (spec.assign() == v1::VIEW_ASSIGNMENT_ROUND_ROBIN &&
        position % static_cast<size_t>(spec.views_size()) != static_cast<size_t>(i)) {
      continue;
    }
    for (int view : spec.views(i).views()) {
      if ((task.views & (1u << view)) != 0) continue;
      std::string name = ViewName(static_cast<v1::View>(view));
      return Invalid(absl::StrCat("tasks[", position, "] (", task.id, ").", name,
                                  ": the task lacks this view, and spec.views[", i,
                                  "] would show it"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Extension> MakeExtension(const v1::ExtendJobRequest& request) {
  if (request.tasks().empty()) return Invalid("tasks: an extension needs at least one");
  if (request.request_id().size() > kMaxRequestIdBytes) {
    return Invalid(absl::StrCat("request_id: longer than ", kMaxRequestIdBytes, " bytes"));
  }
  Extension extension;
  extension.job = request.id();
  extension.request_id = request.request_id();
  std::unordered_set<std::string> ids;
  Sha256 whole;
  for (const v1::TaskSpec& task : request.tasks()) {
    KMOSAIC_ASSIGN_OR_RETURN(SubmittedTask submitted,
                             PrepareTask(task, extension.tasks.size(), ids));
    if (!extension.request_id.empty()) whole.Update(Sha256Hex(submitted.serialized));
    extension.tasks.push_back(std::move(submitted));
  }
  if (!extension.request_id.empty()) extension.digest = whole.FinishHex();
  return extension;
}

SubmissionBuilder::SubmissionBuilder(const SubmissionLimits& limits) : limits_(limits) {}

absl::Status SubmissionBuilder::Add(const v1::SubmitRequest& request) {
  if (first_) {
    first_ = false;
    if (!request.has_spec()) return Invalid("spec: the first message has to hold it");
    if (request.request_id().size() > kMaxRequestIdBytes) {
      return Invalid(absl::StrCat("request_id: longer than ", kMaxRequestIdBytes, " bytes"));
    }
    submission_.request_id = request.request_id();
    total_tasks_ = request.total_tasks();
    auto spec = std::make_shared<v1::JobSpec>(request.spec());
    ApplyDefaults(*spec);
    KMOSAIC_RETURN_IF_ERROR(CheckSpec(*spec));
    bytes_ += spec->ByteSizeLong();
    whole_.Update(Sha256Hex(SerializeDeterministic(*spec)));
    submission_.spec = std::move(spec);
  } else if (request.has_spec() || !request.request_id().empty() || request.total_tasks() != 0) {
    return Invalid("spec, request_id and total_tasks belong in the stream's first message alone");
  }
  for (const v1::TaskSpec& task : request.tasks()) KMOSAIC_RETURN_IF_ERROR(AddTask(task));
  return absl::OkStatus();
}

absl::Status SubmissionBuilder::AddTask(const v1::TaskSpec& task) {
  size_t position = submission_.tasks.size();
  KMOSAIC_ASSIGN_OR_RETURN(SubmittedTask submitted, PrepareTask(task, position, ids_));
  std::string where = NameOf(task, position);
  if (position >= limits_.max_tasks) {
    return absl::ResourceExhaustedError(
        absl::StrCat(where, ": a job holds at most ", limits_.max_tasks, " tasks; split it"));
  }
  KMOSAIC_RETURN_IF_ERROR(CheckTaskViews(*submission_.spec, position, submitted));
  bytes_ += submitted.serialized.size();
  if (bytes_ > limits_.max_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat(where, ": the job is larger than ", limits_.max_bytes, " bytes; split it"));
  }
  // Digests have one length, so their sequence is unambiguous.
  whole_.Update(Sha256Hex(submitted.serialized));
  submission_.largest_task =
      std::max(submission_.largest_task, static_cast<uint32_t>(submitted.serialized.size()));
  submission_.task_bytes += submitted.serialized.size();
  submission_.tasks.push_back(std::move(submitted));
  return absl::OkStatus();
}

absl::StatusOr<Submission> SubmissionBuilder::Finish() {
  if (first_) return Invalid("spec: the stream held no message");
  if (submission_.tasks.empty()) return Invalid("tasks: a job needs at least one");
  if (total_tasks_ != 0 && total_tasks_ != submission_.tasks.size()) {
    return Invalid(absl::StrCat("total_tasks: ", total_tasks_, " were announced and ",
                                submission_.tasks.size(),
                                " came; the stream was cut off, submit again"));
  }
  uint64_t items = CountItems(*submission_.spec, static_cast<uint32_t>(submission_.tasks.size()));
  if (items > limits_.max_items) {
    return absl::ResourceExhaustedError(absl::StrCat("the job has ", items,
                                                     " items (tasks x views x samples); at most ",
                                                     limits_.max_items, " are taken; split it"));
  }
  submission_.digest = whole_.FinishHex();
  return std::move(submission_);
}

}  // namespace kmosaic
