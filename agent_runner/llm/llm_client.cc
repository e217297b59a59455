#include "agent_runner/llm/llm_client.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/digest.h"
#include "common/rpc/channel.h"

namespace kmosaic {
namespace {

// A server that names a longer time is asked again after this.
constexpr absl::Duration kLongestHold = absl::Hours(1);

bool MayHaveCost(LlmError::Kind kind) {
  return kind == LlmError::Kind::kTruncatedStream || kind == LlmError::Kind::kBadReply ||
         kind == LlmError::Kind::kTimeout;
}

// Whether another endpoint may well give a reply where this one refuses for good.
bool IsOfEndpoint(LlmError::Kind kind) {
  return kind == LlmError::Kind::kAuth || kind == LlmError::Kind::kBadRequest;
}

// The first that is open, else the one that opens first.
const LlmRoute& NextOpen(const std::vector<const LlmRoute*>& order) {
  std::vector<absl::Duration> waits;
  for (const LlmRoute* route : order) waits.push_back(route->gate->OpensIn());
  return *order[static_cast<size_t>(std::min_element(waits.begin(), waits.end()) - waits.begin())];
}

// In (0, 1), the same for the same text.
double UnitHash(const std::string& text) {
  uint64_t bits = std::stoull(Sha256Hex(text).substr(0, 13), nullptr, 16);  // 52 bits
  return (static_cast<double>(bits) + 0.5) / static_cast<double>(uint64_t{1} << 52);
}

}  // namespace

std::vector<size_t> RouteOrder(const std::vector<LlmRoute>& routes, const LlmRequest& request) {
  std::string conversation =
      absl::StrCat(request.task, "\n", ViewSetName(request.views), "\n", request.sample, "\n");
  // Weighted rendezvous hashing: the smallest of draws from exponential distributions.
  std::vector<std::pair<double, size_t>> draws;
  for (size_t i = 0; i < routes.size(); ++i) {
    double unit = UnitHash(conversation + routes[i].name);
    draws.emplace_back(-std::log(unit) / std::max<uint32_t>(routes[i].weight, 1), i);
  }
  std::sort(draws.begin(), draws.end());
  std::vector<size_t> order;
  for (const auto& [draw, position] : draws) order.push_back(position);
  return order;
}

LlmClient::LlmClient(std::vector<LlmRoute> routes, const Clock& clock, const Options& options)
    : routes_(std::move(routes)), clock_(clock), options_(options) {}

LlmResult LlmClient::Complete(const LlmRequest& request, CancelToken& cancel,
                              CancelToken& no_new_tries) {
  std::vector<const LlmRoute*> order;
  for (size_t position : RouteOrder(routes_, request)) order.push_back(&routes_[position]);
  absl::Duration give_up = clock_.Steady() + options_.patience;
  bool failed_before = false;
  int costly_tries = 0;
  std::optional<LlmError> refusal;
  LlmError held_back{LlmError::Kind::kRateLimited,
                     "the endpoint has asked for more patience than a conversation keeps"};
  for (int attempt = 0;; ++attempt) {
    const LlmRoute& route = NextOpen(order);
    absl::Duration wait;
    switch (route.gate->Enter(no_new_tries, give_up, &wait)) {
      case EndpointGate::Entry::kCancelled:
        return LlmError{LlmError::Kind::kCancelled, "called off while waiting for the endpoint"};
      case EndpointGate::Entry::kHeldBack:
        held_back.retry_after = wait;
        return held_back;
      case EndpointGate::Entry::kEntered:
        break;
    }
    LlmResult result = route.endpoint->Complete(request, cancel);
    auto* reply = std::get_if<v1::ModelReply>(&result);
    route.gate->Leave(
        reply == nullptr ? 0 : reply->usage().prompt_tokens() + reply->usage().completion_tokens());
    if (reply != nullptr) {
      if (route.observer) route.observer("ok", reply);
      return result;
    }
    LlmError& error = std::get<LlmError>(result);
    if (route.observer) route.observer(LlmErrorName(error.kind), nullptr);
    if (IsOfEndpoint(error.kind)) {
      if (!refusal) refusal = error;
      std::erase(order, &route);
      if (order.empty()) return *refusal;
      continue;
    }
    if (!IsRetryable(error.kind)) return result;

    absl::Duration now = clock_.Steady();
    if (!std::exchange(failed_before, true)) give_up = now + options_.patience;
    if (error.retry_after > absl::ZeroDuration()) route.gate->HoldBack(error.retry_after);
    absl::Duration delay = std::max(std::min(error.retry_after, kLongestHold),
                                    Backoff(attempt, options_.backoff_base, options_.backoff_cap));
    if (MayHaveCost(error.kind)) ++costly_tries;
    if (costly_tries >= options_.tries_that_may_cost) {
      error.retry_after = std::max(delay, options_.backoff_cap);
      return result;
    }
    if (order.size() > 1) {
      // Others see that it fails and pass it by as well.
      route.gate->HoldBack(delay);
      held_back = error;
      continue;
    }
    if (now + delay > give_up) {
      error.retry_after = std::max(delay, options_.backoff_cap);
      return result;
    }
    if (no_new_tries.WaitFor(delay)) {
      return LlmError{LlmError::Kind::kCancelled, "called off between two tries"};
    }
  }
}

}  // namespace kmosaic
