// kmosaic-agent-runner: leases tasks from the coordinator and holds their conversations.
#include <sys/resource.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>

#include "agent_runner/runner_loop.h"
#include "common/base/ids.h"
#include "common/base/install.h"
#include "common/config/options.h"
#include "common/http/http_server.h"
#include "common/lifecycle/ready_line.h"
#include "common/lifecycle/shutdown.h"
#include "common/log/log.h"
#include "common/rpc/channel.h"

namespace kmosaic {
namespace {

constexpr char kProgram[] = "kmosaic-agent-runner";
constexpr int kExitFailed = 3;

struct RunnerOptions {
  std::string coordinator = "127.0.0.1:7001";
  std::string http_listen = "127.0.0.1:0";
  std::string name;
  std::string guidance_dir;
  std::string log_level = "info";
  std::string api_key_dir;
  std::string llm_proxy;
  std::string llm_no_proxy;
  std::string llm_ca_file;
  int64_t max_conversations = 64;
  absl::Duration drain_grace = absl::Seconds(25);
  absl::Duration endpoint_patience = absl::Minutes(2);
  absl::Duration worker_patience = absl::Minutes(3);
};

void CountCall(RunnerMetrics& metrics, const v1::Endpoint& endpoint, const std::string& outcome,
               const v1::ModelReply* reply) {
  std::map<std::string, std::string> labels = {{"endpoint", endpoint.name()},
                                               {"model", endpoint.model()}};
  auto with = [&](const std::string& key, const std::string& value) {
    auto extended = labels;
    extended[key] = value;
    return extended;
  };
  metrics.llm_requests.Add(with("outcome", outcome)).Increment();
  if (reply == nullptr) return;
  const v1::Usage& usage = reply->usage();
  metrics.llm_seconds.Add(labels, SecondsBuckets()).Observe(reply->seconds());
  metrics.llm_cost_usd.Add(labels).Increment(usage.cost_usd());
  auto tokens = [&](const std::string& kind, uint64_t count) {
    metrics.llm_tokens.Add(with("kind", kind)).Increment(static_cast<double>(count));
  };
  tokens("prompt", usage.prompt_tokens());
  tokens("completion", usage.completion_tokens());
  tokens("reasoning", usage.reasoning_tokens());
  tokens("cached_prompt", usage.cached_prompt_tokens());
}

// A call holds a connection and what its waiting needs: more files than a shell's usual limit
// allows for thousands of conversations.
void RaiseFileLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

int Run(RunnerOptions& flags) {
  RaiseFileLimit();
  Event drain;
  ShutdownSignals signals([&drain] { drain.Set(); });

  if (flags.guidance_dir.empty()) flags.guidance_dir = SharePath("guidance");
  absl::StatusOr<GuidanceLibrary> guidance = GuidanceLibrary::Load(flags.guidance_dir);
  if (!guidance.ok()) {
    LogError("guidance documents", {{"error", std::string(guidance.status().message())}});
    return kExitUsage;
  }
  if (flags.name.empty()) flags.name = RandomId("runner");

  SystemClock clock;
  Metrics registry(kProgram);
  RunnerMetrics metrics(registry);
  CoordinatorClient coordinator(MakeChannel(flags.coordinator));
  Evaluator::Options evaluation;
  evaluation.patience = flags.worker_patience;
  Evaluator evaluator(coordinator, clock, metrics, evaluation);
  SharedEvaluations evaluations(evaluator, metrics);
  EndpointPool::Options calls;
  calls.calls.patience = flags.endpoint_patience;
  calls.http.api_key_dir = flags.api_key_dir;
  calls.http.http = {flags.llm_proxy, flags.llm_no_proxy, flags.llm_ca_file};
  EndpointPool endpoints(
      clock, calls,
      [&metrics](const v1::Endpoint& endpoint, const std::string& outcome,
                 const v1::ModelReply* reply) { CountCall(metrics, endpoint, outcome, reply); });
  ConversationServices services{coordinator, evaluations, endpoints, *guidance,
                                clock,       metrics,     flags.name};

  RunnerLoop* running = nullptr;
  std::mutex running_mutex;
  HttpServer::Options http_options;
  http_options.listen = flags.http_listen;
  http_options.metrics = &registry;
  http_options.healthy = [&running, &running_mutex] {
    std::lock_guard lock(running_mutex);
    return running != nullptr && running->connected();
  };
  absl::StatusOr<std::unique_ptr<HttpServer>> http = HttpServer::Start(std::move(http_options));
  if (!http.ok()) {
    LogError("HTTP server", {{"error", std::string(http.status().message())}});
    return kExitFailed;
  }

  RunnerLoop::Options options;
  options.http_endpoint = (*http)->address();
  options.max_conversations = static_cast<uint32_t>(flags.max_conversations);
  options.drain_grace = flags.drain_grace;
  RunnerLoop loop(services, options);
  {
    std::lock_guard lock(running_mutex);
    running = &loop;
  }
  LogInfo("started", {{"name", flags.name},
                      {"coordinator", flags.coordinator},
                      {"guidance_documents", guidance->size()}});
  PrintReadyLine({kProgram, "", (*http)->address()});

  std::thread drainer([&drain, &loop] {
    drain.Wait();
    LogInfo("draining");
    loop.Drain();
  });
  loop.Run();
  drain.Set();
  drainer.join();
  {
    std::lock_guard lock(running_mutex);
    running = nullptr;
  }
  LogInfo("stopped");
  return 0;
}

}  // namespace
}  // namespace kmosaic

int main(int argc, char** argv) {
  kmosaic::RunnerOptions flags;
  kmosaic::Options options(kmosaic::kProgram,
                           "Leases tasks from the coordinator and holds their conversations.");
  options.Add("coordinator", &flags.coordinator, "gRPC target of the coordinator");
  options.Add("http-listen", &flags.http_listen, "HOST:PORT of /metrics and /healthz; port 0: any");
  options.Add("name", &flags.name, "name of this runner, unique in the cluster; empty: random");
  options.Add("max-conversations", &flags.max_conversations, "conversations held at once");
  options.Add("guidance-dir", &flags.guidance_dir,
              "folder of guidance documents; empty: the ones that came with this program");
  options.Add("log-level", &flags.log_level, "debug, info, warning or error");
  options.Add("api-key-dir", &flags.api_key_dir,
              "folder with a file for each key of LLM endpoints, named as a job's api_key_env; the "
              "environment is looked at next");
  options.Add("llm-proxy", &flags.llm_proxy,
              "URL of the proxy for calls to LLM endpoints; empty: none");
  options.Add("llm-no-proxy", &flags.llm_no_proxy,
              "hosts that are reached without the proxy, separated by commas");
  options.Add("llm-ca-file", &flags.llm_ca_file,
              "PEM file of the certificate authorities that LLM endpoints are checked by; empty: "
              "the system's");
  options.Add("drain-grace", &flags.drain_grace,
              "time for calls in flight when draining; then they are called off");
  options.Add("endpoint-patience", &flags.endpoint_patience,
              "how long a conversation waits for an LLM endpoint that is down before it is put "
              "back into the queue");
  options.Add("worker-patience", &flags.worker_patience,
              "how long an evaluation waits for a working worker before the conversation is put "
              "back into the queue");
  if (auto code = options.Parse(argc, argv)) return *code;
  kmosaic::LogLevel level = kmosaic::LogLevel::kInfo;
  bool valid = kmosaic::ParseLogLevel(flags.log_level, &level);
  kmosaic::StartLog(kmosaic::kProgram, level);
  if (!valid) {
    kmosaic::LogError("--log-level must be debug, info, warning or error",
                      {{"value", flags.log_level}});
    return kmosaic::kExitUsage;
  }
  if (flags.max_conversations < 1 || flags.max_conversations > 100'000) {
    kmosaic::LogError("--max-conversations must be from 1 to 100000",
                      {{"value", flags.max_conversations}});
    return kmosaic::kExitUsage;
  }
  return kmosaic::Run(flags);
}
