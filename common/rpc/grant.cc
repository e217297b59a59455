#include "common/rpc/grant.h"

#include <nlohmann/json.hpp>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/digest.h"

namespace kmosaic {
namespace {

constexpr absl::Duration kClockTolerance = absl::Minutes(1);

std::string Signature(std::string_view body, std::string_view key) {
  return absl::WebSafeBase64Escape(HmacSha256(key, body));
}

}  // namespace

std::string SignGrant(const Grant& grant, std::string_view key) {
  nlohmann::json json = {{"slot", grant.slot},
                         {"worker", grant.worker},
                         {"role", RoleName(grant.role)},
                         {"expires", absl::ToUnixMillis(grant.expires)}};
  std::string body = absl::WebSafeBase64Escape(json.dump());
  return absl::StrCat(body, ".", Signature(body, key));
}

absl::StatusOr<Grant> VerifyGrant(std::string_view text, std::string_view key, absl::Time now) {
  std::vector<std::string> parts = absl::StrSplit(absl::string_view(text.data(), text.size()), '.');
  std::string decoded;
  if (parts.size() != 2 || !absl::WebSafeBase64Unescape(parts[0], &decoded)) {
    return absl::PermissionDeniedError("grant is malformed");
  }
  if (!ConstantTimeEquals(Signature(parts[0], key), parts[1])) {
    return absl::PermissionDeniedError("grant is not signed by this worker's coordinator");
  }
  auto json = nlohmann::json::parse(decoded, nullptr, false);
  if (!json.is_object()) return absl::PermissionDeniedError("grant is malformed");
  Grant grant;
  grant.slot = json.value("slot", "");
  grant.worker = json.value("worker", "");
  grant.role = ParseRole(json.value("role", "")).value_or(v1::ROLE_UNSPECIFIED);
  grant.expires = absl::FromUnixMillis(json.value("expires", int64_t{0}));
  if (now > grant.expires + kClockTolerance) {
    return absl::PermissionDeniedError(absl::StrCat("grant of slot ", grant.slot, " expired at ",
                                                    absl::FormatTime(grant.expires)));
  }
  return grant;
}

}  // namespace kmosaic
