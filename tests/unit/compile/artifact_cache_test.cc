#include "gpu_worker/compile/artifact_cache.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <filesystem>
#include <latch>
#include <thread>

#include "common/base/digest.h"
#include "common/log/log.h"
#include "tests/unit/compile/temp_dir.h"

namespace kmosaic {
namespace {

namespace fs = std::filesystem;
namespace v1 = kernelmosaic::v1;
using testing::Read;
using testing::TempDir;
using testing::Write;

const auto kNever = [] { return false; };

struct Fixture {
  TempDir dir;
  SystemClock clock;
  std::unique_ptr<ArtifactCache> cache;
  std::atomic<int> builds = 0;

  explicit Fixture(uint64_t max_bytes = 1 << 30) {
    StartLog("test", LogLevel::kError);
    Open(max_bytes);
  }
  void Open(uint64_t max_bytes = 1 << 30) {
    auto opened = ArtifactCache::Open({dir.path(), max_bytes, absl::ZeroDuration(), &clock});
    REQUIRE(opened.ok());
    cache = *std::move(opened);
  }
  ArtifactCache::Builder Good(std::string content = "library") {
    return [this, content](const std::string& directory) -> absl::StatusOr<BuildOutcome> {
      ++builds;
      Write(directory + "/ext0.so", content);
      Write(directory + "/scratch.o", "not kept");
      BuildOutcome outcome;
      outcome.files = {"ext0.so"};
      outcome.seconds = 1.5;
      return outcome;
    };
  }
  ArtifactCache::Builder Bad(v1::Verdict verdict) {
    return [this, verdict](const std::string&) -> absl::StatusOr<BuildOutcome> {
      ++builds;
      BuildOutcome outcome;
      outcome.failure = verdict;
      outcome.reason = "refused";
      outcome.log = "k.cu:1: error \xff";
      return outcome;
    };
  }
};

std::string Key(int i) { return Sha256Hex(std::to_string(i)); }

size_t Left(const std::string& folder) {
  size_t count = 0;
  for (const auto& entry : fs::directory_iterator(folder)) count += entry.exists() ? 1 : 0;
  return count;
}

TEST_CASE("a second request finds what the first built, also after a restart") {
  Fixture f;
  auto first = f.cache->GetOrBuild(Key(1), f.Good(), kNever);
  REQUIRE(first.ok());
  CHECK_FALSE(first->cached);
  CHECK(Read(first->directory + "/ext0.so") == "library");
  CHECK_FALSE(fs::exists(first->directory + "/scratch.o"));
  f.Open();
  auto second = f.cache->GetOrBuild(Key(1), f.Good(), kNever);
  REQUIRE(second.ok());
  CHECK(second->cached);
  CHECK(second->outcome.seconds == 1.5);
  CHECK(second->directory == first->directory);
  CHECK(f.builds == 1);
  CHECK(Left(f.dir.path() + "/build") == 0);
}

TEST_CASE("eight callers with one source build once") {
  Fixture f;
  std::latch start(8);
  std::vector<std::thread> callers;
  std::atomic<int> right = 0;
  for (int i = 0; i < 8; ++i) {
    callers.emplace_back([&] {
      start.arrive_and_wait();
      auto got = f.cache->GetOrBuild(Key(1), f.Good(), kNever);
      if (got.ok() && Read(got->directory + "/ext0.so") == "library") ++right;
    });
  }
  for (std::thread& caller : callers) caller.join();
  CHECK(right == 8);
  CHECK(f.builds == 1);
}

TEST_CASE("a builder that gives up leaves the work to the next waiter") {
  Fixture f;
  std::latch waiting(1);
  std::latch fail(1);
  std::thread first([&] {
    auto got = f.cache->GetOrBuild(
        Key(1),
        [&](const std::string&) -> absl::StatusOr<BuildOutcome> {
          waiting.count_down();
          fail.wait();
          return absl::CancelledError("its caller went away");
        },
        kNever);
    CHECK(absl::IsCancelled(got.status()));
  });
  waiting.wait();
  // One more caller waits on the key but is cancelled itself.
  CHECK(absl::IsCancelled(f.cache->GetOrBuild(Key(1), f.Good(), [] { return true; }).status()));
  fail.count_down();
  auto second = f.cache->GetOrBuild(Key(1), f.Good(), kNever);
  first.join();
  REQUIRE(second.ok());
  CHECK(f.builds == 1);
}

TEST_CASE("damaged entries are seen at use and built again") {
  Fixture f;
  auto first = f.cache->GetOrBuild(Key(1), f.Good("a library of some size"), kNever);
  REQUIRE(first.ok());
  std::string library = first->directory + "/ext0.so";
  SECTION("cut to half") { fs::resize_file(library, 8); }
  SECTION("same size, other bytes") { Write(library, "A library of some size"); }
  SECTION("library gone") { fs::remove(library); }
  SECTION("entry cut") { fs::resize_file(first->directory + "/entry.json", 10); }
  SECTION("entry gone") { fs::remove(first->directory + "/entry.json"); }
  SECTION("entry of another key") {
    auto other = f.cache->GetOrBuild(Key(2), f.Good("x"), kNever);
    fs::copy_file(other->directory + "/entry.json", first->directory + "/entry.json",
                  fs::copy_options::overwrite_existing);
    --f.builds;
  }
  auto again = f.cache->GetOrBuild(Key(1), f.Good("a library of some size"), kNever);
  REQUIRE(again.ok());
  CHECK_FALSE(again->cached);
  CHECK(f.builds == 2);
  CHECK(Read(again->directory + "/ext0.so") == "a library of some size");
  CHECK(f.cache->GetOrBuild(Key(1), f.Good(), kNever)->cached);
}

TEST_CASE("compile errors are kept, trouble of the machine and limits are not") {
  Fixture f;
  auto [verdict, kept] = GENERATE(table<v1::Verdict, bool>({
      {v1::VERDICT_COMPILE_ERROR, true},
      {v1::VERDICT_UNSUPPORTED, true},
      {v1::VERDICT_COMPILE_TIMEOUT, false},
      {v1::VERDICT_COMPILE_RESOURCES, false},
      {v1::VERDICT_INFRASTRUCTURE, false},
  }));
  f.cache->GetOrBuild(Key(1), f.Bad(verdict), kNever).status().IgnoreError();
  auto second = f.cache->GetOrBuild(Key(1), f.Bad(verdict), kNever);
  REQUIRE(second.ok());
  CHECK(second->cached == kept);
  CHECK(second->outcome.failure == verdict);
  CHECK(second->outcome.reason == "refused");
  CHECK(f.builds == (kept ? 1 : 2));
}

TEST_CASE("a builder killed in the middle blocks nobody and is swept away") {
  Fixture f;
  int ready[2];
  REQUIRE(pipe(ready) == 0);
  pid_t child = fork();
  if (child == 0) {
    f.cache
        ->GetOrBuild(
            Key(1),
            [&](const std::string& directory) -> absl::StatusOr<BuildOutcome> {
              Write(directory + "/half.o", "half");
              if (write(ready[1], "x", 1) != 1) _exit(1);
              while (true) pause();
            },
            kNever)
        .status()
        .IgnoreError();
    _exit(0);
  }
  char byte = 0;
  REQUIRE(read(ready[0], &byte, 1) == 1);
  // While it lives its directory stays.
  f.Open();
  CHECK(Left(f.dir.path() + "/build") == 1);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  CHECK(f.cache->GetOrBuild(Key(1), f.Good(), kNever).ok());
  f.Open();
  CHECK(Left(f.dir.path() + "/build") == 0);
  close(ready[0]);
  close(ready[1]);
}

TEST_CASE("two workers on one folder end with one whole entry") {
  Fixture f;
  auto other = ArtifactCache::Open({f.dir.path(), 1 << 30, absl::ZeroDuration(), &f.clock});
  REQUIRE(other.ok());
  auto outer = f.cache->GetOrBuild(
      Key(1),
      [&](const std::string& directory) -> absl::StatusOr<BuildOutcome> {
        // The other worker is faster.
        REQUIRE((*other)->GetOrBuild(Key(1), f.Good("theirs"), kNever).ok());
        return f.Good("ours")(directory);
      },
      kNever);
  REQUIRE(outer.ok());
  CHECK(Read(outer->directory + "/ext0.so") == "theirs");
  CHECK(f.cache->GetOrBuild(Key(1), f.Good(), kNever)->cached);
}

TEST_CASE("the least recently used entries make room") {
  Fixture f(4500);
  std::string content(1000, 'x');
  for (int i = 0; i < 3; ++i) {
    auto made = f.cache->GetOrBuild(Key(i), f.Good(content), kNever);
    // An order that no clock's resolution can blur.
    fs::last_write_time(made->directory + "/entry.json",
                        fs::file_time_type::clock::now() - std::chrono::hours(10 - i));
  }
  CHECK(f.cache->GetOrBuild(Key(0), f.Good(content), kNever)->cached);  // now the newest
  auto added = f.cache->GetOrBuild(Key(3), f.Good(content), kNever);
  CHECK(f.cache->size_bytes() <= 4500);
  CHECK(fs::exists(added->directory));
  f.builds = 0;
  CHECK(f.cache->GetOrBuild(Key(0), f.Good(content), kNever)->cached);
  CHECK_FALSE(f.cache->GetOrBuild(Key(1), f.Good(content), kNever)->cached);
}

TEST_CASE("a folder that cannot be used says so") {
  TempDir dir;
  SystemClock clock;
  Write(dir.path() + "/file", "");
  auto opened = ArtifactCache::Open({dir.path() + "/file", 1, absl::ZeroDuration(), &clock});
  REQUIRE_FALSE(opened.ok());
  CHECK(std::string(opened.status().message()).find("/file") != std::string::npos);
}

TEST_CASE("a key that is not a digest never becomes a path") {
  Fixture f;
  CHECK_FALSE(f.cache->GetOrBuild("../../../../etc", f.Good(), kNever).ok());
  CHECK_FALSE(f.cache->GetOrBuild("", f.Good(), kNever).ok());
}

}  // namespace
}  // namespace kmosaic
