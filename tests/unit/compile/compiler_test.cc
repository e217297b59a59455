#include "gpu_worker/compile/compiler.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/unit/compile/temp_dir.h"

namespace kmosaic {
namespace {

namespace fs = std::filesystem;
namespace v1 = kernelmosaic::v1;
using testing::Read;
using testing::TempDir;
using testing::Write;

const auto kNever = [] { return false; };

// "cp FROM TO" copies; "say TEXT CODE" prints and exits.
class FakeRunner : public CommandRunner {
 public:
  absl::StatusOr<CommandResult> Run(const CommandRequest& request) override {
    ++runs;
    if (!failure.ok()) return failure;
    CommandResult result;
    if (request.argv[0] == "cp") {
      Write(request.directory + "/" + request.argv[2],
            Read(request.directory + "/" + request.argv[1]));
    } else {
      result.output = request.argv[1];
      result.exit_code = std::stoi(request.argv[2]);
    }
    return result;
  }
  std::atomic<int> runs = 0;
  absl::Status failure;
};

struct Fixture {
  TempDir dir;
  SystemClock clock;
  FakeRunner runner;
  std::unique_ptr<ArtifactCache> cache;
  std::unique_ptr<Compiler> compiler;

  Fixture() {
    cache = *ArtifactCache::Open({dir.path(), 1 << 30, absl::ZeroDuration(), &clock});
    Compiler::Options options;
    options.cache = cache.get();
    options.runner = &runner;
    options.clock = &clock;
    compiler = std::make_unique<Compiler>(options);
  }
};

CompileJob Job(std::vector<std::vector<std::string>> commands, const std::string& text = "code") {
  CompileJob job;
  job.device = "emulated";
  job.contract = "modelnew";
  job.toolchain = "g++ 12.2.0";
  PlannedExtension extension;
  extension.source.key = "k1";
  extension.source.name = "my_ext";
  extension.source.functions = {"forward"};
  extension.plan.files = {{"kernel.cu", text}};
  extension.plan.commands = std::move(commands);
  extension.plan.output = "out.so";
  job.extensions.push_back(extension);
  return job;
}

TEST_CASE("an artifact holds the libraries and a manifest that names them") {
  Fixture f;
  CompileJob job = Job({{"cp", "kernel.cu", "out.so"}});
  job.extensions.push_back(job.extensions[0]);
  job.extensions[1].source.key = "k2";
  auto made = f.compiler->Compile(job, kNever);
  REQUIRE(made.ok());
  REQUIRE(made->outcome.ok());
  CHECK(Read(made->directory + "/ext0.so") == "code");
  CHECK(Read(made->directory + "/ext1.so") == "code");
  auto manifest = nlohmann::json::parse(Read(made->directory + "/manifest.json"));
  CHECK(manifest["device"] == "emulated");
  CHECK(manifest["extensions"][1]["key"] == "k2");
  CHECK(manifest["extensions"][1]["library"] == "ext1.so");
  CHECK(manifest["extensions"][0]["functions"][0] == "forward");
  CHECK(f.compiler->Compile(job, kNever)->cached);
  CHECK(f.runner.runs == 2);
}

TEST_CASE("the first error's log comes back and later commands do not run") {
  Fixture f;
  auto made = f.compiler->Compile(
      Job({{"say", "kernel.cu:1:1: error: nonsense\n", "1"}, {"cp", "kernel.cu", "out.so"}}),
      kNever);
  REQUIRE(made.ok());
  CHECK(made->outcome.failure == v1::VERDICT_COMPILE_ERROR);
  CHECK(made->outcome.log.find("nonsense") != std::string::npos);
  CHECK(f.runner.runs == 1);
}

TEST_CASE("of several extensions those that compile are kept, with the error of the others") {
  Fixture f;
  CompileJob job = Job({{"cp", "kernel.cu", "out.so"}});
  job.extensions.push_back(job.extensions[0]);
  job.extensions.push_back(job.extensions[0]);
  job.extensions[0].source.key = "bad";
  job.extensions[0].plan.commands = {{"say", "kernel.cu:1:1: error: nonsense\n", "1"}};
  job.extensions[2].source.key = "refused";
  job.extensions[2].refusal = "a launch without an end";
  for (bool cached : {false, true}) {
    auto made = f.compiler->Compile(job, kNever);
    REQUIRE(made.ok());
    CHECK(made->cached == cached);
    REQUIRE(made->outcome.ok());
    CHECK(made->outcome.failed_parts == std::vector<std::string>{"bad", "refused"});
    CHECK(made->outcome.reason.find("of extension 'my_ext'") != std::string::npos);
    CHECK(made->outcome.log.find("nonsense") != std::string::npos);
    CHECK(Read(made->directory + "/ext1.so") == "code");
    CHECK_FALSE(fs::exists(made->directory + "/ext0.so"));
    auto manifest = nlohmann::json::parse(Read(made->directory + "/manifest.json"));
    CHECK_FALSE(manifest["extensions"][0].contains("library"));
    CHECK(manifest["extensions"][0]["error"].get<std::string>().find("nonsense") !=
          std::string::npos);
    CHECK(manifest["extensions"][1]["library"] == "ext1.so");
    CHECK_FALSE(manifest["extensions"][1].contains("error"));
  }
}

TEST_CASE("when no extension compiles there is no artifact") {
  Fixture f;
  CompileJob job = Job({{"say", "kernel.cu:1:1: error: nonsense\n", "1"}});
  job.extensions.push_back(job.extensions[0]);
  job.extensions[1].source.key = "k2";
  auto made = f.compiler->Compile(job, kNever);
  REQUIRE(made.ok());
  CHECK(made->outcome.failure == v1::VERDICT_COMPILE_ERROR);
  CHECK(made->outcome.files.empty());
  CHECK(made->outcome.failed_parts.size() == 2);
}

TEST_CASE("commands side by side all report, the last one waits for them") {
  Fixture f;
  CompileJob job = Job({{"say", "a: error: one\n", "1"},
                        {"say", "b: error: two\n", "1"},
                        {"cp", "kernel.cu", "out.so"}});
  job.extensions[0].plan.parallel = true;
  auto made = f.compiler->Compile(job, kNever);
  REQUIRE(made.ok());
  CHECK(made->outcome.log.find("one") != std::string::npos);
  CHECK(made->outcome.log.find("two") != std::string::npos);
  CHECK(f.runner.runs == 2);
}

TEST_CASE("trouble of the sandbox is a status, and the next try works") {
  Fixture f;
  f.runner.failure = absl::UnavailableError("bwrap is gone");
  CHECK(absl::IsUnavailable(
      f.compiler->Compile(Job({{"cp", "kernel.cu", "out.so"}}), kNever).status()));
  f.runner.failure = absl::OkStatus();
  CHECK(f.compiler->Compile(Job({{"cp", "kernel.cu", "out.so"}}), kNever)->outcome.ok());
}

TEST_CASE("a compiler that leaves nothing behind is the machine's trouble") {
  Fixture f;
  CHECK(absl::IsInternal(f.compiler->Compile(Job({{"say", "", "0"}}), kNever).status()));
}

TEST_CASE("everything that decides the artifact is in its key") {
  CompileJob job = Job({{"cp", "kernel.cu", "out.so"}});
  std::string key = JobKey(job);
  CHECK(JobKey(job) == key);
  auto differs = [&](auto change) {
    CompileJob other = job;
    change(other);
    return JobKey(other) != key;
  };
  CHECK(differs([](CompileJob& j) { j.device = "cuda"; }));
  CHECK(differs([](CompileJob& j) { j.arch = "sm_90a"; }));
  CHECK(differs([](CompileJob& j) { j.toolchain = "g++ 13.1.0"; }));
  CHECK(differs([](CompileJob& j) { j.header_digest = "1"; }));
  CHECK(differs([](CompileJob& j) { j.contract = "cuda"; }));
  CHECK(differs([](CompileJob& j) { j.extensions[0].plan.files[0].text += " "; }));
  CHECK(differs([](CompileJob& j) { j.extensions[0].plan.commands[0].push_back("-O3"); }));
  CHECK(differs([](CompileJob& j) { j.extensions[0].refusal = "no"; }));
  CHECK(differs([](CompileJob& j) { j.extensions[0].source.functions.push_back("f"); }));
  CompileJob arch90 = job;
  arch90.arch = "sm_90";
  CompileJob arch90a = job;
  arch90a.arch = "sm_90a";
  CHECK(JobKey(arch90) != JobKey(arch90a));
}

TEST_CASE("a plan that would write outside its directory is refused") {
  Fixture f;
  CompileJob job = Job({{"cp", "kernel.cu", "out.so"}});
  job.extensions[0].plan.files.push_back({"../../escape", "x"});
  CHECK(absl::IsInternal(f.compiler->Compile(job, kNever).status()));
}

TEST_CASE("no more builds at a time than slots") {
  Fixture f;
  auto held = f.compiler->slots().Acquire(kNever);
  REQUIRE(held.ok());
  CHECK(absl::IsCancelled(
      f.compiler->Compile(Job({{"cp", "kernel.cu", "out.so"}}), [] { return true; }).status()));
  held = absl::CancelledError();
  CHECK(f.compiler->Compile(Job({{"cp", "kernel.cu", "out.so"}}), kNever).ok());
  CHECK(f.compiler->slots().used() == 0);
}

}  // namespace
}  // namespace kmosaic
