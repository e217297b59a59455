// Who may call which LLM endpoint now: limits that hold over all runners, divided among
// those that have calls to make.
//
// Concurrency: each runner holds slots for `ttl`; what nobody wants is free for others, the
// rest is shared evenly (max-min). A share that shrinks counts until its runner says that it
// follows, so that together they never have more calls in flight than the limit. With more
// runners than slots they take turns.
// A runner that is silent for a whole `ttl` with calls in flight counts no more.
// Rates: a bucket per endpoint and limit that fills with it and holds `burst` of it. Runners
// are given leave for single calls, those first that had none for longest. A call takes one request
// and, until it has ended and its tokens are known, the mean number of tokens of a call there. So a
// minute sees at most limit * (1 + burst / 60 s) requests, and as many tokens but for the errors of
// the mean.
//
// A pure state machine of process memory: time comes in as an argument (steady). After a
// restart runners keep what they say they have, and nobody gets more until one `ttl` has
// passed.
#ifndef KMOSAIC_COORDINATOR_PLACEMENT_ENDPOINT_SHARES_H_
#define KMOSAIC_COORDINATOR_PLACEMENT_ENDPOINT_SHARES_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/enum_names.h"
#include "kernelmosaic/v1/runner.pb.h"

namespace kmosaic {

// Not thread-safe.
class EndpointShares {
 public:
  struct Options {
    // A runner that has not asked for this long holds nothing any more.
    absl::Duration ttl = absl::Seconds(15);
    // Runners are told to ask this often.
    absl::Duration sync_interval = absl::Seconds(1);
    absl::Duration burst = absl::Seconds(5);
    // Tokens of a call at an endpoint where none has ended yet.
    double tokens_per_call = 4096;
    // How long a runner keeps its only slot before it is another one's turn.
    absl::Duration turn = absl::Seconds(10);
  };

  // Before `settled_at` runners of an earlier process may hold shares.
  EndpointShares(const Options& options, absl::Duration settled_at)
      : options_(options), settled_at_(settled_at) {}

  // A runner's use, and what it may do next. INVALID_ARGUMENT without its name or for an
  // endpoint that comes twice.
  absl::StatusOr<v1::SyncEndpointsResponse> Sync(const v1::SyncEndpointsRequest& request,
                                                 absl::Duration now);

 private:
  // 0: no limit.
  struct Limits {
    uint64_t concurrency = 0;
    uint64_t requests = 0;
    uint64_t tokens = 0;
  };
  // Of one runner at one endpoint.
  struct Part {
    Limits limits;
    uint32_t in_flight = 0;
    uint32_t waiting = 0;
    // Calls that it may have in flight by anything that it was told.
    uint32_t slots = 0;
    uint64_t started = 0;
    uint64_t may_start = 0;
    uint64_t tokens = 0;
    absl::Duration until;
    // When it got its first slot, or lost its last one.
    absl::Duration since;
    // When it was given leave for a call.
    absl::Duration served;

    uint32_t wanted() const { return in_flight + waiting; }
  };
  struct Bucket {
    double level = 0;
    double room = 0;
    absl::Duration filled;
    // Fills it with `per_minute` up to now; nothing is in it without a limit.
    void Fill(uint64_t per_minute, absl::Duration burst, absl::Duration now);
    // Calls of `cost` that may begin.
    uint64_t Calls(double cost) const;
  };
  struct Endpoint {
    std::map<std::string, Part> parts;
    Bucket requests;
    Bucket tokens;
    double tokens_per_call = 0;
  };

  void DropExpired(absl::Duration now);
  static Limits Strictest(const Endpoint& endpoint);
  // Even share of `limit` slots for the part of `runner`.
  uint32_t FairSlots(const Endpoint& endpoint, const std::string& runner, uint64_t limit,
                     absl::Duration now) const;
  void Report(const v1::EndpointUse& use, Endpoint& endpoint, Part& part, bool known,
              absl::Duration now) const;
  uint32_t GiveSlots(const v1::EndpointUse& use, const Endpoint& endpoint,
                     const std::string& runner, uint64_t limit, absl::Duration now) const;
  static uint64_t GiveStarts(Endpoint& endpoint, Part& part, const Limits& limits,
                             absl::Duration now);

  const Options options_;
  const absl::Duration settled_at_;
  std::map<std::string, Endpoint> endpoints_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_COORDINATOR_PLACEMENT_ENDPOINT_SHARES_H_
