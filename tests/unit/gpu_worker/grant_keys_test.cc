#include "gpu_worker/service/grant_keys.h"

#include <catch2/catch.hpp>

namespace kmosaic {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1'700'000'000);

std::string Signed(const std::string& key, const std::string& worker = "w1",
                   v1::Role role = v1::ROLE_VERIFY, absl::Duration valid = absl::Minutes(5)) {
  Grant grant;
  grant.slot = "slot-1";
  grant.worker = worker;
  grant.role = role;
  grant.expires = kNow + valid;
  return SignGrant(grant, key);
}

TEST_CASE("a grant is good for its worker, its role and its time") {
  GrantKeys keys("w1");
  CHECK(absl::IsPermissionDenied(keys.Check(Signed("key"), v1::ROLE_VERIFY, kNow)));
  keys.Set("key");
  CHECK(keys.Check(Signed("key"), v1::ROLE_VERIFY, kNow).ok());
  CHECK_FALSE(keys.Check(Signed("key"), v1::ROLE_BENCHMARK, kNow).ok());
  CHECK_FALSE(keys.Check(Signed("key", "w2"), v1::ROLE_VERIFY, kNow).ok());
  CHECK_FALSE(keys.Check(Signed("other"), v1::ROLE_VERIFY, kNow).ok());
  CHECK_FALSE(keys.Check(Signed("key"), v1::ROLE_VERIFY, kNow + absl::Hours(1)).ok());
  CHECK_FALSE(keys.Check("", v1::ROLE_VERIFY, kNow).ok());
}

TEST_CASE("a coordinator that was started again leaves earlier grants good, those before not") {
  GrantKeys keys("w1");
  keys.Set("one");
  keys.Set("one");
  keys.Set("two");
  CHECK(keys.Check(Signed("one"), v1::ROLE_VERIFY, kNow).ok());
  CHECK(keys.Check(Signed("two"), v1::ROLE_VERIFY, kNow).ok());
  keys.Set("three");
  CHECK_FALSE(keys.Check(Signed("one"), v1::ROLE_VERIFY, kNow).ok());
}

}  // namespace
}  // namespace kmosaic
