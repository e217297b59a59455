#include <catch2/catch.hpp>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "gpu_worker/service/health_keeper.h"
#include "gpu_worker/service/health_monitor.h"

namespace kmosaic {
namespace {

const std::optional<std::string> kFine;
const std::optional<std::string> kSpoiled = "no space left on the device";
const absl::Status kBroken = absl::UnavailableError("the GPU has fallen off the bus");

struct Patient {
  HealthMonitor monitor{HealthMonitor::Options()};
  absl::Duration now = absl::Hours(1);

  void Spoil(int times) {
    for (int i = 0; i < times; ++i) monitor.OnEvaluation(kSpoiled, now);
  }
  absl::Duration Wait() const { return monitor.test_at() - now; }
};

TEST_CASE("three spoiled evaluations in a row make a worker sick, and its test is due at once") {
  Patient patient;
  patient.Spoil(2);
  patient.monitor.OnEvaluation(kFine, patient.now);
  patient.Spoil(2);
  CHECK(patient.monitor.well());
  CHECK(patient.monitor.test_at() == absl::InfiniteDuration());
  patient.Spoil(1);
  CHECK_FALSE(patient.monitor.well());
  CHECK(patient.monitor.reason() ==
        "3 evaluations in a row failed here; the last: no space left on the device");
  CHECK(patient.Wait() == absl::ZeroDuration());
}

TEST_CASE("a worker that spoils every other evaluation is sick too") {
  Patient patient;
  int evaluations = 0;
  while (patient.monitor.well() && evaluations < 100) {
    patient.monitor.OnEvaluation(++evaluations % 2 == 0 ? kSpoiled : kFine, patient.now);
  }
  CHECK(evaluations == 16);
  CHECK(patient.monitor.reason().find("8 of the latest 16 evaluations failed here") == 0);
}

TEST_CASE("a failure now and then is nothing") {
  Patient patient;
  for (int i = 0; i < 1000; ++i) {
    patient.monitor.OnEvaluation(i % 5 == 0 ? kSpoiled : kFine, patient.now);
  }
  CHECK(patient.monitor.well());
}

TEST_CASE("self-tests that fail are repeated with pauses that double up to five minutes") {
  Patient patient;
  patient.Spoil(3);
  std::vector<double> waits;
  for (int i = 0; i < 9; ++i) {
    patient.now = patient.monitor.test_at();
    patient.monitor.OnSelfTest(kBroken, patient.now);
    waits.push_back(absl::ToDoubleSeconds(patient.Wait()));
  }
  CHECK(waits == std::vector<double>{5, 10, 20, 40, 80, 160, 300, 300, 300});
  CHECK(patient.monitor.reason() == "the self-test failed: the GPU has fallen off the bus");
}

TEST_CASE("a self-test that passes makes it well, with a clean record") {
  Patient patient;
  patient.Spoil(3);
  patient.Spoil(5);  // what still ran
  patient.monitor.OnSelfTest(absl::OkStatus(), patient.now);
  CHECK(patient.monitor.well());
  CHECK(patient.monitor.reason().empty());
  CHECK(patient.monitor.test_at() == absl::InfiniteDuration());
  patient.Spoil(2);
  CHECK(patient.monitor.well());
}

TEST_CASE("one that falls sick again soon waits longer, one that was well for long does not") {
  Patient patient;
  auto fall_and_recover = [&] {
    patient.Spoil(3);
    absl::Duration wait = patient.Wait();
    patient.now = patient.monitor.test_at();
    patient.monitor.OnSelfTest(absl::OkStatus(), patient.now);
    return wait;
  };
  CHECK(fall_and_recover() == absl::ZeroDuration());
  CHECK(fall_and_recover() == absl::Seconds(5));
  patient.now += absl::Minutes(9);
  patient.monitor.OnEvaluation(kFine, patient.now);
  CHECK(fall_and_recover() == absl::Seconds(10));
  patient.now += absl::Minutes(10);
  CHECK(fall_and_recover() == absl::ZeroDuration());
}

TEST_CASE("a test of a worker that is well changes nothing") {
  Patient patient;
  patient.monitor.OnSelfTest(kBroken, patient.now);
  CHECK(patient.monitor.well());
}

// Lets the test wait for what the keeper's thread does.
struct Ward {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> seen;

  void Say(std::string what) {
    std::lock_guard lock(mutex);
    seen.push_back(std::move(what));
    changed.notify_all();
  }
  void Await(size_t count) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return seen.size() >= count; });
  }
};

TEST_CASE("the keeper tells the change, tests, and tells it again when the test passes") {
  Ward ward;
  FakeClock clock;
  int tests = 0;
  HealthKeeper::Options options;
  options.clock = &clock;
  options.monitor.failures_in_a_row = 1;
  options.monitor.first_pause = absl::ZeroDuration();
  options.monitor.longest_pause = absl::ZeroDuration();
  options.self_test = [&](Cancellation*) {
    ward.Say("test");
    return ++tests == 2 ? absl::OkStatus() : kBroken;
  };
  options.on_change = [&](bool well, const std::string& reason) {
    ward.Say(well ? "well" + reason : "sick");
  };
  HealthKeeper keeper(options);
  keeper.OnEvaluation(kSpoiled);
  CHECK_FALSE(keeper.well());
  CHECK(ward.seen.empty());  // nothing before it is started
  keeper.Start();
  ward.Await(4);
  keeper.Stop();
  CHECK(ward.seen == std::vector<std::string>{"sick", "test", "test", "well"});
  CHECK(keeper.well());
}

TEST_CASE("the keeper waits for the pause of its clock, and stopping wakes it") {
  Ward ward;
  FakeClock clock;
  HealthKeeper::Options options;
  options.clock = &clock;
  options.monitor.failures_in_a_row = 1;
  options.monitor.first_pause = absl::Hours(1);
  options.monitor.longest_pause = absl::Hours(1);
  options.self_test = [&](Cancellation*) {
    ward.Say("test");
    return kBroken;
  };
  options.on_change = [&](bool, const std::string&) { ward.Say("change"); };
  HealthKeeper keeper(options);
  keeper.Start();
  keeper.OnEvaluation(kSpoiled);
  // Until what the first test said is known, so that the pause begins now.
  while (keeper.reason().find("the self-test failed") != 0) std::this_thread::yield();
  clock.Advance(absl::Hours(2));
  keeper.OnEvaluation(kFine);  // it looks at the clock
  ward.Await(3);
  keeper.Stop();
  CHECK(ward.seen == std::vector<std::string>{"change", "test", "test"});
}

TEST_CASE("stopping the keeper cancels a test that runs") {
  Ward ward;
  FakeClock clock;
  HealthKeeper::Options options;
  options.clock = &clock;
  options.monitor.failures_in_a_row = 1;
  options.self_test = [&](Cancellation* cancellation) {
    std::mutex mutex;
    std::condition_variable changed;
    bool cancelled = false;
    auto callback = cancellation->OnCancel([&] {
      std::lock_guard lock(mutex);
      cancelled = true;
      changed.notify_all();
    });
    ward.Say("test");
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return cancelled; });
    return absl::OkStatus();
  };
  options.on_change = [&](bool, const std::string&) { ward.Say("change"); };
  HealthKeeper keeper(options);
  keeper.Start();
  keeper.OnEvaluation(kSpoiled);
  ward.Await(2);
  keeper.Stop();
  CHECK(ward.seen == std::vector<std::string>{"change", "test"});
  CHECK_FALSE(keeper.well());
}

}  // namespace
}  // namespace kmosaic
