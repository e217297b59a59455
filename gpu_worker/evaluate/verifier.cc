#include "gpu_worker/evaluate/verifier.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/ids.h"
#include "common/base/text.h"

namespace kmosaic {
namespace {

namespace v1 = kernelmosaic::v1;

// Poisons of the two processes: NaN for floating types, and a large finite number, since
// NaN disappears in a comparison.
constexpr uint8_t kFirstPoison = 0xFF;
constexpr uint8_t kSecondPoison = 0x5A;

// Families that are tried besides the task's own values. "constant" is not among them:
// it takes every variance to zero, where honest kernels differ by what they divide
// rounding errors by.
constexpr std::array<std::string_view, 3> kFamilies = {"small", "large", "sparse"};

// Room for worse conditioning in the families: a public kernel that is right with the task's own
// values was seen beyond what those are allowed (a variance in one pass).
constexpr double kFamilySlack = 4;

constexpr size_t kOutputBytes = 4096;
constexpr size_t kMaxNotes = 32;
// Outputs with fewer numbers than this need more seeds to know their usual size.
constexpr int64_t kSmallOutput = 32;

bool IsMachine(v1::Verdict verdict) { return verdict == v1::VERDICT_INFRASTRUCTURE; }

bool IsWrongValue(v1::Verdict verdict) { return verdict == v1::VERDICT_WRONG_OUTPUT; }

int64_t LargestTensor(const Value& value) {
  int64_t largest = 1;
  for (const Leaf& leaf : Leaves(value)) largest = std::max(largest, leaf.value->tensor.elements);
  return largest;
}

}  // namespace

std::vector<uint64_t> PublicSeeds(uint32_t count) {
  std::vector<uint64_t> seeds;
  // 42 is the seed that KernelBench uses.
  for (uint32_t i = 0; i < count; ++i) seeds.push_back(42 + uint64_t{1000003} * i);
  return seeds;
}

Verifier::Verifier(VerifyOptions options, Reference* reference, Examiner* examiner,
                   RoleStarter* starter, Cancellation* cancellation)
    : options_(std::move(options)),
      reference_(reference),
      examiner_(examiner),
      starter_(starter),
      cancellation_(cancellation),
      public_(options_.public_seeds.begin(), options_.public_seeds.end()) {}

void Verifier::Note(const std::string& note) {
  if (notes_.size() >= kMaxNotes) return;
  if (std::find(notes_.begin(), notes_.end(), note) == notes_.end()) notes_.push_back(note);
}

std::variant<std::unique_ptr<Candidate>, Conclusion> Verifier::StartCandidate(
    const std::string& schedule, uint8_t poison, const TaskCase& task_case) {
  Candidate::Options options = options_.candidate;
  options.weight_seed = task_case.weight_seed.value_or(options.weight_seed);
  options.schedule = schedule;
  options.poison = poison;
  auto candidate = std::make_unique<Candidate>(std::move(options), starter_, cancellation_);
  Conclusion loaded = candidate->Load(init_);
  if (!loaded.passed()) return loaded;
  return candidate;
}

Conclusion Verifier::Verify(v1::EvaluationReport* report) {
  Conclusion conclusion = Run(report);
  v1::VerifyReport& verify = *report->mutable_verify();
  verify.set_worst_error_ratio(worst_ratio_);
  for (const std::string& note : notes_) verify.add_notes(note);
  if (conclusion.mismatch.has_value()) *verify.mutable_mismatch() = *conclusion.mismatch;
  return conclusion;
}

Conclusion Verifier::Run(v1::EvaluationReport* report) {
  v1::VerifyReport& verify = *report->mutable_verify();
  auto shaped = reference_->Shape();
  if (auto* failed = std::get_if<Conclusion>(&shaped)) return *failed;
  const TaskShape& shape = *std::get<std::shared_ptr<const TaskShape>>(shaped);
  init_ = shape.init;
  for (const auto& [name, value] : shape.shapes) (*verify.mutable_shapes())[name] = value;
  for (const std::string& note : shape.notes) Note(note);

  std::vector<CasePtr> cases;
  for (uint64_t seed : options_.public_seeds) {
    auto made = reference_->Case(seed, "native", /*keep=*/true);
    if (auto* failed = std::get_if<Conclusion>(&made)) return *failed;
    cases.push_back(std::get<CasePtr>(made));
    if (Conclusion added = AddScale(*cases.back()); !added.passed()) return added;
    for (const std::string& note : cases.back()->notes) Note(note);
  }
  first_case_ = cases.front();
  // A loss needs more than two seeds to know its usual size; the secret ones come anyway.
  if (LargestTensor(first_case_->expected.value) < kSmallOutput) {
    for (uint64_t seed : options_.secret_seeds) {
      auto made = reference_->Case(seed, "native", /*keep=*/false);
      if (auto* failed = std::get_if<Conclusion>(&made)) return *failed;
      if (Conclusion added = AddScale(*std::get<CasePtr>(made)); !added.passed()) return added;
    }
  }

  auto started = StartCandidate("forward", kFirstPoison, *first_case_);
  if (auto* failed = std::get_if<Conclusion>(&started)) return *failed;
  Candidate& candidate = *std::get<std::unique_ptr<Candidate>>(started);

  auto finish = [&](Conclusion conclusion) {
    report->set_output(ElideMiddle(candidate.Output(), kOutputBytes));
    return conclusion;
  };

  verify.add_checks("public seeds");
  Parcel first_outputs;
  for (const CasePtr& task_case : cases) {
    Conclusion checked =
        Check(candidate, *task_case, task_case == first_case_ ? &first_outputs : nullptr, report);
    if (!checked.passed()) return finish(Explain(std::move(checked), *task_case));
    verify.set_public_seeds(verify.public_seeds() + 1);
  }

  verify.add_checks("repeat");
  Conclusion repeated = CheckRepeat(candidate, *first_case_, first_outputs, report);
  if (!repeated.passed()) return finish(std::move(repeated));

  verify.add_checks("secret seeds");
  for (uint64_t seed : options_.secret_seeds) {
    auto made = reference_->Case(seed, "native", /*keep=*/false);
    if (auto* failed = std::get_if<Conclusion>(&made)) return finish(*failed);
    const TaskCase& task_case = *std::get<CasePtr>(made);
    if (Conclusion added = AddScale(task_case); !added.passed()) return finish(added);
    verify.add_seeds(seed);
    for (const std::string& note : task_case.notes) Note(note);
    Conclusion checked = Check(candidate, task_case, nullptr, report);
    if (!checked.passed()) return finish(Explain(std::move(checked), task_case));
    verify.set_secret_seeds(verify.secret_seeds() + 1);
  }

  verify.add_checks("value families");
  for (size_t i = 0; i < kFamilies.size() && !options_.secret_seeds.empty(); ++i) {
    std::string family(kFamilies[i]);
    if (std::find(shape.families.begin(), shape.families.end(), family) == shape.families.end()) {
      continue;
    }
    uint64_t seed = options_.secret_seeds[i % options_.secret_seeds.size()];
    auto made = reference_->Case(seed, family, /*keep=*/false);
    if (auto* failed = std::get_if<Conclusion>(&made)) {
      if (IsMachine(failed->verdict) || failed->device_memory) return finish(*failed);
      Note(absl::StrCat("values '", family, "' skipped: the reference does not run with them"));
      continue;
    }
    const TaskCase& task_case = *std::get<CasePtr>(made);
    auto summary = examiner_->Summarize(task_case.expected);
    if (!summary.ok()) return finish(ConcludeExamination(summary.status()));
    if (summary->non_finite) {
      Note(absl::StrCat("values '", family, "' skipped: the reference overflows with them"));
      continue;
    }
    Conclusion checked = Check(candidate, task_case, nullptr, report);
    if (!checked.passed()) return finish(Explain(std::move(checked), task_case));
  }

  verify.add_checks(options_.emulated ? "other order of threads, other memory contents"
                                      : "second process, other memory contents");
  CasePtr second_case = first_case_;
  if (options_.secret_weight_seed.has_value() && !options_.secret_seeds.empty()) {
    verify.add_checks("other weights");
    verify.set_weight_seed(*options_.secret_weight_seed);
    auto made = reference_->CaseWithWeights(options_.secret_seeds[0], *options_.secret_weight_seed);
    if (auto* failed = std::get_if<Conclusion>(&made)) return finish(*failed);
    second_case = std::get<CasePtr>(made);
  }
  Conclusion second = CheckSecondProcess(
      *second_case, second_case == first_case_ ? &first_outputs : nullptr, report);
  if (!second.passed()) return finish(std::move(second));

  if (Conclusion task = ConcludeTask(); !task.passed()) return finish(std::move(task));
  if (zeros_pass_ > 0) {
    Note(absl::StrCat("outputs of zeros would pass ", zeros_pass_, " of ", judged_cases_,
                      " cases of this task"));
  }
  return finish(Conclusion());
}

Verifier::OrComparison Verifier::Judge(const TaskCase& task_case, const Parcel& got) {
  if (Conclusion added = AddScale(task_case); !added.passed()) return added;
  return Compare(task_case, got, kFirstPoison);
}

Conclusion Verifier::AddScale(const TaskCase& task_case) {
  auto summary = examiner_->Summarize(task_case.expected);
  if (!summary.ok()) return ConcludeExamination(summary.status());
  scales_.Add(*summary);
  return Conclusion();
}

Conclusion Verifier::VerifyTask() {
  auto made = reference_->Case(options_.public_seeds.front(), "native", /*keep=*/false);
  if (auto* failed = std::get_if<Conclusion>(&made)) return *failed;
  const TaskCase& task_case = *std::get<CasePtr>(made);
  auto compared = Judge(task_case, task_case.expected);
  if (auto* failed = std::get_if<Conclusion>(&compared)) return *failed;
  JudgeTask(std::get<Comparison>(compared));
  return ConcludeTask();
}

Conclusion Verifier::ConcludeTask() const {
  Conclusion task;
  if (judged_cases_ > 0 && zeros_pass_ == judged_cases_) {
    task.verdict = v1::VERDICT_INVALID_TASK;
    task.reason = "outputs of zeros pass every check of this task, so it can tell nothing apart";
    task.degenerate = true;
  }
  return task;
}

Verifier::OrComparison Verifier::Compare(const TaskCase& task_case, const Parcel& got,
                                         uint8_t poison) const {
  CompareOptions options;
  options.poison = poison;
  options.tolerance.reduction = task_case.reduction;
  options.tolerance.largest_input = LargestTensor(task_case.inputs.value);
  options.tolerance.reduced_precision = options_.oracle.reduced_precision();
  if (task_case.family == "native") {
    options.scale_hints = scales_.Hints();
  } else {
    options.tolerance.slack = kFamilySlack;
  }
  options.baseline_errors = baseline_errors_;
  auto compared = examiner_->Compare(
      task_case.expected, task_case.expected64.has_value() ? &*task_case.expected64 : nullptr, got,
      options);
  if (!compared.ok()) return ConcludeExamination(compared.status());
  return *std::move(compared);
}

void Verifier::JudgeTask(const Comparison& passed) {
  ++judged_cases_;
  if (passed.zeros_pass) ++zeros_pass_;
}

Conclusion Verifier::CheckInputs(const TaskCase& task_case, const Parcel& after) {
  auto difference = examiner_->FirstDifference(task_case.inputs, after);
  if (!difference.ok()) return ConcludeExamination(difference.status());
  if (!difference->has_value()) return Conclusion();
  const Difference& changed = **difference;
  const auto& allowed = options_.oracle.mutable_inputs();
  // Input I is the I-th item of the list of inputs; its leaves share the prefix "[I]".
  size_t index = 0;
  bool is_indexed = absl::SimpleAtoi(
      changed.path.substr(std::min<size_t>(1, changed.path.size()), changed.path.find(']') - 1),
      &index);
  if (is_indexed && std::find(allowed.begin(), allowed.end(), index) != allowed.end()) {
    return Conclusion();
  }
  return {v1::VERDICT_MODIFIED_INPUT,
          absl::StrCat("input", changed.path, " was changed by the call (", changed.what,
                       "); inputs must stay as they are"),
          {}};
}

Conclusion Verifier::Check(Candidate& candidate, const TaskCase& task_case, Parcel* outputs,
                           v1::EvaluationReport* report) {
  auto ran = candidate.Run(task_case);
  if (auto* failed = std::get_if<Conclusion>(&ran)) return *failed;
  RunResult& result = std::get<RunResult>(ran);
  if (auto seen = Conclude(result.findings); seen.has_value()) return *seen;

  if (result.work.has_value() && !report->has_work()) *report->mutable_work() = *result.work;

  Conclusion inputs = CheckInputs(task_case, result.inputs_after);
  if (!inputs.passed()) return inputs;

  auto looked = Compare(task_case, result.outputs, candidate.poison());
  if (auto* failed = std::get_if<Conclusion>(&looked)) return *failed;
  const Comparison& compared = std::get<Comparison>(looked);
  worst_ratio_ = std::max(worst_ratio_, compared.worst_error_ratio);
  if (compared.verdict != v1::VERDICT_PASSED) {
    for (const std::string& note : Notes(result.findings)) Note(note);
    Conclusion wrong{compared.verdict, compared.reason, compared.mismatch};
    if (task_case.family != "native") {
      absl::StrAppend(&wrong.reason, " (inputs with '", task_case.family, "' values)");
    }
    if (wrong.mismatch.has_value()) {
      wrong.mismatch->set_family(task_case.family);
      if (!IsSecret(task_case)) wrong.mismatch->set_public_seed(task_case.seed);
    }
    return wrong;
  }
  for (const std::string& note : Notes(result.findings)) Note(note);
  JudgeTask(compared);
  baseline_errors_.resize(std::max(baseline_errors_.size(), compared.baseline_errors.size()), 0);
  for (size_t i = 0; i < compared.baseline_errors.size(); ++i) {
    baseline_errors_[i] = std::max(baseline_errors_[i], compared.baseline_errors[i]);
  }
  if (result.launches == uint64_t{0}) {
    bool has_elements = false;
    for (const Leaf& leaf : Leaves(task_case.expected.value)) {
      has_elements = has_elements || leaf.value->tensor.elements > 0;
    }
    if (has_elements) {
      return {v1::VERDICT_NO_CUSTOM_KERNEL,
              "the outputs are right, but the call launched none of the solution's own kernels",
              {}};
    }
  }
  if (!result.aliases.empty()) {
    Note(absl::StrCat("output ", result.aliases[0].first, " shares memory with input ",
                      result.aliases[0].second));
  }
  if (outputs != nullptr) *outputs = std::move(result.outputs);
  return Conclusion();
}

Conclusion Verifier::CheckRepeat(Candidate& candidate, const TaskCase& task_case,
                                 const Parcel& first, v1::EvaluationReport* report) {
  Parcel again;
  Conclusion checked = Check(candidate, task_case, &again, report);
  if (!checked.passed()) {
    if (IsWrongValue(checked.verdict)) {
      checked.verdict = v1::VERDICT_NONDETERMINISTIC;
      checked.reason = absl::StrCat(
          "right at the first call, wrong when the same inputs come again: ", checked.reason);
    }
    return checked;
  }
  return NoteDifference(first, again,
                        "a second call with the same inputs gives other bits, within tolerance");
}

Conclusion Verifier::NoteDifference(const Parcel& first, const Parcel& again,
                                    const std::string& words) {
  auto difference = examiner_->FirstDifference(first, again);
  if (!difference.ok()) return ConcludeExamination(difference.status());
  if (difference->has_value()) Note(words);
  return Conclusion();
}

Conclusion Verifier::CheckSecondProcess(const TaskCase& task_case, const Parcel* first,
                                        v1::EvaluationReport* report) {
  auto started = StartCandidate("reverse", kSecondPoison, task_case);
  if (auto* failed = std::get_if<Conclusion>(&started)) return *failed;
  Candidate& candidate = *std::get<std::unique_ptr<Candidate>>(started);
  Parcel outputs;
  Conclusion checked = Check(candidate, task_case, &outputs, report);
  if (checked.passed()) {
    if (first == nullptr) return checked;
    return NoteDifference(*first, outputs,
                          options_.emulated
                              ? "another order of threads gives other bits, within tolerance"
                              : "a second process gives other bits, within tolerance");
  }
  if (!IsWrongValue(checked.verdict)) return checked;
  if (task_case.weight_seed.has_value()) {
    // As the first process, but for the weights.
    auto plain = StartCandidate("forward", kFirstPoison, task_case);
    if (auto* failed = std::get_if<Conclusion>(&plain)) return *failed;
    Conclusion same_process =
        Check(*std::get<std::unique_ptr<Candidate>>(plain), task_case, nullptr, report);
    if (IsMachine(same_process.verdict)) return same_process;
    if (!same_process.passed()) {
      same_process = Explain(std::move(same_process), task_case);
      if (IsWrongValue(same_process.verdict)) {
        same_process.reason =
            absl::StrCat("right with the usual weights, wrong with others: ", same_process.reason);
      }
      return same_process;
    }
  }
  if (!options_.emulated) {
    checked.verdict = v1::VERDICT_NONDETERMINISTIC;
    checked.reason = absl::StrCat("right in one process, wrong in another: ", checked.reason);
    return checked;
  }
  // Which of the two differences was it?
  auto third = StartCandidate("reverse", kFirstPoison, task_case);
  if (auto* failed = std::get_if<Conclusion>(&third)) return *failed;
  Conclusion same_memory =
      Check(*std::get<std::unique_ptr<Candidate>>(third), task_case, nullptr, report);
  if (IsMachine(same_memory.verdict)) return same_memory;
  if (same_memory.passed()) {
    checked.reason =
        absl::StrCat("the result depends on memory that nothing wrote: ", checked.reason);
  } else {
    checked.verdict = v1::VERDICT_DATA_RACE;
    checked.reason =
        absl::StrCat("right when threads run in one order, wrong in the reverse one ",
                     "(a missing barrier, or a race between blocks): ", checked.reason);
  }
  return checked;
}

Conclusion Verifier::Explain(Conclusion wrong, const TaskCase& task_case) {
  if (!IsWrongValue(wrong.verdict)) return wrong;
  // A reference that is random, or whose own results differ, judges nobody.
  auto again = reference_->Repeat(task_case);
  if (auto* failed = std::get_if<Conclusion>(&again)) {
    return IsMachine(failed->verdict) || failed->device_memory ? *failed : wrong;
  }
  auto itself = Compare(task_case, std::get<CasePtr>(again)->expected, kFirstPoison);
  if (auto* failed = std::get_if<Conclusion>(&itself)) return *failed;
  if (std::get<Comparison>(itself).verdict != v1::VERDICT_PASSED) {
    return {v1::VERDICT_INVALID_TASK,
            "the reference gives different results for the same inputs and seed",
            {}};
  }
  // The same call alone in a fresh process: in another order of threads, or the same one.
  auto alone = [&](const std::string& schedule) -> OrComparison {
    auto started = StartCandidate(schedule, kFirstPoison, task_case);
    if (auto* failed = std::get_if<Conclusion>(&started)) return *failed;
    auto ran = std::get<std::unique_ptr<Candidate>>(started)->Run(task_case);
    if (auto* failed = std::get_if<Conclusion>(&ran)) return *failed;
    return Compare(task_case, std::get<RunResult>(ran).outputs, kFirstPoison);
  };
  bool is_first = task_case.seed == first_case_->seed && task_case.family == first_case_->family;
  if (!is_first && !task_case.weight_seed.has_value()) {
    auto fresh = alone("forward");
    if (auto* failed = std::get_if<Conclusion>(&fresh)) {
      return IsMachine(failed->verdict) ? *failed : wrong;
    }
    if (std::get<Comparison>(fresh).verdict == v1::VERDICT_PASSED) {
      wrong.reason = absl::StrCat("right as the first call of a process, wrong after other calls ",
                                  "(something is kept between calls): ", wrong.reason);
      return wrong;
    }
  }
  if (!options_.emulated) return wrong;
  auto reversed = alone("reverse");
  if (auto* failed = std::get_if<Conclusion>(&reversed)) {
    return IsMachine(failed->verdict) ? *failed : wrong;
  }
  const Comparison& reverse = std::get<Comparison>(reversed);
  if (reverse.verdict == v1::VERDICT_PASSED) {
    wrong.verdict = v1::VERDICT_DATA_RACE;
    wrong.reason = absl::StrCat("wrong when threads run in one order, right in the reverse one ",
                                "(a missing barrier, or a race between blocks): ", wrong.reason);
  } else if (reverse.mismatch.has_value() && wrong.mismatch.has_value() &&
             reverse.mismatch->wrong_elements() != wrong.mismatch->wrong_elements()) {
    Note(
        "the wrong result also depends on the order in which threads run: look for a missing "
        "barrier or a race");
  }
  return wrong;
}

}  // namespace kmosaic
