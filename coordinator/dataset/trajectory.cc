#include "coordinator/dataset/trajectory.h"

#include "coordinator/dataset/columns.h"
#include "coordinator/dataset/flat_message.h"

namespace kmosaic {
namespace {

using Json = nlohmann::ordered_json;

Json TurnColumn(const Record& record, size_t number) {
  const Turn& turn = record.conversation.turns[number];
  const v1::ModelReply& reply = record.steps[turn.reply].reply();
  const v1::TurnResult& result = turn.result.has_value() ? record.steps[*turn.result].result()
                                                         : v1::TurnResult::default_instance();
  const v1::EvaluationReport& report = result.report();
  Json column;
  column["turn"] = number;
  column["message"] = If(turn.message.has_value(), turn.message.value_or(0));
  column["context"] = turn.context;
  column["left_out"] =
      turn.message.has_value() ? Json(nullptr) : Json(ToValidUtf8(FlatReply(reply, "").content()));
  column["stage"] = StageName(reply.stage());
  column["verdict"] = If(result.has_report(), VerdictName(report.verdict()));
  column["reason"] = TextColumn(report.reason());
  column["extraction_error"] = TextColumn(result.extraction_error());
  column["solution_digest"] = TextColumn(result.solution_digest());
  column["best"] = record.best_turn == number;
  column["rolled_back"] = result.rolled_back();
  column["median_us"] = If(report.has_benchmark(), report.benchmark().median_us());
  column["speedup"] = If(report.benchmark().has_speedup(), report.benchmark().speedup());
  column["work_cost"] = If(report.has_work(), report.work().cost());
  column["endpoint"] = TextColumn(reply.endpoint());
  column["model"] = TextColumn(reply.model());
  column["temperature"] = NumberColumn(reply.temperature());
  column["max_tokens"] = reply.max_tokens();
  column["finish_reason"] = TextColumn(reply.finish_reason());
  column["guidance"] = ListColumn(reply.guidance());
  column["reasoning"] = TextColumn(reply.reasoning());
  column["prompt_tokens"] = reply.usage().prompt_tokens();
  column["completion_tokens"] = reply.usage().completion_tokens();
  column["reasoning_tokens"] = reply.usage().reasoning_tokens();
  column["tokens_estimated"] = reply.usage().estimated();
  column["cost_usd"] = NumberColumn(reply.usage().cost_usd());
  column["seconds"] = NumberColumn(reply.seconds());
  return column;
}

}  // namespace

Json TrajectoryRow(const Record& record) {
  Json row = CommonColumns(record, "trajectory", record.conversation.messages);
  Json turns = Json::array();
  for (size_t i = 0; i < record.conversation.turns.size(); ++i) {
    turns.push_back(TurnColumn(record, i));
  }
  row["turns"] = std::move(turns);
  return row;
}

}  // namespace kmosaic
