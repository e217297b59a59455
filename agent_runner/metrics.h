// The agent runner's metrics: names and help texts in one place.
#ifndef KMOSAIC_AGENT_RUNNER_METRICS_H_
#define KMOSAIC_AGENT_RUNNER_METRICS_H_

#include "common/metrics/metrics.h"

namespace kmosaic {

// References into `metrics`, which must outlive it. Thread-safe.
struct RunnerMetrics {
  explicit RunnerMetrics(Metrics& metrics)
      : llm_requests(metrics.Counter("kmosaic_llm_requests_total",
                                     "Calls to LLM endpoints, by endpoint, model and outcome.")),
        llm_seconds(metrics.Histogram("kmosaic_llm_request_seconds",
                                      "Time of a call that gave a reply, by endpoint and model.")),
        llm_tokens(metrics.Counter("kmosaic_llm_tokens_total",
                                   "Tokens of replies, by endpoint, model and kind "
                                   "(prompt, cached_prompt: part of prompt, completion, "
                                   "reasoning: part of completion).")),
        llm_cost_usd(
            metrics.Counter("kmosaic_llm_cost_usd_total", "Money spent, by endpoint and model.")),
        conversations(metrics.Gauge("kmosaic_conversations", "Conversations held now.").Add({})),
        conversations_ended(metrics.Counter("kmosaic_conversations_ended_total",
                                            "Conversations that ended here, by outcome: a stop "
                                            "reason, released, handed_back or lost.")),
        turns(metrics.Counter("kmosaic_turns_total", "Replies recorded, by stage.")),
        verdicts(metrics.Counter("kmosaic_turn_verdicts_total",
                                 "Versions judged, by stage and verdict.")),
        stale_tokens(metrics.Counter("kmosaic_stale_tokens_total",
                                     "Calls that the coordinator refused since another runner "
                                     "holds the item, by verb.")),
        calls_after_death(
            metrics
                .Counter("kmosaic_llm_calls_after_death_total",
                         "First calls of conversations taken over from a holder that died: at "
                         "most one per death was in flight and is sent a second time.")
                .Add({})),
        evaluation_retries(metrics
                               .Counter("kmosaic_evaluation_retries_total",
                                        "Evaluations tried again since a machine failed.")
                               .Add({})),
        evaluations_shared(metrics
                               .Counter("kmosaic_evaluations_shared_total",
                                        "Versions that got the report of an earlier or a running "
                                        "evaluation of the same version.")
                               .Add({})),
        sync_failures(metrics
                          .Counter("kmosaic_runner_sync_failures_total",
                                   "Syncs with the coordinator that failed.")
                          .Add({})) {}

  prometheus::Family<prometheus::Counter>& llm_requests;
  prometheus::Family<prometheus::Histogram>& llm_seconds;
  prometheus::Family<prometheus::Counter>& llm_tokens;
  prometheus::Family<prometheus::Counter>& llm_cost_usd;
  prometheus::Gauge& conversations;
  prometheus::Family<prometheus::Counter>& conversations_ended;
  prometheus::Family<prometheus::Counter>& turns;
  prometheus::Family<prometheus::Counter>& verdicts;
  prometheus::Family<prometheus::Counter>& stale_tokens;
  prometheus::Counter& calls_after_death;
  prometheus::Counter& evaluation_retries;
  prometheus::Counter& evaluations_shared;
  prometheus::Counter& sync_failures;
};

}  // namespace kmosaic

#endif  // KMOSAIC_AGENT_RUNNER_METRICS_H_
