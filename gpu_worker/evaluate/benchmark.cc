#include "gpu_worker/evaluate/benchmark.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gpu_worker/evaluate/comparator.h"

namespace kmosaic {
namespace {

namespace v1 = kernelmosaic::v1;
using nlohmann::json;

// Timed calls that are compared, by the size of what they give: each is kept in the device's memory
// until then.
constexpr size_t kChecks = 3;
constexpr size_t kChecksOfLarge = 1;
constexpr uint64_t kLargeOutput = uint64_t{256} << 20;
// A median that is less certain than this, in share and in time, is no result.
constexpr double kUnreliableShare = 0.1;
constexpr double kUnreliableUs = 2;

// The baseline is measured in two blocks, each with half of the solution's bounds.
StopRule HalfOf(StopRule rule) {
  rule.min_samples = std::max(rule.few_samples, rule.min_samples / 2);
  rule.max_samples = std::max(rule.min_samples, rule.max_samples / 2);
  rule.steady_samples = std::max(rule.few_samples, rule.steady_samples / 2);
  rule.steady_time /= 2;
  rule.budget /= 2;
  return rule;
}

uint64_t SizeBytes(const Value& value) {
  uint64_t bytes = 0;
  for (const Leaf& leaf : Leaves(value)) bytes += leaf.value->tensor.size_bytes;
  return bytes;
}

int64_t LargestTensor(const Value& value) {
  int64_t largest = 1;
  for (const Leaf& leaf : Leaves(value)) largest = std::max(largest, leaf.value->tensor.elements);
  return largest;
}

bool Flag(const json& reply, const char* group, const char* name) {
  auto found = reply.find(group);
  if (found == reply.end() || !found->is_object()) return false;
  auto flag = found->find(name);
  return flag != found->end() && flag->is_boolean() && flag->get<bool>();
}

bool IsUnreliable(const TimingSummary& summary) {
  return summary.relative_error() > kUnreliableShare &&
         (summary.ci_high - summary.ci_low) / 2 > kUnreliableUs;
}

std::vector<double> EventTimes(const std::vector<TimedCall>& calls) {
  std::vector<double> times;
  for (const TimedCall& call : calls) times.push_back(call.event);
  return times;
}

}  // namespace

Benchmark::Benchmark(Options options, Reference* reference, Examiner* examiner,
                     RoleStarter* starter, DeviceUse* device, Cancellation* cancellation)
    : options_(std::move(options)),
      reference_(reference),
      examiner_(examiner),
      starter_(starter),
      device_(device),
      cancellation_(cancellation) {}

Benchmark::~Benchmark() = default;

void Benchmark::Note(const std::string& note) {
  if (std::find(notes_.begin(), notes_.end(), note) == notes_.end()) notes_.push_back(note);
}

std::string Benchmark::BaselineKey(bool compiled) const {
  return absl::StrCat(reference_->key(), "/", options_.device.name(), "/", options_.device.uuid(),
                      "/", options_.device.driver(), "/", compiled ? "compile" : "eager");
}

Conclusion Benchmark::Prepare() {
  start_ = options_.clock->Steady();
  auto shape = reference_->Shape();
  if (auto* failed = std::get_if<Conclusion>(&shape)) return *failed;
  shape_ = std::get<std::shared_ptr<const TaskShape>>(shape);
  auto base = reference_->Case(Key(), "native", /*keep=*/false);
  if (auto* failed = std::get_if<Conclusion>(&base)) return *failed;
  base_ = std::get<std::shared_ptr<const TaskCase>>(base);
  checks_wanted_ = SizeBytes(base_->expected.value) > kLargeOutput ? kChecksOfLarge : kChecks;
  if (base_->fresh.empty()) {
    Note(
        "no input has elements that could take each other's place, so every timed call had the "
        "same content");
  }
  return Conclusion();
}

Benchmark::OrCalls Benchmark::MeasureBlock(Untrusted whose, const StopRule& rule,
                                           const SampleFunction& sample,
                                           const AfterFunction& after) {
  Calls calls;
  std::vector<double> times;
  size_t warm_calls = 0;
  absl::Duration called;
  absl::Duration spent;
  bool warm = false;
  for (;;) {
    if (cancellation_->cancelled()) {
      return ConcludeMachine(absl::CancelledError("the evaluation was cancelled"));
    }
    uint64_t key = options_.random() >> 1;
    absl::Duration before = options_.clock->Steady();
    auto reply = sample(key);
    if (auto* failed = std::get_if<Conclusion>(&reply)) return *failed;
    auto call = ParseTimedCall(std::get<json>(reply), options_.clock->Steady() - before);
    if (!call.ok()) {
      std::string words(call.status().message());
      if (whose == Untrusted::kReference) {
        return ConcludeRefusal("INVALID_TASK", words, whose, false);
      }
      return Conclusion{v1::VERDICT_TAMPERING,
                        absl::StrCat("the solution's process sent what is no answer: ", words),
                        {}};
    }
    spent += absl::Microseconds(call->outside);
    if (!warm) {
      ++warm_calls;
      called += absl::Microseconds(std::max(call->event, call->joined));
      warm = options_.warm_up.Done(warm_calls, called, spent);
      if (warm) spent = absl::ZeroDuration();
      continue;
    }
    calls.push_back(*call);
    times.push_back(call->event);
    bool last = rule.Done(times, spent);
    if (after) {
      Conclusion looked = after(key, times, last);
      if (!looked.passed()) return looked;
    }
    if (last) return calls;
  }
}

Conclusion Benchmark::BeginBaseline(bool compiled, Baseline* baseline) {
  auto begun = reference_->BeginTiming(base_->seed, compiled);
  if (auto* failed = std::get_if<Conclusion>(&begun)) return *failed;
  const json& reply = std::get<json>(begun);
  if (auto launch = reply.find("launch_us"); launch != reply.end() && launch->is_number()) {
    double us = launch->get<double>();
    if (std::isfinite(us) && us > 0) baseline->launch_us = us;
  }
  baseline->tf32_matmul = Flag(reply, "tf32", "matmul");
  baseline->tf32_cudnn = Flag(reply, "tf32", "cudnn");
  return Conclusion();
}

Benchmark::OrCalls Benchmark::MeasureBaselineBlock() {
  return MeasureBlock(
      Untrusted::kReference, HalfOf(options_.stop),
      [this](uint64_t key) { return reference_->TimeCall(key); }, nullptr);
}

Conclusion Benchmark::Alone(const std::function<Conclusion()>& what) {
  Conclusion concluded;
  absl::Status held = device_->Alone([&] { concluded = what(); });
  return held.ok() ? concluded : ConcludeMachine(held);
}

Conclusion Benchmark::MeasureEager(Baseline* eager, Calls* first) {
  Conclusion begun = BeginBaseline(false, eager);
  if (!begun.passed()) return begun;
  auto block = MeasureBaselineBlock();
  if (auto* failed = std::get_if<Conclusion>(&block)) return *failed;
  *first = std::get<Calls>(std::move(block));
  return Conclusion();
}

Conclusion Benchmark::Measure() {
  eager_ = options_.baselines->Find(BaselineKey(false));
  eager_cached_ = eager_ != nullptr;
  Baseline eager;
  Calls first;
  if (!eager_cached_) {
    Conclusion measured = Alone([&] { return MeasureEager(&eager, &first); });
    if (!measured.passed()) return measured;
  }
  // Loaded while others use the device. It is not there while the baseline is measured, which it
  // could slow down.
  auto candidate = std::make_unique<Candidate>(options_.candidate, starter_, cancellation_);
  auto fits = [](Conclusion conclusion) {
    if (conclusion.device_memory) {
      conclusion.verdict = v1::VERDICT_UNSUPPORTED;
      conclusion.reason = absl::StrCat(
          "the GPU's memory does not hold the solution beside the reference, with two copies of "
          "the inputs: ",
          conclusion.reason);
    }
    return conclusion;
  };
  Conclusion loaded = candidate->Load(shape_->init);
  if (!loaded.passed()) return fits(loaded);
  Conclusion begun = candidate->BeginTiming(*base_, &notes_);
  if (!begun.passed()) return fits(begun);
  Conclusion measured = Alone([&] {
    Conclusion timed = fits(MeasureCandidate(*candidate));
    candidate.reset();
    if (!timed.passed() || eager_cached_) return timed;
    auto block = MeasureBaselineBlock();
    if (auto* failed = std::get_if<Conclusion>(&block)) return *failed;
    const Calls& second = std::get<Calls>(block);
    eager.drift = Median(EventTimes(second)) / std::max(Median(EventTimes(first)), 1e-3);
    first.insert(first.end(), second.begin(), second.end());
    return Conclusion();
  });
  if (!measured.passed()) return measured;
  if (!eager_cached_) {
    eager.summary = Summarise(EventTimes(first));
    eager.around = SurroundingsOf(first);
    eager_ = std::make_shared<const Baseline>(eager);
    // What is this uncertain is not for others to go by.
    if (!IsUnreliable(eager.summary)) {
      options_.baselines->Put(BaselineKey(false), eager_, sizeof(Baseline));
    }
  }
  return options_.compile_baseline ? MeasureCompiled() : Conclusion();
}

Conclusion Benchmark::MeasureCompiled() {
  compiled_ = options_.baselines->Find(BaselineKey(true));
  if (compiled_ != nullptr) return Conclusion();
  Baseline baseline;
  Conclusion begun = BeginBaseline(true, &baseline);
  if (begun.passed()) {
    // The first call compiles, which takes long and needs no device alone.
    auto warm = reference_->TimeCall(Key());
    if (auto* failed = std::get_if<Conclusion>(&warm)) begun = *failed;
  }
  if (begun.passed()) {
    begun = Alone([&] {
      auto block = MeasureBaselineBlock();
      if (auto* failed = std::get_if<Conclusion>(&block)) return *failed;
      const Calls& calls = std::get<Calls>(block);
      baseline.summary = Summarise(EventTimes(calls));
      baseline.around = SurroundingsOf(calls);
      return Conclusion();
    });
  }
  if (begun.passed()) {
    compiled_ = std::make_shared<const Baseline>(baseline);
    options_.baselines->Put(BaselineKey(true), compiled_, sizeof(Baseline));
    return Conclusion();
  }
  if (begun.verdict == v1::VERDICT_INFRASTRUCTURE) return begun;
  // That torch.compile cannot do it says nothing about the solution.
  Note(absl::StrCat("no time under torch.compile: ", begun.reason));
  return Conclusion();
}

Conclusion Benchmark::MeasureCandidate(Candidate& candidate) {
  // Noise that comes from outside goes away again.
  for (int attempt = 0; attempt < 2; ++attempt) {
    kept_.clear();
    candidates_for_check_ = 0;
    auto block = MeasureBlock(
        Untrusted::kSolution, options_.stop, [&](uint64_t key) { return candidate.TimeCall(key); },
        [&](uint64_t key, const std::vector<double>& times, bool last) {
          return Keep(candidate, key, times, last);
        });
    if (auto* failed = std::get_if<Conclusion>(&block)) return *failed;
    calls_ = std::get<Calls>(std::move(block));
    if (!IsUnreliable(Summarise(EventTimes(calls_)))) break;
  }
  return Conclusion();
}

Conclusion Benchmark::Keep(Candidate& candidate, uint64_t key, const std::vector<double>& times,
                           bool last) {
  bool may_be = times.back() <= Median(times) || (last && kept_.empty());
  if (!may_be) return Conclusion();
  // Reservoir sampling (Vitter, "Random Sampling with a Reservoir", algorithm R).
  size_t place = kept_.size();
  ++candidates_for_check_;
  if (place == checks_wanted_) place = options_.random() % candidates_for_check_;
  if (place >= checks_wanted_) return Conclusion();
  auto outputs = candidate.TimedOutputs();
  if (auto* failed = std::get_if<Conclusion>(&outputs)) return *failed;
  Kept kept{key, std::get<Parcel>(std::move(outputs))};
  if (place == kept_.size()) {
    kept_.push_back(std::move(kept));
  } else {
    kept_[place] = std::move(kept);
  }
  return Conclusion();
}

Conclusion Benchmark::Check(const Kept& kept) {
  auto made = reference_->TimedCase(base_->seed, kept.key);
  if (auto* failed = std::get_if<Conclusion>(&made)) return *failed;
  const TaskCase& expected = *std::get<std::shared_ptr<const TaskCase>>(made);
  CompareOptions options;
  options.poison = options_.candidate.poison;
  options.tolerance.reduction = expected.reduction;
  options.tolerance.largest_input = LargestTensor(expected.inputs.value);
  options.tolerance.reduced_precision = options_.oracle.reduced_precision();
  OutputScales scales;
  for (const TaskCase* task_case : {base_.get(), &expected}) {
    auto summary = examiner_->Summarize(task_case->expected);
    if (!summary.ok()) return ConcludeExamination(summary.status());
    scales.Add(*summary);
  }
  options.scale_hints = scales.Hints();
  auto looked = examiner_->Compare(
      expected.expected, expected.expected64.has_value() ? &*expected.expected64 : nullptr,
      kept.outputs, options);
  if (!looked.ok()) return ConcludeExamination(looked.status());
  const Comparison& compared = *looked;
  if (compared.verdict == v1::VERDICT_PASSED) return Conclusion();
  Conclusion wrong{
      compared.verdict,
      absl::StrCat("right when verified, wrong in a call that was timed: ", compared.reason),
      compared.mismatch};
  if (wrong.mismatch.has_value()) wrong.mismatch->set_family(expected.family);
  return wrong;
}

std::optional<TimeFloor> Benchmark::Floor() const {
  std::optional<GpuPeaks> peaks = PeaksOf(options_.device.name());
  if (!peaks.has_value()) return std::nullopt;
  CallWork work;
  work.input_bytes = SizeBytes(base_->inputs.value);
  work.output_bytes = SizeBytes(base_->expected.value);
  work.parameter_bytes = shape_->parameter_bytes;
  work.multiply_adds = shape_->multiply_adds;
  for (const Leaf& leaf : Leaves(base_->expected.value)) {
    const std::optional<DType>& dtype = leaf.value->tensor.dtype;
    if (dtype.has_value() && IsFloating(*dtype)) {
      work.dtype = *dtype;
      break;
    }
  }
  return FloorOf(work, *peaks);
}

Conclusion Benchmark::JudgeTimes(v1::BenchmarkReport* report) {
  std::optional<TimeFloor> floor = Floor();
  double eager = eager_->summary.median;
  if (floor.has_value() && eager < floor->memory_us) {
    Note(
        "no floor: the reference itself is faster than reading its inputs and writing its outputs "
        "once, so it does not need all of them");
    floor.reset();
  }
  if (floor.has_value() && eager < floor->floor_us) {
    // Parameters that a call reads in part, products that a faster algorithm saves.
    floor->floor_us = floor->memory_us;
    floor->bound = "memory";
  }
  CallTimes times = TimesOf(calls_, eager_->around);
  auto impossible = FindImpossibleTime(
      calls_, times, eager_->around,
      floor.has_value() ? std::optional<double>(floor->memory_us) : std::nullopt);
  if (impossible.has_value()) return {v1::VERDICT_IMPOSSIBLE_TIME, *impossible, {}};
  TimingSummary summary = Summarise(times.times_us);
  if (IsUnreliable(summary)) {
    return {v1::VERDICT_UNRELIABLE_TIMING,
            absl::StrFormat("the median of %d calls lies anywhere between %.1f and %.1f us, also "
                            "when measured again",
                            summary.samples, summary.ci_low, summary.ci_high),
            {}};
  }
  if (times.elsewhere) {
    Note("work went on beside the current stream after the call returned; its time counts");
  }
  if (eager_->launch_us > 0 && eager < 3 * eager_->launch_us) {
    Note(
        absl::StrFormat("bound by launching: the reference takes %.1f us, a call that does almost "
                        "nothing %.1f us, so the speedup says little",
                        eager, eager_->launch_us));
  }
  if (eager_->drift > 0 && std::abs(eager_->drift - 1) > 0.05) {
    Note(absl::StrFormat("the baseline changed by a factor of %.2f while the solution was timed",
                         eager_->drift));
  }
  report->set_median_us(summary.median);
  report->set_p10_us(summary.p10);
  report->set_p90_us(summary.p90);
  report->set_ci_low_us(summary.ci_low);
  report->set_ci_high_us(summary.ci_high);
  report->set_samples(static_cast<uint32_t>(summary.samples));
  for (double time : times.times_us) report->add_samples_us(time);
  report->set_eager_us(eager);
  report->set_eager_samples(static_cast<uint32_t>(eager_->summary.samples));
  report->set_eager_cached(eager_cached_);
  if (eager_->drift > 0 && !eager_cached_) report->set_eager_drift(eager_->drift);
  if (summary.median > 0) report->set_speedup(eager / summary.median);
  if (compiled_ != nullptr) report->set_compile_us(compiled_->summary.median);
  if (eager_->launch_us > 0) report->set_launch_us(eager_->launch_us);
  if (floor.has_value()) {
    report->set_floor_us(floor->floor_us);
    report->set_floor_bound(floor->bound);
  }
  report->set_tf32(eager_->tf32_matmul);
  report->set_tf32_cudnn(eager_->tf32_cudnn);
  return Conclusion();
}

Conclusion Benchmark::Judge(v1::EvaluationReport* report) {
  for (const Kept& kept : kept_) {
    Conclusion checked = Check(kept);
    if (!checked.passed()) {
      if (checked.mismatch.has_value()) {
        *report->mutable_verify()->mutable_mismatch() = *checked.mismatch;
      }
      return checked;
    }
  }
  v1::BenchmarkReport benchmark;
  Conclusion judged = JudgeTimes(&benchmark);
  if (!judged.passed()) return judged;
  benchmark.set_checked_calls(static_cast<uint32_t>(kept_.size()));
  benchmark.set_seconds(absl::ToDoubleSeconds(options_.clock->Steady() - start_));
  for (const std::string& note : notes_) benchmark.add_notes(note);
  *report->mutable_benchmark() = std::move(benchmark);
  return Conclusion();
}

}  // namespace kmosaic
