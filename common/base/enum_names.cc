#include "common/base/enum_names.h"

#include <google/protobuf/descriptor.h>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace kmosaic {
namespace {

using google::protobuf::EnumDescriptor;

enum class Case { kUpper, kLower };

// The prefix is the enum's own name in upper snake case: "DeviceKind" -> "DEVICE_KIND_".
std::string Prefix(const EnumDescriptor* type) {
  std::string prefix;
  for (char c : type->name()) {
    if (absl::ascii_isupper(static_cast<unsigned char>(c)) && !prefix.empty()) prefix += '_';
    prefix += absl::ascii_toupper(static_cast<unsigned char>(c));
  }
  return prefix + '_';
}

std::string Name(const EnumDescriptor* type, int number, Case letters) {
  const auto* value = type->FindValueByNumber(number);
  if (value == nullptr) return absl::StrCat("unknown(", number, ")");
  std::string name = value->name().substr(Prefix(type).size());
  if (letters == Case::kLower) absl::AsciiStrToLower(&name);
  return name;
}

template <typename E>
std::optional<E> Parse(const EnumDescriptor* type, std::string_view name) {
  std::string full = Prefix(type) + absl::AsciiStrToUpper(std::string(name));
  const auto* value = type->FindValueByName(full);
  if (value == nullptr || value->number() == 0) return std::nullopt;
  return static_cast<E>(value->number());
}

}  // namespace

std::string VerdictName(v1::Verdict v) { return Name(v1::Verdict_descriptor(), v, Case::kUpper); }
std::optional<v1::Verdict> ParseVerdict(std::string_view name) {
  return Parse<v1::Verdict>(v1::Verdict_descriptor(), name);
}
std::string DeviceName(v1::DeviceKind kind) {
  return Name(v1::DeviceKind_descriptor(), kind, Case::kLower);
}
std::optional<v1::DeviceKind> ParseDevice(std::string_view name) {
  return Parse<v1::DeviceKind>(v1::DeviceKind_descriptor(), name);
}
std::string RoleName(v1::Role role) { return Name(v1::Role_descriptor(), role, Case::kLower); }
std::optional<v1::Role> ParseRole(std::string_view name) {
  return Parse<v1::Role>(v1::Role_descriptor(), name);
}
std::string ContractName(v1::Contract contract) {
  return Name(v1::Contract_descriptor(), contract, Case::kLower);
}
std::optional<v1::Contract> ParseContract(std::string_view name) {
  return Parse<v1::Contract>(v1::Contract_descriptor(), name);
}
std::string ViewName(v1::View view) { return Name(v1::View_descriptor(), view, Case::kLower); }
std::optional<v1::View> ParseView(std::string_view name) {
  return Parse<v1::View>(v1::View_descriptor(), name);
}
std::string ViewSetName(const v1::ViewSet& views) {
  std::string name;
  for (int view : views.views()) {
    absl::StrAppend(&name, name.empty() ? "" : "+", ViewName(static_cast<v1::View>(view)));
  }
  return name;
}
std::string StageName(v1::Stage stage) { return Name(v1::Stage_descriptor(), stage, Case::kLower); }
std::string StopReasonName(v1::StopReason reason) {
  return Name(v1::StopReason_descriptor(), reason, Case::kLower);
}
std::string ItemStateName(v1::ItemState state) {
  return Name(v1::ItemState_descriptor(), state, Case::kLower);
}
std::optional<v1::ItemState> ParseItemState(std::string_view name) {
  return Parse<v1::ItemState>(v1::ItemState_descriptor(), name);
}
std::string JobStateName(v1::JobState state) {
  return Name(v1::JobState_descriptor(), state, Case::kLower);
}
std::string FailureClassName(v1::FailureClass failure) {
  return Name(v1::FailureClass_descriptor(), failure, Case::kLower);
}

}  // namespace kmosaic
