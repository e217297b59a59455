// The names of wire enums as people and -o json see them: without the prefix
// ("PASSED", "COMPILE_ERROR"), lower case where files use them ("emulated").
#ifndef KMOSAIC_COMMON_BASE_ENUM_NAMES_H_
#define KMOSAIC_COMMON_BASE_ENUM_NAMES_H_

#include <optional>
#include <string>
#include <string_view>

#include "kernelmosaic/v1/job.pb.h"
#include "kernelmosaic/v1/task.pb.h"
#include "kernelmosaic/v1/types.pb.h"

namespace kmosaic {

namespace v1 = kernelmosaic::v1;

std::string VerdictName(v1::Verdict verdict);  // "WRONG_OUTPUT"
std::optional<v1::Verdict> ParseVerdict(std::string_view name);
std::string DeviceName(v1::DeviceKind kind);  // "emulated"
std::optional<v1::DeviceKind> ParseDevice(std::string_view name);
std::string RoleName(v1::Role role);  // "verify"
std::optional<v1::Role> ParseRole(std::string_view name);
std::string ContractName(v1::Contract contract);  // "modelnew"
std::optional<v1::Contract> ParseContract(std::string_view name);
std::string ViewName(v1::View view);  // "description"
std::optional<v1::View> ParseView(std::string_view name);
std::string ViewSetName(const v1::ViewSet& views);  // "description+spec"
std::string StageName(v1::Stage stage);             // "implement"
std::string StopReasonName(v1::StopReason reason);  // "turn_budget"
std::string ItemStateName(v1::ItemState state);     // "leased"
std::optional<v1::ItemState> ParseItemState(std::string_view name);
std::string JobStateName(v1::JobState state);            // "running"
std::string FailureClassName(v1::FailureClass failure);  // "infrastructure"

}  // namespace kmosaic

#endif  // KMOSAIC_COMMON_BASE_ENUM_NAMES_H_
