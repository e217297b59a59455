#include "tests/unit/dataset/sample_record.h"

#include "common/base/digest.h"

namespace kmosaic {
namespace {

v1::ChatMessage Message(v1::ChatRole role, const std::string& content) {
  v1::ChatMessage message;
  message.set_role(role);
  message.set_content(content);
  return message;
}

constexpr int64_t kStart = 1'700'000'000;

}  // namespace

void Sample::AddTurn(v1::Stage stage, const std::string& question, const std::string& source,
                     v1::Verdict verdict) {
  v1::Step step;
  step.set_number(static_cast<uint32_t>(steps.size()));
  step.mutable_at()->set_seconds(kStart + static_cast<int64_t>(steps.size()) * 10);
  step.set_runner("runner-1");
  step.set_attempt(1);
  v1::ModelReply* reply = step.mutable_reply();
  reply->set_stage(stage);
  if (steps.empty()) {
    *reply->add_added() = Message(v1::CHAT_ROLE_SYSTEM, "You write CUDA kernels.");
  }
  *reply->add_added() = Message(v1::CHAT_ROLE_USER, question);
  reply->set_content("Here it is.\n```python\n" + source + "```\n");
  reply->set_finish_reason("stop");
  reply->set_endpoint("replay");
  reply->set_model("recorded");
  reply->set_temperature(0.5);
  reply->set_max_tokens(4096);
  reply->add_guidance("reductions@1");
  reply->set_seconds(1.5);
  reply->mutable_usage()->set_requests(1);
  reply->mutable_usage()->set_prompt_tokens(100);
  reply->mutable_usage()->set_completion_tokens(40);
  reply->mutable_usage()->set_cost_usd(0.25);
  steps.push_back(step);
  if (verdict == v1::VERDICT_UNSPECIFIED) return;

  v1::Step result;
  result.set_number(static_cast<uint32_t>(steps.size()));
  result.mutable_at()->set_seconds(kStart + static_cast<int64_t>(steps.size()) * 10);
  result.set_runner("runner-1");
  v1::TurnResult* turn = result.mutable_result();
  turn->mutable_solution()->set_contract(task.contract());
  turn->mutable_solution()->set_source(source);
  turn->set_solution_digest(Sha256Hex(source));
  turn->mutable_report()->set_verdict(verdict);
  *turn->mutable_report()->mutable_device() = v1::DeviceInfo();
  turn->mutable_report()->mutable_device()->set_kind(spec.evaluation().device());
  steps.push_back(result);
}

v1::EvaluationReport& Sample::report() { return *steps.back().mutable_result()->mutable_report(); }

absl::StatusOr<Record> Sample::Make() const {
  return MakeRecord("job-abc", spec, item, task, steps);
}

Sample EmulatedSample() {
  Sample sample;
  sample.spec.set_name("demo");
  sample.spec.mutable_evaluation()->set_device(v1::DEVICE_KIND_EMULATED);
  sample.spec.mutable_sampling()->set_temperature(0.5);
  sample.spec.mutable_sampling()->set_max_tokens(4096);
  sample.spec.mutable_sampling()->set_seed(7);
  sample.task.set_id("row-softmax");
  sample.task.set_title("Softmax over the rows of a matrix");
  sample.task.set_source("KernelMosaic examples");
  sample.task.set_licence("Apache-2.0");
  sample.task.set_family("softmax");
  sample.task.set_level(1);
  sample.task.add_dtypes("float32");
  sample.task.set_contract(v1::CONTRACT_MODELNEW);

  sample.AddTurn(v1::STAGE_IMPLEMENT, "Write softmax.", "broken\n", v1::VERDICT_COMPILE_ERROR);
  sample.report().set_reason("expected ';' in line 3");
  sample.AddTurn(v1::STAGE_REPAIR, "It does not compile.", "wrong\n", v1::VERDICT_WRONG_OUTPUT);
  sample.report().set_reason("output 0 differs");
  sample.AddTurn(v1::STAGE_REPAIR, "It is wrong.", "right\n", v1::VERDICT_PASSED);
  sample.report().mutable_work()->set_cost(200);
  sample.AddTurn(v1::STAGE_OPTIMISE, "Make it faster.", "better\n", v1::VERDICT_PASSED);
  v1::EvaluationReport& best = sample.report();
  sample.steps.back().mutable_result()->set_best(true);
  uint32_t best_step = sample.steps.back().number();
  best.set_reason("passed");
  best.mutable_device()->set_name("emulated x86-64");
  best.mutable_device()->set_toolchain("g++ 12.2");
  best.mutable_device()->set_torch("2.11.0");
  best.mutable_device()->set_worker("worker-1");
  best.mutable_compile()->set_seconds(1.25);
  best.mutable_compile()->set_abi("emulated");
  best.mutable_compile()->set_artifact_digest("aa");
  best.mutable_verify()->set_seconds(0.5);
  best.mutable_verify()->add_checks("shapes");
  best.mutable_verify()->add_checks("values");
  best.mutable_verify()->set_public_seeds(2);
  best.mutable_verify()->set_secret_seeds(5);
  best.mutable_verify()->add_seeds(123456789);
  best.mutable_verify()->set_worst_error_ratio(0.25);
  best.mutable_verify()->set_scale(0.125);
  (*best.mutable_verify()->mutable_shapes())["rows"] = 24;
  (*best.mutable_verify()->mutable_shapes())["cols"] = 333;
  best.mutable_work()->set_launches(1);
  best.mutable_work()->set_threads(1024);
  best.mutable_work()->set_global_load_bytes(4096);
  best.mutable_work()->set_cost(100);
  best.add_labels("uses_shared_memory");
  sample.AddTurn(v1::STAGE_OPTIMISE, "Again.", "slower\n", v1::VERDICT_PASSED);
  sample.report().mutable_work()->set_cost(300);
  sample.steps.back().mutable_result()->set_rolled_back(true);

  sample.item.mutable_id()->set_job("job-abc");
  sample.item.mutable_id()->set_number(12);
  sample.item.set_task("row-softmax");
  sample.item.mutable_views()->add_views(v1::VIEW_DESCRIPTION);
  sample.item.mutable_views()->add_views(v1::VIEW_SPEC);
  sample.item.set_sample(1);
  sample.item.set_state(v1::ITEM_STATE_DONE);
  sample.item.set_attempts(1);
  v1::ItemResult* result = sample.item.mutable_result();
  result->set_verified(true);
  result->set_stop_reason(v1::STOP_REASON_TURN_BUDGET);
  result->set_best_step(best_step);
  result->set_verdict(v1::VERDICT_PASSED);
  result->set_work_ratio(0.5);
  return sample;
}

Sample CudaSample() {
  Sample sample = EmulatedSample();
  sample.steps.clear();
  sample.spec.mutable_evaluation()->set_device(v1::DEVICE_KIND_CUDA);
  sample.task.set_contract(v1::CONTRACT_CUDA);
  sample.AddTurn(v1::STAGE_IMPLEMENT, "Write softmax.", "__global__ void k() {}\n",
                 v1::VERDICT_PASSED);
  v1::EvaluationReport& report = sample.report();
  report.mutable_device()->set_name("NVIDIA H200");
  report.mutable_device()->set_arch("sm_90a");
  report.mutable_device()->set_driver("580.1");
  v1::BenchmarkReport* timing = report.mutable_benchmark();
  timing->set_median_us(50);
  timing->set_p10_us(49);
  timing->set_p90_us(52);
  timing->set_samples(100);
  timing->set_eager_us(100);
  timing->set_speedup(2);
  timing->set_tf32(true);
  sample.item.mutable_result()->set_best_step(1);
  sample.item.mutable_result()->clear_work_ratio();
  return sample;
}

}  // namespace kmosaic
