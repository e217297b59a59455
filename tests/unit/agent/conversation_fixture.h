// A small job and task, and steps to talk about.
#ifndef KMOSAIC_TESTS_UNIT_AGENT_CONVERSATION_FIXTURE_H_
#define KMOSAIC_TESTS_UNIT_AGENT_CONVERSATION_FIXTURE_H_

#include <stdexcept>
#include <string>
#include <variant>

#include "agent_runner/agent/prompt.h"
#include "agent_runner/agent/state_machine.h"

namespace kmosaic {

inline const absl::Time kStart = absl::FromUnixSeconds(1'700'000'000);

// A conversation that is played by hand: each step is one minute after the last.
class ConversationFixture {
 public:
  ConversationFixture() {
    job.set_kind("generate");
    job.mutable_endpoint()->set_name("scripted");
    job.mutable_sampling()->set_temperature(0.5);
    job.mutable_sampling()->set_max_tokens(2048);
    job.mutable_budget()->set_turns(10);
    job.mutable_budget()->set_optimise_turns(3);
    job.mutable_evaluation()->set_device(v1::DEVICE_KIND_EMULATED);
    task.set_id("double");
    task.set_title("Twice each element");
    task.set_family("elementwise");
    task.add_dtypes("float32");
    task.set_contract(v1::CONTRACT_MODELNEW);
    task.set_description("Multiply each element by two.\n");
    task.set_reference("class Model: ...  # REFERENCE\n");
    task.set_spec("$y_i = 2 x_i$\n");
    task.mutable_oracle()->set_reference("class Model: ...  # ORACLE\n");
    views.add_views(v1::VIEW_DESCRIPTION);
  }

  ConversationSpec spec() const { return {&job, &task, &views, 0, &guidance}; }

  Action Next(const ContextHints& hints = {}) const {
    auto action = NextAction(spec(), steps, now, hints, standing);
    if (!action.ok()) throw std::runtime_error(std::string(action.status().message()));
    return *action;
  }

  // Plays the model: `content` answers the call that is next.
  void Reply(const std::string& content, const std::string& finish_reason = "stop") {
    Action action = Next();
    const auto& call = std::get<CallModel>(action);
    v1::Step& step = NewStep();
    v1::ModelReply& reply = *step.mutable_reply();
    reply.set_stage(call.stage);
    for (const auto& message : call.added) *reply.add_added() = message;
    for (const auto& id : call.guidance) reply.add_guidance(id);
    for (const auto& id : call.guidance_withheld) reply.add_guidance_withheld(id);
    for (uint32_t turn : call.left_out) reply.add_left_out(turn);
    reply.set_content(content);
    reply.set_finish_reason(finish_reason);
    reply.set_max_tokens(call.sampling.max_tokens());
    reply.set_seconds(30);
    reply.mutable_usage()->set_requests(1);
    reply.mutable_usage()->set_prompt_tokens(100);
    reply.mutable_usage()->set_completion_tokens(50);
    reply.mutable_usage()->set_cost_usd(0.01);
  }

  // The same with a tool call.
  void Call(const std::string& name, const std::string& arguments,
            const std::string& finish_reason = "tool_calls") {
    Reply("", finish_reason);
    v1::ToolCall& call = *steps.back().mutable_reply()->add_tool_calls();
    call.set_id("theirs");
    call.set_name(name);
    call.set_arguments(arguments);
  }

  // Plays the worker.
  void Judge(const v1::EvaluationReport& report) {
    auto result = MakeResult(spec(), steps, report);
    if (!result.ok()) throw std::runtime_error(std::string(result.status().message()));
    *NewStep().mutable_result() = *result;
  }

  // Records what needs no evaluation.
  void RecordNext() {
    Action action = Next();
    *NewStep().mutable_result() = std::get<RecordResult>(action).result;
  }

  void ReplyAndJudge(const std::string& body, const v1::EvaluationReport& report) {
    Reply(Code(body));
    Judge(report);
  }

  std::string LastUserMessage() const {
    Action action = Next();
    return std::get<CallModel>(action).messages.back().content();
  }

  v1::ItemResult Ended() const { return std::get<Stop>(Next()).result; }
  bool Ends() const { return std::holds_alternative<Stop>(Next()); }

  // Files with different bodies are different versions.
  static std::string Source(const std::string& body) {
    return "class ModelNew(nn.Module):\n    text = '# " + body + "'\n";
  }

  static std::string Code(const std::string& body) {
    return "Here it is.\n\n```python\n" + Source(body) + "```\n";
  }

  static v1::EvaluationReport Failed(v1::Verdict verdict, const std::string& reason = "reason") {
    v1::EvaluationReport report;
    report.set_verdict(verdict);
    report.set_reason(reason);
    report.mutable_device()->set_kind(v1::DEVICE_KIND_EMULATED);
    return report;
  }

  static v1::EvaluationReport PassedWithWork(double cost) {
    v1::EvaluationReport report = Failed(v1::VERDICT_PASSED, "all checks passed");
    report.mutable_work()->set_launches(1);
    report.mutable_work()->set_cost(cost);
    return report;
  }

  static v1::EvaluationReport PassedWithTime(double median_us, double eager_us, double floor_us) {
    v1::EvaluationReport report = Failed(v1::VERDICT_PASSED, "all checks passed");
    report.mutable_device()->set_kind(v1::DEVICE_KIND_CUDA);
    v1::BenchmarkReport& times = *report.mutable_benchmark();
    times.set_median_us(median_us);
    times.set_eager_us(eager_us);
    times.set_speedup(eager_us / median_us);
    times.set_floor_us(floor_us);
    return report;
  }

  v1::JobSpec job;
  v1::TaskSpec task;
  v1::ViewSet views;
  GuidanceLibrary guidance;
  Steps steps;
  absl::Time now = kStart;
  JobStanding standing;

 private:
  v1::Step& NewStep() {
    now += absl::Minutes(1);
    v1::Step& step = steps.emplace_back();
    step.set_number(static_cast<uint32_t>(steps.size() - 1));
    step.mutable_at()->set_seconds(absl::ToUnixSeconds(now));
    return step;
  }
};

}  // namespace kmosaic

#endif  // KMOSAIC_TESTS_UNIT_AGENT_CONVERSATION_FIXTURE_H_
