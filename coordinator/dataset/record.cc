#include "coordinator/dataset/record.h"

#include <google/protobuf/timestamp.pb.h>

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "common/base/chat.h"
#include "common/base/text.h"
#include "common/base/version.h"
#include "coordinator/dataset/columns.h"
#include "coordinator/dataset/split.h"

namespace kmosaic {
namespace {

using Json = nlohmann::ordered_json;

Json Time(const google::protobuf::Timestamp& time, bool known) {
  if (!known) return nullptr;
  absl::Time at = absl::FromUnixSeconds(time.seconds()) + absl::Nanoseconds(time.nanos());
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", at, absl::UTCTimeZone());
}

Json MessagesColumn(const std::vector<v1::ChatMessage>& messages) {
  Json list = Json::array();
  for (const v1::ChatMessage& message : messages) {
    list.push_back(
        {{"role", ChatRoleName(message.role())}, {"content", ToValidUtf8(message.content())}});
  }
  return list;
}

Json TaskColumn(const v1::TaskSpec& task) {
  return {{"id", ToValidUtf8(task.id())},        {"title", TextColumn(task.title())},
          {"source", TextColumn(task.source())}, {"licence", TextColumn(task.licence())},
          {"family", TextColumn(task.family())}, {"level", task.level()},
          {"dtypes", ListColumn(task.dtypes())}, {"contract", ContractName(task.contract())}};
}

Json SolutionColumn(const Record& record) {
  Json column = {{"contract", nullptr}, {"source", nullptr}, {"digest", nullptr}};
  if (!record.best_turn.has_value()) return column;
  const v1::TurnResult& best = *record.Deciding();
  column["contract"] = ContractName(best.solution().contract());
  column["source"] = ToValidUtf8(best.solution().source());
  column["digest"] = TextColumn(best.solution_digest());
  return column;
}

Json DeviceColumn(const v1::EvaluationReport& report, bool known) {
  const v1::DeviceInfo& device = report.device();
  return {{"kind", If(known, DeviceName(device.kind()))},
          {"name", TextColumn(device.name())},
          {"arch", TextColumn(device.arch())},
          {"driver", TextColumn(device.driver())},
          {"toolchain", TextColumn(device.toolchain())},
          {"torch", TextColumn(device.torch())},
          {"worker", TextColumn(device.worker())}};
}

Json CompilationColumn(const v1::EvaluationReport& report) {
  const v1::CompileReport& compile = report.compile();
  bool known = report.has_compile();
  return {{"seconds", If(known, compile.seconds())},
          {"abi", TextColumn(compile.abi())},
          {"cached", If(known, compile.cached())},
          {"artifact", TextColumn(compile.artifact_digest())}};
}

// Secret seeds are counted, never named: a model may be trained on this.
Json VerificationColumn(const v1::EvaluationReport& report) {
  const v1::VerifyReport& verify = report.verify();
  bool known = report.has_verify();
  // In a fixed order, which the map does not have.
  std::map<std::string, int64_t> sorted(verify.shapes().begin(), verify.shapes().end());
  Json shapes = Json::array();
  for (const auto& [name, value] : sorted) {
    shapes.push_back({{"name", ToValidUtf8(name)}, {"value", value}});
  }
  return {{"seconds", If(known, verify.seconds())},
          {"checks", ListColumn(verify.checks())},
          {"public_seeds", If(known, verify.public_seeds())},
          {"secret_seeds", If(known, verify.secret_seeds())},
          {"worst_error_ratio", If(known, verify.worst_error_ratio())},
          {"scale", If(known, verify.scale())},
          {"shapes", std::move(shapes)},
          {"notes", ListColumn(verify.notes())}};
}

Json TimingColumn(const v1::EvaluationReport& report) {
  const v1::BenchmarkReport& timing = report.benchmark();
  bool known = report.has_benchmark();
  return {{"median_us", If(known, timing.median_us())},
          {"p10_us", If(known, timing.p10_us())},
          {"p90_us", If(known, timing.p90_us())},
          {"samples", If(known, timing.samples())},
          {"eager_us", If(timing.has_eager_us(), timing.eager_us())},
          {"compile_us", If(timing.has_compile_us(), timing.compile_us())},
          {"speedup", If(timing.has_speedup(), timing.speedup())},
          {"floor_us", If(timing.has_floor_us(), timing.floor_us())},
          {"tf32", If(known, timing.tf32())}};
}

Json WorkColumn(const Record& record, const v1::EvaluationReport& report) {
  const v1::WorkReport& work = report.work();
  bool known = report.has_work();
  auto count = [known](uint64_t value) { return If(known, value); };
  const v1::ItemResult& result = record.item.result();
  return {{"launches", count(work.launches())},
          {"threads", count(work.threads())},
          {"global_load_bytes", count(work.global_load_bytes())},
          {"global_store_bytes", count(work.global_store_bytes())},
          {"shared_bytes", count(work.shared_bytes())},
          {"barriers", count(work.barriers())},
          {"warp_operations", count(work.warp_operations())},
          {"atomics", count(work.atomics())},
          {"cost", If(known, work.cost())},
          {"ratio", If(result.has_work_ratio(), result.work_ratio())}};
}

Json UsageColumn(const Record& record) {
  // Summed over the recorded replies: those are the ones in this record.
  v1::Usage sum;
  for (const Turn& turn : record.conversation.turns) {
    const v1::Usage& usage = record.steps[turn.reply].reply().usage();
    sum.set_requests(sum.requests() + usage.requests());
    sum.set_prompt_tokens(sum.prompt_tokens() + usage.prompt_tokens());
    sum.set_completion_tokens(sum.completion_tokens() + usage.completion_tokens());
    sum.set_reasoning_tokens(sum.reasoning_tokens() + usage.reasoning_tokens());
    sum.set_estimated(sum.estimated() || usage.estimated());
    sum.set_cost_usd(sum.cost_usd() + usage.cost_usd());
  }
  return {{"requests", sum.requests()},
          {"prompt_tokens", sum.prompt_tokens()},
          {"completion_tokens", sum.completion_tokens()},
          {"reasoning_tokens", sum.reasoning_tokens()},
          {"estimated", sum.estimated()},
          {"cost_usd", NumberColumn(sum.cost_usd())}};
}

Json ProvenanceColumn(const Record& record) {
  const v1::Sampling& sampling = record.spec.sampling();
  const v1::ModelReply& first = record.steps[record.conversation.turns.front().reply].reply();
  const v1::Step& last = record.steps.back();
  std::vector<std::string> guidance;
  for (const Turn& turn : record.conversation.turns) {
    for (const std::string& document : record.steps[turn.reply].reply().guidance()) {
      if (std::find(guidance.begin(), guidance.end(), document) == guidance.end()) {
        guidance.push_back(document);
      }
    }
  }
  return {{"job", record.job},
          {"job_name", TextColumn(record.spec.name())},
          {"item", record.item.id().number()},
          {"attempts", record.item.attempts()},
          {"endpoint", TextColumn(first.endpoint())},
          {"model", TextColumn(first.model())},
          {"temperature", NumberColumn(sampling.temperature())},
          {"top_p", If(sampling.has_top_p(), sampling.top_p())},
          {"max_tokens", sampling.max_tokens()},
          {"seed", If(sampling.has_seed(), sampling.seed())},
          {"guidance", ListColumn(guidance)},
          {"started", Time(record.steps.front().at(), record.steps.front().has_at())},
          {"ended", Time(last.at(), last.has_at())},
          {"kernelmosaic", kVersion}};
}

// Position of the turn whose result is step `number`; nothing when there is none.
std::optional<size_t> TurnOfResult(const Conversation& conversation, uint32_t number) {
  for (size_t i = 0; i < conversation.turns.size(); ++i) {
    if (conversation.turns[i].result == number) return i;
  }
  return std::nullopt;
}

}  // namespace

const v1::TurnResult* Record::Deciding() const {
  if (best_turn.has_value()) return &steps[*conversation.turns[*best_turn].result].result();
  for (auto turn = conversation.turns.rbegin(); turn != conversation.turns.rend(); ++turn) {
    if (turn->result.has_value() && steps[*turn->result].result().has_report()) {
      return &steps[*turn->result].result();
    }
  }
  return nullptr;
}

bool Record::Emulated() const {
  const v1::TurnResult* deciding = Deciding();
  v1::DeviceKind kind =
      deciding == nullptr ? v1::DEVICE_KIND_UNSPECIFIED : deciding->report().device().kind();
  if (kind == v1::DEVICE_KIND_UNSPECIFIED) kind = spec.evaluation().device();
  return kind == v1::DEVICE_KIND_EMULATED;
}

absl::StatusOr<Record> MakeRecord(std::string job, v1::JobSpec spec, v1::Item item,
                                  v1::TaskSpec task, std::vector<v1::Step> steps) {
  auto conversation = ReadConversation(steps);
  if (!conversation.ok()) return conversation.status();
  Record record{std::move(job),  std::move(spec),  std::move(item),
                std::move(task), std::move(steps), *std::move(conversation)};
  if (!record.item.result().verified()) return record;
  if (record.item.result().has_best_step()) {
    record.best_turn = TurnOfResult(record.conversation, record.item.result().best_step());
  }
  if (!record.best_turn.has_value()) {
    return absl::InvalidArgumentError("the result names no step with a solution");
  }
  const v1::TurnResult& best = *record.Deciding();
  if (best.report().verdict() != v1::VERDICT_PASSED || best.solution().source().empty()) {
    return absl::InvalidArgumentError(absl::StrCat("the result says verified, but its step says ",
                                                   VerdictName(best.report().verdict())));
  }
  return record;
}

Json CommonColumns(const Record& record, std::string_view format,
                   const std::vector<v1::ChatMessage>& messages) {
  const v1::TurnResult* deciding = record.Deciding();
  const v1::EvaluationReport& report =
      deciding == nullptr ? v1::EvaluationReport::default_instance() : deciding->report();
  const v1::ItemResult& result = record.item.result();
  Json views = Json::array();
  for (int view : record.item.views().views()) {
    views.push_back(ViewName(static_cast<v1::View>(view)));
  }
  Json row;
  row["schema"] = kDatasetSchema;
  row["format"] = format;
  row["id"] = absl::StrFormat("%s/%06d", record.job, record.item.id().number());
  row["split"] = SplitOfTask(record.task.id());
  row["task"] = TaskColumn(record.task);
  row["views"] = std::move(views);
  row["sample"] = record.item.sample();
  row["messages"] = MessagesColumn(messages);
  row["verified"] = record.best_turn.has_value();
  row["verdict"] = deciding == nullptr ? Json(nullptr) : Json(VerdictName(report.verdict()));
  row["reason"] = TextColumn(report.reason());
  row["emulated"] = record.Emulated();
  row["unsandboxed"] = report.unsandboxed();
  row["stop_reason"] = StopReasonName(result.stop_reason());
  row["solution"] = SolutionColumn(record);
  row["device"] = DeviceColumn(report, deciding != nullptr);
  row["compilation"] = CompilationColumn(report);
  row["verification"] = VerificationColumn(report);
  row["timing"] = TimingColumn(report);
  row["work"] = WorkColumn(record, report);
  row["labels"] = ListColumn(report.labels());
  row["usage"] = UsageColumn(record);
  row["provenance"] = ProvenanceColumn(record);
  return row;
}

std::string ToLine(const Json& row) {
  return row.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace kmosaic
