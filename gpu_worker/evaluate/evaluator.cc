#include "gpu_worker/evaluate/evaluator.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/digest.h"
#include "common/base/enum_names.h"
#include "common/base/status.h"
#include "common/base/text.h"
#include "gpu_worker/evaluate/ablation.h"
#include "gpu_worker/evaluate/counted_run.h"
#include "gpu_worker/evaluate/extension_source.h"
#include "gpu_worker/evaluate/fixed_sizes.h"
#include "gpu_worker/evaluate/source_labels.h"
#include "gpu_worker/evaluate/verifier.h"

namespace kmosaic {
namespace {

using nlohmann::json;

// Where the constructors' random numbers start, in the reference and in the solution;
// KernelBench's seed.
constexpr uint64_t kWeightSeed = 42;
constexpr size_t kMaxSourceBytes = 4 << 20;
// Memory of an evaluation in sizes of one case (inputs and outputs). On the GPU two public cases
// and the one at hand, each with outputs in float64 too; the reference's copies while it runs; the
// solution's inputs and outputs twice.
constexpr uint64_t kCasesInMemory = 12;
// The same for each further public case: inputs, and outputs in float64 too.
constexpr uint64_t kMoreForPublicCase = 3;
// Of remembered verifications.
constexpr uint64_t kVerifiedBytes = 16 << 20;
// From one scale to the next, where a task tells nothing apart.
constexpr double kLargerScale = 4;
// How often a handler of a failed build may lead to another one.
constexpr int kMaxRetries = 3;

std::string Text(const json& reply, const char* key) {
  auto found = reply.find(key);
  return found != reply.end() && found->is_string() ? found->get<std::string>() : "";
}

absl::Status CheckRequest(const v1::KernelRequest& request, const Device& device) {
  const v1::EvaluationOptions& options = request.options();
  auto bad = [](const std::string& what) { return absl::InvalidArgumentError(what); };
  if (options.device() != v1::DEVICE_KIND_UNSPECIFIED && options.device() != device.kind()) {
    return absl::FailedPreconditionError(
        absl::StrCat("this worker has device ", DeviceName(device.kind()), ", the request wants ",
                     DeviceName(options.device())));
  }
  if (!(options.scale() >= 0 && options.scale() <= 1)) {
    return bad(absl::StrCat("scale is ", options.scale(), ", not between 0 and 1"));
  }
  if (options.public_seeds() > 100 || options.secret_seeds() > 1000) {
    return bad("more than 100 public or 1000 secret seeds");
  }
  if (request.solution().source().empty()) return bad("the solution has no source");
  if (request.solution().source().size() > kMaxSourceBytes ||
      request.oracle().reference().size() > kMaxSourceBytes) {
    return bad("a source is larger than 4 MiB");
  }
  if (request.oracle().reference().empty()) return bad("the oracle has no reference");
  switch (request.solution().contract()) {
    case v1::CONTRACT_MODELNEW:
      return absl::OkStatus();
    case v1::CONTRACT_CUDA:
      return request.oracle().has_entry()
                 ? absl::OkStatus()
                 : bad("a solution of contract cuda needs an oracle with an entry");
    default:
      return bad("the solution names no contract");
  }
}

// Where a race or unwritten memory may be behind it.
bool MayComeFromOrder(v1::Verdict verdict) {
  return verdict == v1::VERDICT_WRONG_OUTPUT || verdict == v1::VERDICT_DATA_RACE ||
         verdict == v1::VERDICT_NONDETERMINISTIC;
}

// Where weights that the reference does not have may be behind it.
bool MayComeFromWeights(v1::Verdict verdict) {
  return verdict == v1::VERDICT_WRONG_OUTPUT || verdict == v1::VERDICT_NONDETERMINISTIC ||
         verdict == v1::VERDICT_RUNTIME_ERROR || verdict == v1::VERDICT_LOAD_ERROR ||
         verdict == v1::VERDICT_WRONG_LAYOUT;
}

// Where an extension that does not compile explains it: the exception of its load_inline, a
// name that was therefore never bound, or plain torch in place of it.
bool MayComeFromFailedBuild(v1::Verdict verdict) {
  return verdict == v1::VERDICT_LOAD_ERROR || verdict == v1::VERDICT_RUNTIME_ERROR ||
         verdict == v1::VERDICT_NO_CUSTOM_KERNEL;
}

}  // namespace

struct Evaluator::Work {
  Work(const Options& options, const v1::KernelRequest& asked, Cancellation* cancels)
      : request(asked),
        cancellation(cancels),
        device(options.device, [cancels] { return cancels->cancelled(); }),
        roles(options.roles, &device),
        examiner(options.examiner, &device) {}

  const v1::KernelRequest& request;
  Cancellation* const cancellation;
  DeviceUse device;
  SharingRoles roles;
  SharingExaminer examiner;
  MemoryAdmission::Permit memory;
  v1::EvaluationReport report;
  double scale = 1;
  bool is_entry = false;
  bool weights_on_cpu = false;
  std::unique_ptr<Reference> reference;
  // Sizes that the reference keeps at these values.
  std::map<std::string, int64_t> fixed;
  // Of the collect stage; empty for an entry.
  std::vector<ExtensionSource> extensions;
  // Keys of those that do not compile. When others do: what that comes to, unless the
  // solution goes on without them; else PASSED.
  std::set<std::string> failed_extensions;
  Conclusion failed_build;

  bool cancelled() const { return cancellation->cancelled(); }
};

Evaluator::Evaluator(Options options)
    : options_(std::move(options)),
      verified_(std::make_unique<LruCache<v1::EvaluationReport>>(kVerifiedBytes)) {}

absl::StatusOr<v1::EvaluationReport> Evaluator::Evaluate(const v1::KernelRequest& request,
                                                         v1::Role last_stage,
                                                         Cancellation* cancellation) const {
  KMOSAIC_RETURN_IF_ERROR(CheckRequest(request, *options_.device));
  if (last_stage == v1::ROLE_UNSPECIFIED) last_stage = v1::ROLE_VERIFY;
  Work work(options_, request, cancellation);
  v1::EvaluationReport& report = work.report;
  *report.mutable_device() = options_.device->info();
  report.mutable_device()->set_torch(options_.torch);
  report.mutable_device()->set_worker(options_.worker);
  report.set_unsandboxed(options_.unsandboxed);
  for (const std::string& label : SourceLabels(request.solution().source())) {
    report.add_labels(label);
  }
  const v1::EvaluationOptions& wanted = request.options();
  work.scale = wanted.scale() > 0 ? wanted.scale() : options_.device->default_scale();
  work.is_entry = request.solution().contract() == v1::CONTRACT_CUDA;
  work.reference = MakeReference(work, {});

  auto finish = [&](Conclusion conclusion) -> absl::StatusOr<v1::EvaluationReport> {
    if (!work.failed_build.passed() && MayComeFromFailedBuild(conclusion.verdict)) {
      absl::StrAppend(&work.failed_build.reason,
                      "; the solution without it: ", VerdictName(conclusion.verdict), ", ",
                      conclusion.reason);
      conclusion = work.failed_build;
    }
    // Whatever a cancelled call saw last is the cancellation's doing.
    if (work.cancelled()) return absl::CancelledError("the evaluation was cancelled");
    report.set_verdict(conclusion.verdict);
    report.set_reason(ToValidUtf8(conclusion.reason));
    return std::move(report);
  };

  auto built = Build(work, Device::Purpose::kRun);
  if (auto* failed = std::get_if<Conclusion>(&built)) return finish(*failed);
  if (options_.nvcc_gate != Options::NvccGate::kOff && options_.device->is_emulated()) {
    Conclusion checked = CheckWithNvcc(work);
    if (!checked.passed()) return finish(checked);
  }
  if (last_stage == v1::ROLE_COMPILE) {
    return finish(work.failed_build);
  }

  auto memory = AdmitToMemory(work);
  if (!memory.ok()) return finish(ConcludeMachine(memory.status()));
  work.memory = *std::move(memory);
  absl::Duration start = options_.clock->Steady();
  if (last_stage != v1::ROLE_BENCHMARK || !FindVerified(work)) {
    Conclusion verified = Verify(work, std::get<std::string>(built));
    if (verified.passed() && !work.cancelled()) {
      verified = CheckWithoutKernels(work, std::get<std::string>(built));
    }
    if (options_.device->is_emulated() && !work.cancelled() &&
        (verified.passed() || MayComeFromOrder(verified.verdict))) {
      verified = CheckEveryAccess(work, verified);
    }
    report.mutable_verify()->set_seconds(absl::ToDoubleSeconds(options_.clock->Steady() - start));
    if (!verified.passed()) return finish(verified);
    RememberVerified(work);
  }
  if (last_stage != v1::ROLE_BENCHMARK) return finish(Conclusion());
  if (options_.device->is_emulated()) {
    report.mutable_verify()->add_notes("no times: an emulated device has none");
    return finish(Conclusion());
  }
  return finish(Measure(work, std::get<std::string>(built)));
}

absl::StatusOr<MemoryAdmission::Permit> Evaluator::AdmitToMemory(Work& work) const {
  if (options_.memory == nullptr) return MemoryAdmission::Permit();
  auto cancelled = [&work] { return work.cancelled(); };
  uint64_t case_bytes = 0;
  auto shape = work.reference->Shape();
  // What fails here fails again where it is a verdict.
  if (auto* task = std::get_if<std::shared_ptr<const TaskShape>>(&shape)) {
    case_bytes = (*task)->case_bytes;
  }
  uint64_t asked = work.request.options().public_seeds();
  uint64_t cases = kCasesInMemory + (asked > 2 ? kMoreForPublicCase * (asked - 2) : 0);
  return options_.memory->Acquire(cases * case_bytes, cancelled);
}

std::variant<std::vector<ExtensionSource>, Conclusion> Evaluator::Collect(
    Work& work, const std::vector<std::string>& failed) const {
  auto collect =
      [&](const Parcel* init,
          const Parcel* inputs) -> std::variant<std::vector<ExtensionSource>, Conclusion> {
    auto role = work.roles.Start(RoleKind::kCollect, options_.limits.role, {});
    if (!role.ok()) return ConcludeMachine(Annotate(role.status(), "collect process"));
    auto on_cancel = work.cancellation->OnCancel([process = role->get()] { process->Kill(); });
    std::vector<UniqueFd> held;
    std::vector<int> fds;
    for (const Parcel* parcel : {init, inputs}) {
      if (parcel == nullptr) continue;
      auto fd = parcel->ToDescriptor("collect");
      if (!fd.ok()) return ConcludeMachine(fd.status());
      held.push_back(*std::move(fd));
      fds.push_back(held.back().get());
    }
    auto reply = (*role)->Call({{"op", "collect"},
                                {"source", work.request.solution().source()},
                                {"init", init == nullptr ? json() : init->node},
                                {"inputs", inputs == nullptr ? json() : inputs->node},
                                {"device", DeviceName(options_.device->kind())},
                                {"failed", failed}},
                               fds, options_.limits.collect);
    if (!reply.ok()) {
      work.report.set_output(ElideMiddle((*role)->Output(), 4096));
      if (!(*role)->failure().has_value()) return ConcludeMachine(reply.status());
      return ConcludeFailure(*(*role)->failure(), Untrusted::kSolution, "being imported");
    }
    auto ok = reply->message.find("ok");
    if (ok == reply->message.end() || !ok->is_boolean() || !ok->get<bool>()) {
      work.report.set_output(ElideMiddle((*role)->Output(), 4096));
      return ConcludeRefusal(Text(reply->message, "verdict"), Text(reply->message, "error"),
                             Untrusted::kSolution, false);
    }
    auto extensions = ParseExtensions(reply->message.value("extensions", json()));
    if (!extensions.ok()) {
      return Conclusion{v1::VERDICT_TAMPERING, std::string(extensions.status().message()), {}};
    }
    return *std::move(extensions);
  };

  // Most files build at import; only the others cost a run of the reference.
  auto first = collect(nullptr, nullptr);
  auto* refused = std::get_if<Conclusion>(&first);
  bool found_some = refused == nullptr;
  if (found_some ? CountBuildCalls(work.request.solution().source()) <=
                       std::get<std::vector<ExtensionSource>>(first).size()
                 : refused->verdict != v1::VERDICT_NO_CUSTOM_KERNEL) {
    return first;
  }
  auto shape = work.reference->Shape();
  if (auto* why = std::get_if<Conclusion>(&shape)) {
    if (found_some) return first;
    return *why;
  }
  auto task_case = work.reference->Case(PublicSeeds(1)[0], "native", /*keep=*/true);
  if (auto* why = std::get_if<Conclusion>(&task_case)) {
    if (found_some) return first;
    return *why;
  }
  // Nothing runs on the device while sources are collected.
  auto inputs = work.examiner.ToHost(std::get<std::shared_ptr<const TaskCase>>(task_case)->inputs);
  if (!inputs.ok()) return ConcludeExamination(inputs.status());
  auto second = collect(&std::get<std::shared_ptr<const TaskShape>>(shape)->init, &*inputs);
  return found_some && std::holds_alternative<Conclusion>(second) ? first : second;
}

std::variant<std::string, Conclusion> Evaluator::Build(Work& work, Device::Purpose purpose) const {
  if (purpose != Device::Purpose::kRun || work.is_entry) return BuildCollected(work, purpose);
  absl::Duration start = options_.clock->Steady();
  auto build = [&]() -> std::variant<std::string, Conclusion> {
    auto collected = Collect(work, {});
    if (auto* failed = std::get_if<Conclusion>(&collected)) return *failed;
    work.extensions = std::get<std::vector<ExtensionSource>>(std::move(collected));
    auto built = BuildCollected(work, purpose);
    // What does not compile raises, and the handler of that may ask for another build.
    const std::string& source = work.request.solution().source();
    bool may_build_again = CountBuildCalls(source) > 1 && source.find("except") != source.npos;
    for (int round = 0; may_build_again && round < kMaxRetries && !work.failed_extensions.empty();
         ++round) {
      auto more = Collect(work, {work.failed_extensions.begin(), work.failed_extensions.end()});
      auto* found = std::get_if<std::vector<ExtensionSource>>(&more);
      size_t known = work.extensions.size();
      for (size_t i = 0; found != nullptr && i < found->size(); ++i) {
        auto same = [&](const ExtensionSource& other) { return other.key == (*found)[i].key; };
        if (std::none_of(work.extensions.begin(), work.extensions.end(), same)) {
          work.extensions.push_back((*found)[i]);
        }
      }
      if (work.extensions.size() == known) break;
      built = BuildCollected(work, purpose);
    }
    return built;
  };
  auto built = build();
  work.report.mutable_compile()->set_seconds(
      absl::ToDoubleSeconds(options_.clock->Steady() - start));
  return built;
}

std::variant<std::string, Conclusion> Evaluator::BuildCollected(Work& work,
                                                                Device::Purpose purpose) const {
  absl::Duration start = options_.clock->Steady();
  v1::CompileReport& compile = *work.report.mutable_compile();
  bool first = purpose == Device::Purpose::kRun;
  if (first) {
    compile.Clear();
    compile.set_abi(work.is_entry ? "cuda" : options_.device->abi());
  }
  CompileJob job;
  v1::DeviceInfo info = options_.device->info();
  job.device = purpose == Device::Purpose::kCheck ? "nvcc" : DeviceName(options_.device->kind());
  job.contract = ContractName(work.request.solution().contract());
  job.arch = info.arch();
  job.toolchain = info.toolchain();
  job.header_digest = options_.device->header_digest();
  auto add = [&](ExtensionSource source,
                 absl::StatusOr<BuildPlan> plan) -> std::optional<Conclusion> {
    if (plan.ok()) {
      job.extensions.push_back({std::move(source), *std::move(plan), ""});
      return std::nullopt;
    }
    std::string words = ToValidUtf8(
        std::string_view(plan.status().message().data(), plan.status().message().size()));
    if (absl::IsInvalidArgument(plan.status())) {
      job.extensions.push_back({std::move(source), {}, words});
      return std::nullopt;
    }
    if (absl::IsUnimplemented(plan.status())) return Conclusion{v1::VERDICT_UNSUPPORTED, words, {}};
    return ConcludeMachine(plan.status());
  };
  if (work.is_entry) {
    const std::string& text = work.request.solution().source();
    ExtensionSource source;
    source.key = Sha256Hex(text);
    source.name = "entry";
    source.cuda_sources = {text};
    if (auto failed = add(std::move(source), options_.device->PlanEntry(text, purpose))) {
      return *failed;
    }
  } else {
    for (const ExtensionSource& source : work.extensions) {
      if (auto failed = add(source, options_.device->Plan(source, purpose))) return *failed;
    }
  }
  auto built = options_.compiler->Compile(job, [&work] { return work.cancelled(); });
  if (first) compile.set_seconds(absl::ToDoubleSeconds(options_.clock->Steady() - start));
  if (!built.ok()) return ConcludeMachine(built.status());
  if (first) {
    compile.set_cached(built->cached);
    compile.set_artifact_digest(JobKey(job));
  }
  bool decides =
      first || (purpose == Device::Purpose::kCheck && options_.nvcc_gate == Options::NvccGate::kOn);
  if (decides && !built->outcome.log.empty()) {
    compile.set_log(built->outcome.log);
    compile.set_log_dropped_bytes(built->outcome.log_dropped_bytes);
  }
  if ((built->outcome.failure == v1::VERDICT_COMPILE_ERROR ||
       !built->outcome.failed_parts.empty()) &&
      options_.device->LacksTorchApi(built->outcome.log)) {
    return Conclusion{v1::VERDICT_UNSUPPORTED,
                      "the source uses parts of torch's C++ interface that this device's light "
                      "headers do not have (see the log)",
                      {}};
  }
  const std::vector<std::string>& failed = built->outcome.failed_parts;
  if (first) work.failed_extensions = {failed.begin(), failed.end()};
  if (!built->outcome.ok()) return Conclusion{built->outcome.failure, built->outcome.reason, {}};
  if (first && !failed.empty()) {
    work.failed_build = {v1::VERDICT_COMPILE_ERROR, built->outcome.reason, {}};
    compile.add_notes(absl::StrCat(failed.size(), " of ", job.extensions.size(),
                                   " extensions do not compile: their load_inline raises"));
  }
  if (purpose == Device::Purpose::kCheck) {
    for (const std::string& key : failed) {
      if (work.failed_extensions.count(key) == 0) {
        return Conclusion{v1::VERDICT_COMPILE_ERROR, built->outcome.reason, {}};
      }
    }
  }
  return built->directory;
}

std::unique_ptr<Reference> Evaluator::MakeReference(
    Work& work, const std::map<std::string, int64_t>& fixed) const {
  Reference::Options options;
  options.oracle = work.request.oracle();
  for (const auto& [name, value] : fixed) (*options.oracle.mutable_scaled_shapes())[name] = value;
  options.device = DeviceName(options_.device->kind());
  options.memory = options_.examiner->memory();
  options.scale = work.scale;
  options.weight_seed = kWeightSeed;
  options.weights_on_cpu = work.weights_on_cpu;
  options.want_parameters = work.is_entry;
  options.torch = options_.torch;
  options.limits = options_.limits;
  return std::make_unique<Reference>(std::move(options), &work.roles, options_.references,
                                     work.cancellation);
}

Conclusion Evaluator::Verify(Work& work, const std::string& artifact) const {
  Conclusion first = VerifyWithShapes(work, artifact);
  if (!MayComeFromWeights(first.verdict) || work.cancelled()) return first;
  auto shape = work.reference->Shape();
  auto* task = std::get_if<std::shared_ptr<const TaskShape>>(&shape);
  if (task == nullptr || (*task)->weights_on == "cpu") return first;
  // A constructor may ask for the CPU where the reference's takes what it is given.
  work.weights_on_cpu = true;
  work.reference = MakeReference(work, work.fixed);
  work.report.clear_verify();
  work.report.mutable_verify()->add_notes(
      absl::StrCat("with weights drawn on the GPU: ", VerdictName(first.verdict),
                   "; so judged with weights of the CPU's generator"));
  return VerifyWithShapes(work, artifact);
}

Conclusion Evaluator::VerifyWithShapes(Work& work, const std::string& artifact) const {
  Conclusion first = VerifyAtShapes(work, artifact);
  if (work.scale < 1 && first.degenerate && !work.cancelled()) {
    return VerifyLarger(work, artifact, first);
  }
  if (work.scale >= 1 || !MayComeFromShapes(first.verdict) || work.cancelled()) return first;
  auto shape = work.reference->Shape();
  if (std::holds_alternative<Conclusion>(shape)) return first;
  const TaskShape& task = *std::get<std::shared_ptr<const TaskShape>>(shape);
  std::map<std::string, int64_t> fixed =
      FixedSizes(work.request.solution().source(), task.shapes, task.sizes);
  // What the task itself fixes stays.
  for (const auto& [name, value] : work.request.oracle().scaled_shapes()) fixed.erase(name);
  if (fixed.empty()) return first;

  // Written for these sizes, so judged at them.
  work.report.clear_verify();
  work.report.clear_work();
  work.report.mutable_verify()->add_notes(
      absl::StrCat("full size kept, since the solution holds it as a number: ", SizesText(fixed)));
  // The other sizes as they were reduced; where that does not fit together, newly chosen.
  std::map<std::string, int64_t> with_reduced = fixed;
  with_reduced.insert(task.shapes.begin(), task.shapes.end());
  auto unsupported = [&](const std::string& why) {
    return Conclusion{
        v1::VERDICT_UNSUPPORTED,
        absl::StrCat("the solution holds sizes of the full shapes (", SizesText(fixed),
                     "), and at those this device cannot judge it: ", why,
                     "; at reduced shapes it got ", VerdictName(first.verdict), ": ", first.reason),
        {}};
  };
  std::optional<Conclusion> failed;
  for (const auto& sizes : {with_reduced, fixed}) {
    work.fixed = sizes;
    work.reference = MakeReference(work, sizes);
    auto again = work.reference->Shape();
    auto* why = std::get_if<Conclusion>(&again);
    failed = why == nullptr ? std::nullopt : std::optional<Conclusion>(*why);
    if (!failed.has_value()) break;
    if (failed->verdict == v1::VERDICT_INFRASTRUCTURE) return *failed;
  }
  if (failed.has_value()) return unsupported(failed->reason);
  Conclusion second = VerifyAtShapes(work, artifact);
  // Slow by emulation: a deadlock would have shown at reduced shapes too.
  if (second.verdict == v1::VERDICT_TIME_LIMIT) return unsupported(second.reason);
  return second;
}

Conclusion Evaluator::VerifyLarger(Work& work, const std::string& artifact,
                                   const Conclusion& first) const {
  // Only the reference runs, until it has shapes that tell something apart.
  auto judge = [&](double scale) {
    work.scale = scale;
    work.reference = MakeReference(work, {});
    VerifyOptions options;
    options.oracle = work.request.oracle();
    options.emulated = options_.device->is_emulated();
    options.public_seeds = PublicSeeds(1);
    return Verifier(std::move(options), work.reference.get(), &work.examiner, &work.roles,
                    work.cancellation)
        .VerifyTask();
  };
  double reduced = work.scale;
  Conclusion task = first;
  for (double scale = reduced * kLargerScale; scale < 1 && task.degenerate; scale *= kLargerScale) {
    task = judge(scale);
    if (task.verdict == v1::VERDICT_INFRASTRUCTURE) return task;
    if (!task.passed()) continue;
    work.report.clear_verify();
    work.report.clear_work();
    work.report.mutable_verify()->add_notes(
        absl::StrCat("at scale ", reduced,
                     " outputs of zeros would pass every check; larger shapes were taken"));
    return VerifyAtShapes(work, artifact);
  }
  // Is it the task, or its reduced shapes?
  task = judge(1);
  work.scale = reduced;
  work.reference = MakeReference(work, {});
  if (task.verdict == v1::VERDICT_INFRASTRUCTURE) return task;
  if (task.degenerate) {
    task.reason = absl::StrCat(first.reason, ", at the full shapes too");
    return task;
  }
  return {v1::VERDICT_UNSUPPORTED,
          absl::StrCat("at reduced shapes outputs of zeros pass every check, so this device can "
                       "tell nothing apart; the full shapes ",
                       task.passed() ? "can" : absl::StrCat("were not looked at: ", task.reason)),
          {}};
}

Conclusion Evaluator::VerifyAtShapes(Work& work, const std::string& artifact) const {
  v1::VerifyReport before = work.report.verify();
  Conclusion shared = VerifyOnce(work, artifact);
  if (!shared.device_memory || options_.device->is_emulated() || work.cancelled()) return shared;
  // Beside others that says nothing. A new reference, since the old one's process holds memory.
  *work.report.mutable_verify() = std::move(before);
  work.report.mutable_verify()->add_notes(
      "run again with the GPU alone, since its memory ran out beside others");
  work.report.clear_work();
  work.reference = MakeReference(work, work.fixed);
  // All of the memory: others keep theirs between their calls.
  if (options_.memory != nullptr) {
    work.memory = MemoryAdmission::Permit();
    auto all = options_.memory->Acquire(options_.memory->budget_bytes(),
                                        [&work] { return work.cancelled(); });
    if (!all.ok()) return ConcludeMachine(all.status());
    work.memory = *std::move(all);
  }
  Conclusion alone;
  absl::Status held = work.device.Alone([&] { alone = VerifyOnce(work, artifact); });
  return held.ok() ? alone : ConcludeMachine(held);
}

Candidate::Options Evaluator::CandidateOptions(const Work& work,
                                               const std::string& artifact) const {
  Candidate::Options options;
  options.solution = work.request.solution();
  options.entry = work.request.oracle().entry();
  options.device = DeviceName(options_.device->kind());
  options.memory = options_.examiner->memory();
  options.artifact = artifact;
  options.weight_seed = kWeightSeed;
  auto shape = work.reference->Shape();
  if (auto* task = std::get_if<std::shared_ptr<const TaskShape>>(&shape)) {
    options.weights_on = (*task)->weights_on;
  }
  options.limits = options_.limits;
  return options;
}

std::string Evaluator::VerifiedKey(const Work& work) const {
  const v1::EvaluationOptions& wanted = work.request.options();
  v1::Oracle oracle = work.request.oracle();
  std::string oracle_text;
  google::protobuf::io::StringOutputStream stream(&oracle_text);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  oracle.SerializeToCodedStream(&coded);
  coded.Trim();
  return Sha256Hex(absl::StrCat(work.report.compile().artifact_digest(), "/", work.scale, "/",
                                wanted.public_seeds(), "/", wanted.secret_seeds(), "/",
                                Sha256Hex(work.request.solution().source()), "/", oracle_text));
}

bool Evaluator::FindVerified(Work& work) const {
  auto found = verified_->Find(VerifiedKey(work));
  if (found == nullptr) return false;
  *work.report.mutable_verify() = found->verify();
  if (found->has_work()) *work.report.mutable_work() = found->work();
  work.report.set_output(found->output());
  return true;
}

void Evaluator::RememberVerified(const Work& work) const {
  verified_->Put(VerifiedKey(work), std::make_shared<const v1::EvaluationReport>(work.report),
                 work.report.ByteSizeLong());
}

Conclusion Evaluator::Measure(Work& work, const std::string& artifact) const {
  Benchmark::Options options;
  options.oracle = work.request.oracle();
  options.candidate = CandidateOptions(work, artifact);
  options.device = work.report.device();
  options.compile_baseline = work.request.options().compile_baseline();
  options.clock = options_.clock;
  options.baselines = options_.baselines;
  options.random = options_.random;
  Benchmark benchmark(std::move(options), work.reference.get(), &work.examiner, &work.roles,
                      &work.device, work.cancellation);
  Conclusion conclusion = benchmark.Prepare();
  if (conclusion.passed()) conclusion = benchmark.Measure();
  return conclusion.passed() ? benchmark.Judge(&work.report) : conclusion;
}

Conclusion Evaluator::VerifyOnce(Work& work, const std::string& artifact) const {
  const v1::EvaluationOptions& wanted = work.request.options();
  work.report.mutable_verify()->set_scale(work.scale);
  VerifyOptions options;
  options.oracle = work.request.oracle();
  options.candidate = CandidateOptions(work, artifact);
  options.emulated = options_.device->is_emulated();
  options.public_seeds =
      PublicSeeds(wanted.public_seeds() > 0 ? wanted.public_seeds() : options_.public_seeds);
  std::set<uint64_t> known(options.public_seeds.begin(), options.public_seeds.end());
  uint32_t secret = wanted.secret_seeds() > 0 ? wanted.secret_seeds() : options_.secret_seeds;
  while (options.secret_seeds.size() < secret) {
    // torch takes 64 bits, but a signed number everywhere is one thing less to go wrong.
    uint64_t seed = options_.random() >> 1;
    if (known.insert(seed).second) options.secret_seeds.push_back(seed);
  }
  options.secret_weight_seed = options_.random() >> 1;
  return Verifier(std::move(options), work.reference.get(), &work.examiner, &work.roles,
                  work.cancellation)
      .Verify(&work.report);
}

Conclusion Evaluator::CheckWithNvcc(Work& work) const {
  auto built = Build(work, Device::Purpose::kCheck);
  auto* failed = std::get_if<Conclusion>(&built);
  if (failed == nullptr) return Conclusion();
  if (failed->verdict == v1::VERDICT_INFRASTRUCTURE) return *failed;
  if (failed->verdict == v1::VERDICT_COMPILE_ERROR &&
      options_.nvcc_gate == Options::NvccGate::kOn) {
    return *failed;
  }
  work.report.mutable_compile()->add_notes(absl::StrCat("nvcc: ", failed->reason));
  return Conclusion();
}

Verifier Evaluator::JudgeOf(Work& work) const {
  VerifyOptions options;
  options.oracle = work.request.oracle();
  return Verifier(std::move(options), work.reference.get(), &work.examiner, &work.roles,
                  work.cancellation);
}

Conclusion Evaluator::CheckWithoutKernels(Work& work, const std::string& artifact) const {
  // An entry on a GPU is given nothing else that could compute.
  if (work.is_entry && !options_.device->is_emulated()) return Conclusion();
  v1::VerifyReport& verify = *work.report.mutable_verify();
  verify.add_checks("without its kernels");
  auto shape = work.reference->Shape();
  if (auto* failed = std::get_if<Conclusion>(&shape)) return *failed;
  std::vector<std::shared_ptr<const TaskCase>> cases;
  for (uint64_t seed : PublicSeeds(std::max(2U, options_.public_seeds))) {
    auto made = work.reference->Case(seed, "native", /*keep=*/true);
    if (auto* failed = std::get_if<Conclusion>(&made)) return *failed;
    cases.push_back(std::get<std::shared_ptr<const TaskCase>>(std::move(made)));
  }
  Verifier judge = JudgeOf(work);
  return CheckAblated(CandidateOptions(work, artifact),
                      std::get<std::shared_ptr<const TaskShape>>(shape)->init, cases, &judge,
                      &work.roles, work.cancellation, &verify);
}

Conclusion Evaluator::CheckEveryAccess(Work& work, const Conclusion& verified) const {
  auto or_verified = [&](const Conclusion& failed) {
    return verified.passed() ? failed : verified;
  };
  auto shape = work.reference->Shape();
  if (auto* failed = std::get_if<Conclusion>(&shape)) return or_verified(*failed);
  auto made = work.reference->Case(PublicSeeds(1)[0], "native", /*keep=*/true);
  if (auto* failed = std::get_if<Conclusion>(&made)) return or_verified(*failed);
  const TaskCase& task_case = *std::get<std::shared_ptr<const TaskCase>>(made);
  auto counted = [&]() -> CountedRun {
    auto built = Build(work, Device::Purpose::kCount);
    if (auto* failed = std::get_if<Conclusion>(&built)) return *failed;
    return RunCounted(CandidateOptions(work, std::get<std::string>(built)),
                      std::get<std::shared_ptr<const TaskShape>>(shape)->init, task_case,
                      &work.roles, work.cancellation);
  }();
  if (verified.passed()) {
    Verifier judge = JudgeOf(work);
    return ConcludeCounted(std::move(counted), task_case, &judge, &work.report);
  }
  DiagnoseCounted(counted, work.report.mutable_verify());
  return verified;
}

}  // namespace kmosaic
