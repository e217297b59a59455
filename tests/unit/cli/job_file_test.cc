#include "cli/taskfiles/job_file.h"

#include <catch2/catch.hpp>
#include <filesystem>

#include "tests/testing/temp_dir.h"
#include "tests/unit/cli/files.h"

using namespace kmosaic;
namespace v1 = kernelmosaic::v1;
namespace fs = std::filesystem;

namespace {

// A folder with tasks/one and tasks/two, rec.jsonl, and the job file job.yaml.
class JobFolder {
 public:
  explicit JobFolder(const std::string& yaml) {
    WriteTask(dir() / "tasks" / "one", "one");
    WriteTask(dir() / "tasks" / "two", "two");
    WriteFile(dir() / "rec.jsonl",
              "{\"task\": \"one\", \"turn\": 0, \"content\": \"x\"}\n"
              "{\"task\": \"two\", \"turn\": 0, \"content\": \"x\"}\n");
    WriteFile(dir() / "job.yaml", yaml);
  }
  fs::path dir() const { return temp_.path(); }

  std::optional<JobFile> Read(const std::vector<std::string>& overrides = {}) {
    problems_ = Problems();
    return ReadJobFile((dir() / "job.yaml").string(), overrides, problems_);
  }

  // Problems of the last Read with the folder's path cut off.
  std::vector<std::string> problems() const {
    std::vector<std::string> lines;
    std::string prefix = dir().string() + "/";
    for (std::string line : problems_.lines()) {
      for (size_t at; (at = line.find(prefix)) != std::string::npos;) line.erase(at, prefix.size());
      lines.push_back(line);
    }
    return lines;
  }

 private:
  TempDir temp_;
  Problems problems_;
};

constexpr char kGood[] =
    "kind: generate\n"
    "tasks: [tasks/*]\n"
    "views: [[description], [reference, spec]]\n"
    "endpoint: {kind: replay, recordings: rec.jsonl}\n";

std::vector<std::string> ProblemsOf(const std::string& yaml,
                                    const std::vector<std::string>& overrides = {}) {
  JobFolder folder(yaml);
  auto job = folder.Read(overrides);
  CHECK(job.has_value() == folder.problems().empty());
  return folder.problems();
}

}  // namespace

TEST_CASE("Every example job is read as it stands") {
  for (const auto& entry : fs::directory_iterator(EXAMPLES "/jobs")) {
    if (entry.path().extension() != ".yaml") continue;
    Problems problems;
    auto job = ReadJobFile(entry.path().string(), {}, problems);
    INFO(entry.path().string() << (problems.empty() ? "" : ": " + problems.lines()[0]));
    REQUIRE(job);
    CHECK(job->warnings.empty());
  }
}

TEST_CASE("The demo shows every view combination to at least two tasks") {
  Problems problems;
  auto job = ReadJobFile(EXAMPLES "/jobs/demo.yaml", {}, problems);
  REQUIRE(job);
  std::map<int, int> uses;
  for (const PlannedItem& item : PlanItems(job->spec, job->tasks.size())) ++uses[item.views];
  CHECK(uses.size() == 7);
  for (const auto& [views, number] : uses) CHECK(number >= 2);
}

TEST_CASE("What a job file leaves out has the documented default") {
  JobFolder folder(kGood);
  auto job = folder.Read();
  REQUIRE(job);
  const v1::JobSpec& spec = job->spec;
  CHECK(spec.name() == "job");
  CHECK(spec.kind() == "generate");
  CHECK(spec.samples() == 1);
  CHECK(spec.assign() == v1::VIEW_ASSIGNMENT_ALL);
  CHECK(spec.endpoint().name() == "replay");
  CHECK(spec.endpoint().max_concurrency() == 8);
  CHECK(spec.endpoint().timeout().seconds() == 600);
  CHECK(spec.endpoint().recordings() == ReadFile(folder.dir() / "rec.jsonl"));
  CHECK(spec.sampling().temperature() == 0.8);
  CHECK(spec.sampling().max_tokens() == 8192);
  CHECK_FALSE(spec.sampling().has_top_p());
  CHECK_FALSE(spec.sampling().has_seed());
  CHECK(spec.budget().turns() == 10);
  CHECK(spec.budget().optimise_turns() == 3);
  CHECK(spec.budget().context_tokens() == 32768);
  CHECK(spec.budget().tokens() == 0);
  CHECK(spec.evaluation().device() == v1::DEVICE_KIND_UNSPECIFIED);
  CHECK_FALSE(spec.evaluation().benchmark());
  CHECK(spec.guidance());
  CHECK(spec.weight() == 1);
  CHECK(spec.priority() == 5);
  CHECK(spec.max_attempts() == 3);
  CHECK(spec.max_concurrency() == 0);
  REQUIRE(job->tasks.size() == 2);
  CHECK(job->tasks[0].spec.id() == "one");
}

TEST_CASE("Every key of a job file arrives in the job") {
  JobFolder folder(
      "name: n\nkind: generate\ntasks: [tasks/two, tasks/one, tasks/two/]\nviews: [[spec]]\n"
      "assign: round-robin\nsamples: 4\n"
      "endpoint:\n  name: e\n  kind: openai\n  url: http://127.0.0.1:8000/v1\n  model: m\n"
      "  api_key_env: KEY\n  stream: false\n  max_concurrency: 2\n  timeout: 1m30s\n"
      "  requests_per_minute: 60\n  tokens_per_minute: 90000\n"
      "  prompt_usd_per_million: 0.5\n  completion_usd_per_million: 2\n"
      "  cached_prompt_usd_per_million: 0.1\n  connect_timeout: 2s\n  first_byte_timeout: 3s\n"
      "  idle_timeout: 4s\n"
      "  dialect: {max_completion_tokens: true, omit: [seed], extra: '{\"a\": 1}'}\n"
      "sampling: {temperature: 0, max_tokens: 100, top_p: 0.9, seed: -3}\n"
      "budget: {turns: 1, tokens: 2, cost_usd: 0.5, time: 1h, optimise_turns: 0, context_tokens: "
      "9}\n"
      "evaluation: {device: cuda, scale: 0.25, public_seeds: 1, secret_seeds: 6, benchmark: true, "
      "compile_baseline: true, require: {gpu: H200}}\n"
      "job_budget: {tokens: 3, cost_usd: 0.25, time: 2h}\nprotocol: tools\nenough_verified: 2\n"
      "guidance: false\ntarget_speedup: 1.5\nweight: 7\npriority: 9\nmax_attempts: 2\n"
      "max_concurrency: 11\n");
  auto job = folder.Read();
  INFO((folder.problems().empty() ? "" : folder.problems()[0]));
  REQUIRE(job);
  const v1::JobSpec& spec = job->spec;
  CHECK(spec.name() == "n");
  CHECK(spec.assign() == v1::VIEW_ASSIGNMENT_ROUND_ROBIN);
  CHECK(spec.endpoint().kind() == v1::ENDPOINT_KIND_OPENAI);
  CHECK(spec.endpoint().url() == "http://127.0.0.1:8000/v1");
  CHECK(spec.endpoint().api_key_env() == "KEY");
  CHECK_FALSE(spec.endpoint().stream());
  CHECK(spec.endpoint().timeout().seconds() == 90);
  CHECK(spec.endpoint().completion_usd_per_million() == 2);
  CHECK(spec.endpoint().cached_prompt_usd_per_million() == 0.1);
  CHECK(spec.endpoint().connect_timeout().seconds() == 2);
  CHECK(spec.endpoint().first_byte_timeout().seconds() == 3);
  CHECK(spec.endpoint().idle_timeout().seconds() == 4);
  CHECK(spec.endpoint().dialect().max_completion_tokens());
  CHECK(spec.endpoint().dialect().omit(0) == "seed");
  CHECK(spec.endpoint().dialect().extra() == "{\"a\": 1}");
  CHECK(spec.job_budget().tokens() == 3);
  CHECK(spec.job_budget().cost_usd() == 0.25);
  CHECK(spec.job_budget().time().seconds() == 7200);
  CHECK(spec.protocol() == v1::ANSWER_PROTOCOL_TOOLS);
  CHECK(spec.enough_verified() == 2);
  CHECK_FALSE(spec.guidance_trial());
  CHECK(spec.sampling().temperature() == 0);
  CHECK(spec.sampling().top_p() == 0.9);
  CHECK(spec.sampling().seed() == -3);
  CHECK(spec.budget().time().seconds() == 3600);
  CHECK(spec.budget().cost_usd() == 0.5);
  CHECK(spec.budget().optimise_turns() == 0);
  CHECK(spec.evaluation().device() == v1::DEVICE_KIND_CUDA);
  CHECK(spec.evaluation().scale() == 0.25);
  CHECK(spec.evaluation().compile_baseline());
  CHECK(spec.evaluation().require().at("gpu") == "H200");
  CHECK_FALSE(spec.guidance());
  CHECK(spec.target_speedup() == 1.5);
  CHECK(spec.weight() == 7);
  CHECK(spec.priority() == 9);
  CHECK(spec.max_attempts() == 2);
  CHECK(spec.endpoint().requests_per_minute() == 60);
  CHECK(spec.endpoint().tokens_per_minute() == 90000);
  CHECK(spec.max_concurrency() == 11);
  // As listed; a folder named twice counts once.
  REQUIRE(job->tasks.size() == 2);
  CHECK(job->tasks[0].spec.id() == "two");
}

TEST_CASE("Several endpoints arrive with their weights, the first one as the job's endpoint") {
  JobFolder folder(
      "kind: generate\ntasks: [tasks/one]\nviews: [[spec]]\nguidance_trial: true\n"
      "sampling: {temperatures: [0.2, 1]}\n"
      "endpoints:\n"
      "  - {name: a, kind: openai, url: 'http://a/v1', model: m, weight: 3}\n"
      "  - {kind: anthropic, url: 'https://b/v1', model: n}\n");
  auto job = folder.Read();
  INFO((folder.problems().empty() ? "" : folder.problems()[0]));
  REQUIRE(job);
  const v1::JobSpec& spec = job->spec;
  CHECK(spec.endpoint().name() == "a");
  CHECK(spec.endpoint().weight() == 3);
  REQUIRE(spec.further_endpoints_size() == 1);
  CHECK(spec.further_endpoints(0).name() == "anthropic");
  CHECK(spec.further_endpoints(0).kind() == v1::ENDPOINT_KIND_ANTHROPIC);
  CHECK(spec.further_endpoints(0).weight() == 1);
  CHECK(spec.guidance_trial());
  CHECK(spec.sampling().temperatures_size() == 2);
}

TEST_CASE("What is wrong with endpoints, dialects and budgets is told") {
  const std::string head = "kind: generate\ntasks: [tasks/one]\nviews: [[spec]]\n";
  CHECK(ProblemsOf(head + "endpoints:\n"
                          "  - {kind: openai, url: 'http://a', model: m}\n"
                          "  - {kind: openai, url: 'http://b', model: m, wait: 3}\n") ==
        std::vector<std::string>{
            "job.yaml:6:5: endpoints[1].name: another endpoint of the job is named \"openai\"; "
            "give each a name of its own",
            "job.yaml:6:47: unknown key \"endpoints[1].wait\"; known here: weight, kind, name, "
            "max_concurrency, timeout, url, model, api_key_env, stream, requests_per_minute, "
            "tokens_per_minute, prompt_usd_per_million, cached_prompt_usd_per_million, "
            "completion_usd_per_million, connect_timeout, "
            "first_byte_timeout, idle_timeout, dialect"});
  CHECK(ProblemsOf(head + "endpoint: {kind: openai, url: 'http://a', model: m, dialect: {omit: "
                          "[model], extra: '[]'}}\njob_budget: {cost_usd: 1}\n"
                          "sampling: {temperature: 1, temperatures: [3]}\n")
            .size() == 4);
}

TEST_CASE("Problems of a job file name line and column, all at once") {
  CHECK(ProblemsOf("kind: train\ntasks: [tasks/nine, 'tasks/z*']\nviews: [[text], []]\nsamples: 0\n"
                   "endpoint: {kind: replay, model: m}\nsampling: {temperature: 3}\n"
                   "budget: {time: 5}\nsample: 2\n") ==
        std::vector<std::string>{
            "job.yaml:1:7: kind: expected generate, found \"train\"",
            "job.yaml:2:9: tasks: there is no tasks/nine/task.yaml; the path starts at the job "
            "file's folder",
            "job.yaml:2:21: tasks: \"tasks/z*\" matches no task folder (a folder with a "
            "task.yaml); the path "
            "starts at the job file's folder",
            "job.yaml:3:10: views: unknown view \"text\"; use description, reference or spec",
            "job.yaml:3:8: views: a combination must hold at least one view",
            "job.yaml:4:10: samples: expected an integer from 1 to 1000, found \"0\"",
            "job.yaml:5:11: endpoint.recordings: is required; name a JSON Lines file of recorded "
            "replies",
            "job.yaml:5:26: unknown key \"endpoint.model\"; known here: kind, name, "
            "max_concurrency, timeout, "
            "recordings",
            "job.yaml:6:25: sampling.temperature: expected a number from 0 to 2, found \"3\"",
            "job.yaml:7:16: budget.time: expected a duration with its unit (90s, 2m, 1h30m), found "
            "\"5\"",
            "job.yaml:8:1: unknown key \"sample\"; did you mean \"samples\"?"});
}

TEST_CASE("Missing keys are told with what to write") {
  CHECK(ProblemsOf("name: x\n") ==
        std::vector<std::string>{
            "job.yaml:1:1: kind: is required; write kind: generate",
            "job.yaml:1:1: tasks: is required; list task folders, tasks: [../tasks/*]",
            "job.yaml:1:1: views: is required; list view combinations, views: [[description], "
            "[description, "
            "spec]]",
            "job.yaml:1:1: endpoint: is required; say where replies come from, endpoint: {kind: "
            "openai, url: "
            "..., model: ...}"});
}

TEST_CASE("Keys that do not fit together are refused") {
  std::string good = kGood;
  CHECK(
      ProblemsOf(good + "target_speedup: 2\n") ==
      std::vector<std::string>{"job.yaml:5:17: target_speedup: needs evaluation.benchmark: true"});
  CHECK(ProblemsOf(good + "evaluation: {compile_baseline: true}\n") ==
        std::vector<std::string>{
            "job.yaml:5:32: evaluation.compile_baseline: needs evaluation.benchmark: true"});
  CHECK(ProblemsOf(good + "evaluation: {device: emulated, benchmark: true}\n") ==
        std::vector<std::string>{
            "job.yaml:5:43: evaluation.benchmark: the emulated device has no times; use "
            "device: cuda or auto"});
  CHECK(ProblemsOf(good + "budget: {cost_usd: 1}\n") ==
        std::vector<std::string>{"job.yaml:5:9: budget: cost_usd needs prices at the endpoint "
                                 "(prompt_usd_per_million, completion_usd_per_million)"});
}

TEST_CASE("A problem in a task's file is a problem of the job") {
  JobFolder folder(kGood);
  WriteFile(folder.dir() / "tasks" / "two" / "task.yaml", "id: one\ntitle: t\nfamily: f\n");
  CHECK_FALSE(folder.Read());
  CHECK(folder.problems() ==
        std::vector<std::string>{"tasks/two/task.yaml:1:5: id: \"one\" is also the id of "
                                 "tasks/one; ids are unique in a job"});
  WriteFile(folder.dir() / "tasks" / "two" / "task.yaml",
            "id: two\ntitle: t\nlevel: x\nfamily: f\n");
  CHECK_FALSE(folder.Read());
  CHECK(folder.problems() ==
        std::vector<std::string>{
            "tasks/two/task.yaml:3:8: level: expected an integer from 0 to 3, found \"x\""});
}

TEST_CASE("A view that a task lacks is a problem only where it would be shown") {
  JobFolder folder(kGood);
  fs::remove(folder.dir() / "tasks" / "two" / "description.md");
  CHECK_FALSE(folder.Read());
  CHECK(folder.problems() ==
        std::vector<std::string>{
            "job.yaml:3:8: views: task \"two\" (tasks/two) has no description view"});
  // Task 0 gets the first set, task 1 the second.
  CHECK(folder.Read({"assign=round-robin"}));
}

TEST_CASE("option --set overrides a key, also one inside a mapping that is not there") {
  JobFolder folder(kGood);
  auto job = folder.Read({"samples=3", "name=other", "sampling.seed=7", "views=[[spec]]"});
  INFO((folder.problems().empty() ? "" : folder.problems()[0]));
  REQUIRE(job);
  CHECK(job->spec.samples() == 3);
  CHECK(job->spec.name() == "other");
  CHECK(job->spec.sampling().seed() == 7);
  CHECK(job->spec.views_size() == 1);
}

TEST_CASE("A problem with an override names the flag, never its value's place in the file") {
  CHECK(ProblemsOf(kGood, {"samples=many"}) ==
        std::vector<std::string>{
            "--set samples: samples: expected an integer from 1 to 1000, found \"many\""});
  CHECK(ProblemsOf(kGood, {"samples"}) ==
        std::vector<std::string>{
            "--set samples: expected KEY=VALUE, say samples=4 or endpoint.model=NAME"});
  CHECK(ProblemsOf(kGood, {"kind.x=1"}) ==
        std::vector<std::string>{"--set kind.x: \"kind\" is not a mapping in job.yaml"});
  CHECK(ProblemsOf(kGood, {"bugdet.turns=1"}) ==
        std::vector<std::string>{
            "--set bugdet.turns: unknown key \"bugdet\"; did you mean \"budget\"?"});
}

TEST_CASE("A key pasted where its variable's name belongs is not repeated") {
  for (const std::string& line : ProblemsOf(
           "kind: generate\ntasks: [tasks/*]\nviews: [[spec]]\nendpoint: {kind: openai, url: "
           "ftp://x, model: m, api_key_env: sk-secret}\n",
           {"endpoint.api_key_env=sk-other secret"})) {
    CHECK(line.find("secret") == std::string::npos);
  }
}

TEST_CASE("A replay job without a reply for a task is allowed with a warning") {
  JobFolder folder(kGood);
  WriteFile(folder.dir() / "rec.jsonl", "{\"task\": \"one\", \"turn\": 0, \"content\": \"x\"}\n");
  auto job = folder.Read();
  REQUIRE(job);
  REQUIRE(job->warnings.size() == 1);
  CHECK(job->warnings[0].find("no reply is recorded for task \"two\"") != std::string::npos);
}

TEST_CASE("Items are planned as the coordinator splits them") {
  v1::JobSpec spec;
  spec.add_views();
  spec.add_views();
  spec.set_samples(2);
  spec.set_assign(v1::VIEW_ASSIGNMENT_ALL);
  CHECK(PlanItems(spec, 3).size() == 12);
  spec.set_assign(v1::VIEW_ASSIGNMENT_ROUND_ROBIN);
  auto items = PlanItems(spec, 3);
  REQUIRE(items.size() == 6);
  CHECK(items[2].task == 1);
  CHECK(items[2].views == 1);
  CHECK(items[4].views == 0);
}
