// Streams candidates to ScoreService and takes the verdicts.
#ifndef KMOSAIC_CLI_SCORE_SCORE_CLIENT_H_
#define KMOSAIC_CLI_SCORE_SCORE_CLIENT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "cli/program/connection.h"
#include "cli/program/host.h"
#include "kernelmosaic/v1/score.grpc.pb.h"

namespace kmosaic {

// `host` must outlive it. One thread calls it; it has two of its own while it runs.
class ScoreClient {
 public:
  struct Options {
    // Most candidates sent and not answered.
    size_t window = 64;
    // How long a lost connection is tried again.
    absl::Duration patience = absl::Minutes(2);
  };

  // All are called on the thread that called Run.
  struct Callbacks {
    // The next candidate, numbered from 0 in the order of these calls; nothing at the end.
    std::function<std::optional<kernelmosaic::v1::ScoreRequest>()> next;
    std::function<void(uint64_t number, const kernelmosaic::v1::EvaluationReport& report)>
        on_report;
    // At least every 200 ms.
    std::function<void()> on_idle;
  };

  ScoreClient(const Host& host, Connection connection, Options options);

  // Returns when every candidate is answered. Each is answered once, also when the
  // connection was lost in between and what was not answered was sent again. CANCELLED on
  // Ctrl-C; other statuses as the service gave them.
  absl::Status Run(const Callbacks& callbacks);

 private:
  // One stream: until everything is answered (OK) or it ends.
  absl::Status RunOnce(const Callbacks& callbacks, bool& progressed);

  const Host& host_;
  const Connection connection_;
  const Options options_;
  std::unique_ptr<kernelmosaic::v1::ScoreService::Stub> stub_;
  // By number.
  std::map<uint64_t, kernelmosaic::v1::ScoreRequest> unanswered_;
  uint64_t taken_ = 0;
  bool exhausted_ = false;
};

}  // namespace kmosaic

#endif  // KMOSAIC_CLI_SCORE_SCORE_CLIENT_H_
