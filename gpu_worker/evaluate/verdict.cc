#include "gpu_worker/evaluate/verdict.h"

#include <csignal>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/enum_names.h"
#include "common/base/text.h"

namespace kmosaic {
namespace {

constexpr size_t kReasonBytes = 4096;

Conclusion Make(v1::Verdict verdict, std::string reason) {
  return {verdict, std::move(reason), {}, verdict == v1::VERDICT_DEVICE_MEMORY};
}

std::string SignalName(int number) {
  const char* name = sigabbrev_np(number);
  return name == nullptr ? absl::StrCat("signal ", number) : absl::StrCat("SIG", name);
}

bool MayClaim(v1::Verdict verdict, Untrusted whose, bool entry) {
  switch (verdict) {
    case v1::VERDICT_UNSUPPORTED:
      return true;
    case v1::VERDICT_LOAD_ERROR:
    case v1::VERDICT_RUNTIME_ERROR:
    case v1::VERDICT_NO_CUSTOM_KERNEL:
    case v1::VERDICT_TAMPERING:
    case v1::VERDICT_HOST_MEMORY:
    case v1::VERDICT_DEVICE_MEMORY:
    case v1::VERDICT_PROCESS_LIMIT:
    case v1::VERDICT_DISK_LIMIT:
    case v1::VERDICT_OUTPUT_LIMIT:
    case v1::VERDICT_ILLEGAL_LAUNCH:
    case v1::VERDICT_ILLEGAL_ACCESS:
      return whose == Untrusted::kSolution;
    case v1::VERDICT_INVALID_TASK:
      return whose == Untrusted::kReference || entry;
    default:
      return false;
  }
}

}  // namespace

Conclusion ConcludeTampered(const absl::Status& status) {
  return {v1::VERDICT_TAMPERING,
          absl::StrCat("the solution's process sent what is no answer: ", status.message()),
          {}};
}

Conclusion ConcludeExamination(const absl::Status& status) {
  if (absl::IsInvalidArgument(status)) return ConcludeTampered(status);
  if (!absl::IsResourceExhausted(status)) return ConcludeMachine(status);
  Conclusion full;
  full.verdict = v1::VERDICT_UNSUPPORTED;
  full.reason = absl::StrCat("the GPU's memory does not hold what is compared: ", status.message());
  full.device_memory = true;
  return full;
}

Conclusion ConcludeFailure(const RoleFailure& failure, Untrusted whose, std::string_view doing) {
  using Kind = RoleFailure::Kind;
  std::string detail = failure.detail.empty() ? "" : absl::StrCat(" (", failure.detail, ")");
  bool solution = whose == Untrusted::kSolution;
  std::string who = solution ? "the solution" : "the reference";
  std::string when = absl::StrCat(" while it was ", std::string(doing));
  auto limit = [&](v1::Verdict verdict, std::string_view what) {
    return Make(solution ? verdict : v1::VERDICT_UNSUPPORTED,
                absl::StrCat(who, " ", std::string(what), when, detail));
  };
  switch (failure.kind) {
    case Kind::kDeadline:
      return limit(v1::VERDICT_TIME_LIMIT, "did not finish in time");
    case Kind::kMemory:
      return limit(v1::VERDICT_HOST_MEMORY, "used more memory than allowed");
    case Kind::kProcessLimit:
      return limit(v1::VERDICT_PROCESS_LIMIT, "started more processes or threads than allowed");
    case Kind::kOutputLimit:
      return limit(v1::VERDICT_OUTPUT_LIMIT, "printed more than allowed");
    case Kind::kDiskLimit:
      return limit(v1::VERDICT_DISK_LIMIT, "wrote more to files than allowed");
    case Kind::kExited:
      return Make(solution ? v1::VERDICT_CRASHED : v1::VERDICT_INVALID_TASK,
                  absl::StrCat(who, " ended its process with exit code ", failure.exit_code, when));
    case Kind::kSignaled:
      return Make(
          solution ? v1::VERDICT_CRASHED : v1::VERDICT_INVALID_TASK,
          absl::StrCat(who, " crashed with ", SignalName(failure.signal_number), when, detail));
    case Kind::kProtocol:
      return Make(solution ? v1::VERDICT_TAMPERING : v1::VERDICT_INVALID_TASK,
                  absl::StrCat(who, " wrote to the channel of the evaluation", when, detail));
    case Kind::kCancelled:
      return Make(v1::VERDICT_INFRASTRUCTURE, "the evaluation was cancelled");
    case Kind::kInfrastructure:
      return Make(v1::VERDICT_INFRASTRUCTURE, failure.detail);
  }
  return Make(v1::VERDICT_INFRASTRUCTURE, failure.detail);
}

Conclusion ConcludeRefusal(std::string_view verdict, std::string_view error, Untrusted whose,
                           bool entry) {
  v1::Verdict claimed = ParseVerdict(verdict).value_or(v1::VERDICT_UNSPECIFIED);
  bool device_memory = claimed == v1::VERDICT_DEVICE_MEMORY;
  // A task that does not fit is nobody's fault.
  if (device_memory && whose == Untrusted::kReference) claimed = v1::VERDICT_UNSUPPORTED;
  if (!MayClaim(claimed, whose, entry)) {
    claimed = whose == Untrusted::kSolution ? v1::VERDICT_RUNTIME_ERROR : v1::VERDICT_INVALID_TASK;
  }
  std::string text = ElideMiddle(ToValidUtf8(error), kReasonBytes);
  if (text.empty()) text = "no reason was given";
  Conclusion conclusion = Make(claimed, std::move(text));
  conclusion.device_memory = device_memory;
  return conclusion;
}

Conclusion ConcludeMachine(const absl::Status& status) {
  return Make(v1::VERDICT_INFRASTRUCTURE,
              ToValidUtf8(std::string_view(status.message().data(), status.message().size())));
}

}  // namespace kmosaic
