#include "cli/jobs/conversation_view.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/output/numbers.h"
#include "cli/output/times.h"
#include "common/base/chat.h"
#include "common/base/views.h"

namespace kmosaic {
namespace {

std::string Heading(const Host& host, const std::string& text) {
  return absl::StrCat("\n", Coloured(host, Colour::kBold, absl::StrCat("── ", text)), "\n");
}

std::string Block(const std::string& text) {
  return absl::StrCat(absl::StripTrailingAsciiWhitespace(text), "\n");
}

void AppendReply(const Host& host, int turn, const v1::ModelReply& reply, std::string& text) {
  for (const v1::ChatMessage& message : reply.added()) {
    absl::StrAppend(&text,
                    Heading(host, absl::StrCat("turn ", turn, ", ", ChatRoleName(message.role()))),
                    Block(message.content()));
  }
  std::string by = reply.model().empty() ? reply.endpoint() : reply.model();
  std::string heading =
      absl::StrCat("turn ", turn, ", assistant (", StageName(reply.stage()), ", ", by, ", ",
                   reply.usage().prompt_tokens(), " + ", reply.usage().completion_tokens(),
                   " tokens", reply.usage().estimated() ? " estimated" : "", ", ",
                   ShortDuration(absl::Seconds(reply.seconds())), ")");
  absl::StrAppend(&text, Heading(host, heading));
  if (!reply.guidance().empty()) {
    absl::StrAppend(&text, "[guidance in context: ", absl::StrJoin(reply.guidance(), ", "), "]\n");
  }
  if (!reply.reasoning().empty()) {
    absl::StrAppend(&text, "[reasoning, ", reply.reasoning().size(), " bytes, not sent back]\n");
  }
  absl::StrAppend(&text, Block(reply.content()));
}

void AppendResult(const Host& host, int turn, const v1::TurnResult& result, std::string& text) {
  if (!result.extraction_error().empty()) {
    absl::StrAppend(&text, Heading(host, absl::StrCat("turn ", turn, ", no code")),
                    result.extraction_error(), "\n");
    return;
  }
  const v1::EvaluationReport& report = result.report();
  bool passed = report.verdict() == v1::VERDICT_PASSED;
  std::string verdict =
      Coloured(host, passed ? Colour::kGreen : Colour::kRed, VerdictName(report.verdict()));
  absl::StrAppend(&text, Heading(host, absl::StrCat("turn ", turn, ", verdict ", verdict)));
  if (!report.reason().empty()) absl::StrAppend(&text, report.reason(), "\n");
  if (!report.compile().log().empty()) absl::StrAppend(&text, Block(report.compile().log()));
  if (report.has_benchmark()) {
    absl::StrAppend(&text, TimesText(report.benchmark()), "\n");
  }
  if (report.has_work()) {
    absl::StrAppend(&text, "counted work ", ShortCount(report.work().cost()), " (",
                    report.work().launches(), " launches, ",
                    ShortBytes(report.work().global_load_bytes()), " loaded, ",
                    ShortBytes(report.work().global_store_bytes()), " stored); no time\n");
  }
  if (result.best()) absl::StrAppend(&text, "This is the best verified version so far.\n");
  if (result.rolled_back()) absl::StrAppend(&text, "Rolled back: the best version stays.\n");
}

}  // namespace

std::string TaskText(const Host& host, const v1::TaskSpec& task) {
  std::vector<std::string> views;
  for (v1::View view : {v1::VIEW_DESCRIPTION, v1::VIEW_REFERENCE, v1::VIEW_SPEC}) {
    if (HasView(task, view)) views.push_back(ViewName(view));
  }
  std::string text = absl::StrCat(
      Coloured(host, Colour::kBold, absl::StrCat(task.id(), "  ", task.title())), "\n  family    ",
      task.family(), task.level() > 0 ? absl::StrCat(", level ", task.level()) : "",
      "\n  dtypes    ", absl::StrJoin(task.dtypes(), ", "), "\n  contract  ",
      ContractName(task.contract()), "\n  views     ", absl::StrJoin(views, ", "), "\n");
  if (!task.source().empty()) absl::StrAppend(&text, "  source    ", task.source(), "\n");
  if (!task.licence().empty()) absl::StrAppend(&text, "  licence   ", task.licence(), "\n");
  if (task.oracle().has_entry())
    absl::StrAppend(&text, "  entry     ", task.oracle().entry().prototype(), "\n");
  if (!task.description().empty())
    absl::StrAppend(&text, Heading(host, "description"), Block(task.description()));
  if (!task.spec().empty()) absl::StrAppend(&text, Heading(host, "spec"), Block(task.spec()));
  if (!task.reference().empty())
    absl::StrAppend(&text, Heading(host, "reference"), Block(task.reference()));
  if (task.oracle().reference() != task.reference()) {
    absl::StrAppend(&text, Heading(host, "oracle"), Block(task.oracle().reference()));
  }
  return text;
}

std::string ItemText(const Host& host, const v1::ItemDetail& detail) {
  const v1::Item& item = detail.item();
  std::string text = absl::StrCat(
      Coloured(host, Colour::kBold,
               absl::StrCat(item.id().job(), " ", item.id().number(), "  ", item.task())),
      "\n  views     ", ViewSetName(item.views()), ", sample ", item.sample(), "\n  state     ",
      ItemStateName(item.state()), ", ", item.attempts(), " attempts (", item.charged_attempts(),
      " charged), ", item.steps(), " steps\n");
  if (item.has_result()) {
    const v1::ItemResult& result = item.result();
    absl::StrAppend(&text, "  result    ",
                    result.verified() ? Coloured(host, Colour::kGreen, "verified")
                                      : Coloured(host, Colour::kRed, "not verified"),
                    ", stopped by ", StopReasonName(result.stop_reason()), ", ", result.turns(),
                    " turns\n");
    if (!result.reason().empty()) absl::StrAppend(&text, "  reason    ", result.reason(), "\n");
    if (result.has_speedup())
      absl::StrAppend(&text, absl::StrFormat("  speedup   %.2fx\n", result.speedup()));
    for (const v1::Step& step : detail.steps()) {
      const v1::EvaluationReport& report = step.result().report();
      if (result.has_best_step() && step.number() == result.best_step() && report.has_benchmark())
        absl::StrAppend(&text, "  times     ", TimesText(report.benchmark()), "\n");
    }
    if (result.has_work_ratio()) {
      absl::StrAppend(
          &text,
          absl::StrFormat("  work      %.2f of the first verified version's (counted, no time)\n",
                          result.work_ratio()));
    }
  }
  if (!item.last_error().empty()) absl::StrAppend(&text, "  error     ", item.last_error(), "\n");
  for (const v1::Attempt& attempt : item.history()) {
    absl::StrAppend(&text, "  attempt ", attempt.number(), " by ", attempt.runner(), ": ",
                    attempt.outcome(), "\n");
  }
  return text;
}

std::string ConversationText(const Host& host, const v1::ItemDetail& detail) {
  std::string text = ItemText(host, detail);
  int turn = 0;
  for (const v1::Step& step : detail.steps()) {
    if (step.has_reply()) AppendReply(host, turn, step.reply(), text);
    if (step.has_result()) AppendResult(host, turn++, step.result(), text);
  }
  if (detail.steps().empty()) absl::StrAppend(&text, "\nNothing was said yet.\n");
  return text;
}

}  // namespace kmosaic
