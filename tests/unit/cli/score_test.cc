#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <set>
#include <sstream>

#include "cli/output/times.h"
#include "tests/unit/cli/fake_services.h"
#include "tests/unit/cli/files.h"
#include "tests/unit/cli/test_host.h"

using namespace kmosaic;

namespace {

struct Fixture {
  FakeCoordinator fake;
  TestHost run;

  int Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"--coordinator", fake.target()});
    return run.Run(arguments);
  }
  std::string Path(const std::string& name) const { return run.temp.path() + "/" + name; }
  // Rows "a0", "a1", ...; those in `bad` have a solution that fails.
  void WriteRows(const std::string& name, int count, int bad_from) {
    std::string text;
    for (int i = 0; i < count; ++i) {
      text += "{\"id\": \"a" + std::to_string(i) + "\", \"reference\": \"r\", \"solution\": \"" +
              (i < bad_from ? "good" : "poor") +
              "\", \"label\": {\"compiled\": true, \"correct\": true}}\n";
    }
    WriteFile(Path(name), text);
  }
};

int64_t LinesIn(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE_METHOD(Fixture, "score streams a file and gives one object per candidate") {
  WriteRows("k.jsonl", 200, 199);
  CHECK(Run({"score", Path("k.jsonl"), "-o", "jsonl", "--out", Path("out.jsonl"), "--scale", "0.5",
             "--device", "emulated"}) == 1);
  std::istringstream lines(run.out.str());
  std::set<std::string> ids;
  std::string line;
  while (std::getline(lines, line)) {
    auto json = nlohmann::json::parse(line);
    ids.insert(json["id"]);
    CHECK((json["verdict"] == "PASSED") == (json["id"] != "a199"));
    CHECK(json["compile"]["seconds"] == 1.5);
    CHECK(json["benchmark"].is_null());
    CHECK(json["label"] == "correct");
  }
  CHECK(ids.size() == 200);
  CHECK(fake.score.requests[0].evaluation().scale() == 0.5);
  CHECK(fake.score.requests[0].evaluation().device() == v1::DEVICE_KIND_EMULATED);
  CHECK(fake.score.requests[0].evaluation().last_stage() == v1::ROLE_VERIFY);
  std::string kept = ReadFile(Path("out.jsonl"));
  CHECK(std::count(kept.begin(), kept.end(), '\n') == 200);
  CHECK_FALSE(std::filesystem::exists(Path("out.jsonl.partial")));
}

TEST_CASE_METHOD(Fixture, "When all pass the answer is yes") {
  WriteRows("k.jsonl", 3, 3);
  CHECK(Run({"score", Path("k.jsonl")}) == 0);
  CHECK(Contains(run.out.str(), "PASSED"));
  CHECK(Contains(run.out.str(), "LABELLED correct"));
  CHECK(Contains(run.out.str(), "3 passed, 0 failed, 0 without a verdict about them"));
  CHECK(Run({"score", Path("k.jsonl"), "--limit", "2", "-o", "json"}) == 0);
  CHECK(run.Json()["results"].size() == 2);
  CHECK(run.Json()["summary"]["passed"] == 2);
}

TEST_CASE_METHOD(Fixture, "A malformed line is told and the other rows still run") {
  WriteFile(Path("k.jsonl"),
            "{\"id\": \"a\", \"reference\": \"r\", \"solution\": \"good\"}\n{oops\n"
            "{\"id\": \"b\", \"reference\": \"r\", \"solution\": \"good\"}\n");
  CHECK(Run({"score", Path("k.jsonl"), "-o", "json"}) == 1);
  CHECK(run.Json()["results"].size() == 2);
  CHECK(Contains(run.err.str(), "k.jsonl:2:2: this is not JSON"));
}

TEST_CASE_METHOD(Fixture, "A file of which nothing can be read is bad input, and nothing is sent") {
  WriteFile(Path("k.jsonl"), "{oops\n{\"reference\": \"r\"}\n");
  CHECK(Run({"score", Path("k.jsonl")}) == 2);
  CHECK(Contains(run.err.str(), "k.jsonl:1:2: this is not JSON"));
  CHECK(Contains(run.err.str(), "k.jsonl:2: \"solution\" is required"));
  CHECK(fake.score.streams == 0);
  CHECK(Run({"score", Path("none.jsonl")}) == 2);
  CHECK(Run({"score", run.temp.path()}) == 2);
}

TEST_CASE_METHOD(Fixture, "Rows that were not answered are sent again after a lost connection") {
  WriteRows("k.jsonl", 20, 20);
  fake.score.cut_after = 7;
  CHECK(Run({"score", Path("k.jsonl"), "-o", "jsonl"}) == 0);
  CHECK(fake.score.streams == 2);
  CHECK(LinesIn(run.out.str()) == 20);
}

TEST_CASE_METHOD(Fixture, "Two rows of one id both get their verdict") {
  WriteFile(Path("k.jsonl"),
            "{\"id\": \"a\", \"reference\": \"r\", \"solution\": \"good\"}\n"
            "{\"id\": \"a\", \"reference\": \"r\", \"solution\": \"poor\"}\n");
  CHECK(Run({"score", Path("k.jsonl"), "-o", "json"}) == 1);
  CHECK(run.Json()["results"].size() == 2);
  CHECK(run.Json()["summary"]["passed"] == 1);
}

TEST_CASE_METHOD(Fixture, "One reference and solution get all that is known") {
  WriteFile(Path("model.py"), "reference");
  WriteFile(Path("new.py"), "poor");
  CHECK(Run({"score", "--reference", Path("model.py"), "--solution", Path("new.py")}) == 1);
  CHECK(Contains(run.out.str(), "new.py  WRONG_OUTPUT"));
  CHECK(Contains(run.out.str(), "one element is off"));
  REQUIRE(fake.score.requests.size() == 1);
  CHECK(fake.score.requests[0].oracle().reference() == "reference");
}

TEST_CASE_METHOD(Fixture, "A .cu solution needs its entry") {
  WriteFile(Path("model.py"), "reference");
  WriteFile(Path("k.cu"), "good");
  CHECK(Run({"score", "--reference", Path("model.py"), "--solution", Path("k.cu")}) == 2);
  CHECK(Contains(run.err.str(), "a .cu solution needs its host entry"));
  CHECK(Run({"score", "--reference", Path("model.py"), "--solution", Path("k.cu"), "--entry",
             "void f(const float* x, float* y, cudaStream_t s)", "--bind", "x=input[0]"}) == 2);
  CHECK(Contains(run.err.str(), "parameter \"y\" has no binding"));
  CHECK(Run({"score", "--reference", Path("model.py"), "--solution", Path("k.cu"), "--entry",
             "void f(const float* x, float* y, cudaStream_t s)", "--bind", "x=input[0]", "--bind",
             "y=output[0]"}) == 0);
  REQUIRE(fake.score.requests.size() == 1);
  CHECK(fake.score.requests[0].solution().contract() == v1::CONTRACT_CUDA);
  CHECK(fake.score.requests[0].oracle().entry().bindings().size() == 2);
}

TEST_CASE_METHOD(Fixture, "A solution can be judged by a task folder") {
  WriteFile(Path("k.cu"), "good");
  CHECK(Run({"score", "--task", EXAMPLES "/tasks/histogram", "--solution", Path("k.cu")}) == 0);
  CHECK(fake.score.requests[0].oracle().scaled_shapes().at("bins") == 37);
}

TEST_CASE_METHOD(Fixture, "Flags that do not fit together are bad usage") {
  WriteRows("k.jsonl", 1, 1);
  CHECK(Run({"score"}) == 2);
  CHECK(Run({"score", Path("k.jsonl"), "--solution", "x.py"}) == 2);
  CHECK(Run({"score", "--solution", "x.py"}) == 2);
  CHECK(Run({"score", Path("k.jsonl"), "--stages", "verify"}) == 2);
  CHECK(Run({"score", Path("k.jsonl"), "--stages", "compile,verify,benchmark", "--device",
             "emulated"}) == 2);
  CHECK(Run({"score", Path("k.jsonl"), "--compile-baseline"}) == 2);
  CHECK(Contains(run.err.str(), "--compile-baseline: needs --stages compile,verify,benchmark"));
  CHECK(Run({"score", Path("k.jsonl"), "--scale", "2"}) == 2);
  CHECK(Run({"score", Path("k.jsonl"), "--require", "gpu"}) == 2);
  CHECK(fake.score.streams == 0);
  CHECK(Run({"score", Path("k.jsonl"), "--stages", "compile"}) == 0);
  CHECK(fake.score.requests[0].evaluation().last_stage() == v1::ROLE_COMPILE);
  CHECK_FALSE(fake.score.requests[0].evaluation().compile_baseline());
}

TEST_CASE_METHOD(Fixture, "torch.compile is timed beside eager when asked for") {
  WriteRows("k.jsonl", 1, 1);
  CHECK(Run({"score", Path("k.jsonl"), "--stages", "compile,verify,benchmark",
             "--compile-baseline"}) == 0);
  CHECK(fake.score.requests[0].evaluation().compile_baseline());
  CHECK(fake.score.requests[0].evaluation().last_stage() == v1::ROLE_BENCHMARK);
}

TEST_CASE("Times are shown with both baselines and the floor, as far as they were measured") {
  v1::BenchmarkReport times;
  times.set_median_us(10);
  times.set_p10_us(9.5);
  times.set_p90_us(11.25);
  times.set_samples(60);
  CHECK(TimesText(times) == "median 10.0 us (10% 9.5, 90% 11.2, 60 samples)");
  times.set_eager_us(20);
  times.set_speedup(2);
  times.set_compile_us(15);
  times.set_floor_us(4);
  times.set_floor_bound("memory");
  CHECK(TimesText(times) ==
        "median 10.0 us (10% 9.5, 90% 11.2, 60 samples), eager torch 20.0 us, torch.compile "
        "15.0 us, floor 4.0 us (memory), 2.00x of eager torch");
}

TEST_CASE_METHOD(Fixture, "Rows may come from standard input") {
  run.in.str("{\"id\": \"a\", \"reference\": \"r\", \"solution\": \"good\"}\n");
  CHECK(Run({"score", "-"}) == 0);
  CHECK(Contains(run.out.str(), "a  PASSED"));
}

TEST_CASE_METHOD(Fixture, "No coordinator is exit code 3 and what was scored is kept aside") {
  WriteRows("k.jsonl", 1, 1);
  CHECK(run.Run({"--coordinator", "127.0.0.1:1", "score", Path("k.jsonl"), "--out", Path("o")}) ==
        3);
  CHECK(Contains(run.err.str(), "127.0.0.1:1"));
  CHECK_FALSE(std::filesystem::exists(Path("o")));
}
