#include "gpu_worker/evaluate/device_use.h"

#include <catch2/catch.hpp>

#include "tests/unit/compile/temp_dir.h"
#include "tests/unit/evaluate/fake_gpu.h"

namespace kmosaic {
namespace {

using testing::FakeGpu;
using testing::TempDir;
using Mode = DeviceLock::Mode;

constexpr auto kNever = [] { return false; };
constexpr auto kAtOnce = [] { return true; };

// Notes whether others could have the device alone while it is asked.
class AskingRole : public Role {
 public:
  AskingRole(const FakeGpu* gpu, std::vector<bool>* alone) : gpu_(gpu), alone_(alone) {}
  absl::StatusOr<Frame> Call(const nlohmann::json&, const std::vector<int>&,
                             absl::Duration) override {
    alone_->push_back(gpu_->Lock(Mode::kExclusive, kAtOnce).ok());
    return Frame();
  }
  const std::optional<RoleFailure>& failure() const override { return failure_; }
  void Kill() override {}
  std::string Output() override { return ""; }

 private:
  const FakeGpu* const gpu_;
  std::vector<bool>* const alone_;
  std::optional<RoleFailure> failure_;
};

class AskingRoles : public RoleStarter {
 public:
  explicit AskingRoles(const FakeGpu* gpu) : gpu_(gpu) {}
  absl::StatusOr<std::unique_ptr<Role>> Start(RoleKind, const RoleLimits&,
                                              const std::vector<std::string>&) override {
    return std::make_unique<AskingRole>(gpu_, &alone);
  }
  std::vector<bool> alone;

 private:
  const FakeGpu* const gpu_;
};

TEST_CASE("the device is held for a call, and free between calls") {
  TempDir dir;
  FakeGpu gpu(dir.path() + "/lock");
  DeviceUse use(&gpu, kNever);
  AskingRoles roles(&gpu);
  SharingRoles sharing(&roles, &use);
  auto role = sharing.Start(RoleKind::kCandidate, RoleLimits(), {});
  REQUIRE(role.ok());
  CHECK(gpu.Lock(Mode::kExclusive, kAtOnce).ok());
  CHECK((*role)->Call({}, {}, absl::Seconds(1)).ok());
  CHECK(roles.alone == std::vector<bool>{false});
  CHECK(gpu.Lock(Mode::kExclusive, kAtOnce).ok());
}

TEST_CASE("a call waits for who has the device alone") {
  TempDir dir;
  FakeGpu gpu(dir.path() + "/lock");
  DeviceUse use(&gpu, kAtOnce);
  AskingRoles roles(&gpu);
  SharingRoles sharing(&roles, &use);
  auto role = sharing.Start(RoleKind::kReference, RoleLimits(), {});
  auto collect = sharing.Start(RoleKind::kCollect, RoleLimits(), {});
  DeviceUse other(&gpu, kNever);
  CHECK(other
            .Alone([&] {
              CHECK(absl::IsCancelled((*role)->Call({}, {}, absl::Seconds(1)).status()));
              CHECK(roles.alone.empty());
              // Sources are collected without the device.
              CHECK((*collect)->Call({}, {}, absl::Seconds(1)).ok());
            })
            .ok());
}

TEST_CASE("who has the device alone does not wait for itself") {
  TempDir dir;
  FakeGpu gpu(dir.path() + "/lock");
  DeviceUse use(&gpu, kAtOnce);
  AskingRoles roles(&gpu);
  SharingRoles sharing(&roles, &use);
  HostExaminer host;
  SharingExaminer examiner(&host, &use);
  auto role = sharing.Start(RoleKind::kCandidate, RoleLimits(), {});
  bool ran = false;
  CHECK(use.Alone([&] {
             CHECK((*role)->Call({}, {}, absl::Seconds(1)).ok());
             CHECK(examiner.FirstDifference({}, {}).ok());
             ran = true;
           })
            .ok());
  CHECK(ran);
  // Cancelled before it came to its turn.
  DeviceUse other(&gpu, kAtOnce);
  auto held = use.Share();
  CHECK(held.ok());
  CHECK(absl::IsCancelled(other.Alone([] { FAIL("ran"); })));
}

}  // namespace
}  // namespace kmosaic
