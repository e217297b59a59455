#include "coordinator/placement/endpoint_shares.h"

#include <google/protobuf/util/time_util.h>

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"

namespace kmosaic {
namespace {

constexpr uint32_t kAnySlots = std::numeric_limits<uint32_t>::max();
constexpr uint64_t kAnyStarts = std::numeric_limits<uint64_t>::max();
// About so many calls make the mean of their tokens.
constexpr double kMeanOverCalls = 15;

google::protobuf::Duration ToWire(absl::Duration duration) {
  return google::protobuf::util::TimeUtil::MillisecondsToDuration(
      absl::ToInt64Milliseconds(duration));
}

void Tighten(uint64_t& limit, uint64_t by) {
  if (by != 0 && (limit == 0 || by < limit)) limit = by;
}

}  // namespace

void EndpointShares::Bucket::Fill(uint64_t per_minute, absl::Duration burst, absl::Duration now) {
  double per_second = static_cast<double>(per_minute) / 60;
  double gone = absl::ToDoubleSeconds(now - std::exchange(filled, now));
  // A slow limit has room for one call all the same.
  room = std::max(per_second * absl::ToDoubleSeconds(burst), 1.0);
  level = per_minute == 0 ? 0 : std::min(level + per_second * gone, room);
}

uint64_t EndpointShares::Bucket::Calls(double cost) const {
  if (level < std::min(cost, room)) return 0;
  return static_cast<uint64_t>(std::max(level / cost, 1.0));
}

void EndpointShares::DropExpired(absl::Duration now) {
  for (auto& [name, endpoint] : endpoints_) {
    std::erase_if(endpoint.parts, [&](const auto& part) { return part.second.until <= now; });
  }
  // A bucket that nobody asked of for so long is full, as a new one would be in a moment.
  std::erase_if(endpoints_, [&](const auto& endpoint) {
    return endpoint.second.parts.empty() &&
           now - endpoint.second.tokens.filled > absl::Minutes(2) &&
           endpoint.second.tokens.level >= 0;
  });
}

EndpointShares::Limits EndpointShares::Strictest(const Endpoint& endpoint) {
  Limits limits;
  for (const auto& [runner, part] : endpoint.parts) {
    Tighten(limits.concurrency, part.limits.concurrency);
    Tighten(limits.requests, part.limits.requests);
    Tighten(limits.tokens, part.limits.tokens);
  }
  return limits;
}

uint32_t EndpointShares::FairSlots(const Endpoint& endpoint, const std::string& runner,
                                   uint64_t limit, absl::Duration now) const {
  std::vector<std::pair<uint32_t, std::string>> by_wish;
  for (const auto& [id, part] : endpoint.parts) {
    if (part.wanted() > 0) by_wish.emplace_back(part.wanted(), id);
  }
  std::sort(by_wish.begin(), by_wish.end());
  uint64_t left = limit;
  for (size_t i = 0; i < by_wish.size(); ++i) {
    uint64_t sharers = by_wish.size() - i;
    uint64_t even = left / sharers;
    const auto& [wish, id] = by_wish[i];
    if (wish <= even) {
      if (id == runner) return wish;
      left -= wish;
      continue;
    }
    // All from here on want more than their even share; what cannot be divided goes to
    // those who are in their turn, then to those who have waited longest.
    std::vector<std::tuple<bool, absl::Duration, std::string>> order;
    for (size_t each = i; each < by_wish.size(); ++each) {
      const Part& part = endpoint.parts.at(by_wish[each].second);
      bool in_turn = part.slots > 0 && now - part.since < options_.turn;
      order.emplace_back(!in_turn, part.since, by_wish[each].second);
    }
    std::sort(order.begin(), order.end());
    for (size_t each = 0; each < order.size(); ++each) {
      if (std::get<2>(order[each]) == runner) {
        return static_cast<uint32_t>(even + (each < left % sharers ? 1 : 0));
      }
    }
    return 0;
  }
  return 0;
}

void EndpointShares::Report(const v1::EndpointUse& use, Endpoint& endpoint, Part& part, bool known,
                            absl::Duration now) const {
  // Counts that fall are those of another process with the same name.
  known &= use.started() >= part.started && use.tokens() >= part.tokens;
  uint64_t ended = use.started() - std::min<uint64_t>(use.in_flight(), use.started());
  if (known && ended > part.started - part.in_flight) {
    auto calls = static_cast<double>(ended - (part.started - part.in_flight));
    auto tokens = static_cast<double>(use.tokens() - part.tokens);
    endpoint.tokens.level -= tokens - calls * endpoint.tokens_per_call;
    endpoint.tokens_per_call +=
        (tokens / calls - endpoint.tokens_per_call) * calls / (calls + kMeanOverCalls);
    endpoint.tokens_per_call = std::max(endpoint.tokens_per_call, 1.0);
  }
  if (!known) part.since = part.served = now;
  part.may_start = known ? std::max(part.may_start, use.started()) : use.started();
  part.limits = {use.max_concurrency(), use.requests_per_minute(), use.tokens_per_minute()};
  part.in_flight = static_cast<uint32_t>(use.started() - ended);
  part.waiting = use.waiting();
  part.slots = std::max(use.slots(), part.in_flight);
  part.started = use.started();
  part.tokens = use.tokens();
  part.until = now + options_.ttl;
}

uint32_t EndpointShares::GiveSlots(const v1::EndpointUse& use, const Endpoint& endpoint,
                                   const std::string& runner, uint64_t limit,
                                   absl::Duration now) const {
  if (limit == 0) return kAnySlots;
  uint64_t others = 0;
  for (const auto& [id, other] : endpoint.parts) {
    if (id != runner) others += other.slots;
  }
  uint64_t free = limit - std::min(limit, others);
  uint64_t given = std::min<uint64_t>(FairSlots(endpoint, runner, limit, now), free);
  if (now < settled_at_) given = std::min<uint64_t>(given, use.slots());
  return static_cast<uint32_t>(given);
}

uint64_t EndpointShares::GiveStarts(Endpoint& endpoint, Part& part, const Limits& limits,
                                    absl::Duration now) {
  if (limits.requests == 0 && limits.tokens == 0) return kAnyStarts;
  uint64_t open = part.may_start - part.started;
  if (part.waiting <= open) return part.may_start;
  uint64_t calls = kAnyStarts;
  if (limits.requests != 0) calls = endpoint.requests.Calls(1);
  if (limits.tokens != 0) {
    calls = std::min(calls, endpoint.tokens.Calls(endpoint.tokens_per_call));
  }
  uint64_t sharers = 0;
  uint64_t ahead = 0;
  for (const auto& [id, each] : endpoint.parts) {
    if (each.waiting <= each.may_start - each.started) continue;
    ++sharers;
    if (each.served < part.served) ++ahead;
  }
  if (ahead >= calls) return part.may_start;
  uint64_t more = std::min<uint64_t>(part.waiting - open, std::max(calls / sharers, uint64_t{1}));
  part.served = now;
  endpoint.requests.level -= static_cast<double>(more);
  endpoint.tokens.level -= static_cast<double>(more) * endpoint.tokens_per_call;
  part.may_start += more;
  return part.may_start;
}

absl::StatusOr<v1::SyncEndpointsResponse> EndpointShares::Sync(
    const v1::SyncEndpointsRequest& request, absl::Duration now) {
  const std::string& runner = request.runner();
  if (runner.empty()) {
    return absl::InvalidArgumentError("runner: a runner has to give its id");
  }
  std::set<std::string> named;
  for (const v1::EndpointUse& use : request.endpoints()) {
    if (!named.insert(use.endpoint()).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("endpoints: ", use.endpoint(), " comes twice"));
    }
  }
  for (auto& [name, endpoint] : endpoints_) {
    if (named.count(name) == 0) endpoint.parts.erase(runner);
  }
  DropExpired(now);

  v1::SyncEndpointsResponse response;
  *response.mutable_ttl() = ToWire(options_.ttl);
  *response.mutable_next_sync() = ToWire(options_.sync_interval);
  for (const v1::EndpointUse& use : request.endpoints()) {
    auto [found, fresh] = endpoints_.try_emplace(use.endpoint());
    Endpoint& endpoint = found->second;
    if (fresh) {
      endpoint.requests.filled = endpoint.tokens.filled = now;
      endpoint.tokens_per_call = options_.tokens_per_call;
    }
    auto [at, joined] = endpoint.parts.try_emplace(runner);
    Part& part = at->second;
    bool had_slots = part.slots > 0;
    Report(use, endpoint, part, !joined, now);
    Limits limits = Strictest(endpoint);
    endpoint.requests.Fill(limits.requests, options_.burst, now);
    endpoint.tokens.Fill(limits.tokens, options_.burst, now);

    v1::EndpointShare& share = *response.add_endpoints();
    share.set_endpoint(use.endpoint());
    share.set_slots(GiveSlots(use, endpoint, runner, limits.concurrency, now));
    part.slots = std::max(part.slots, share.slots());
    if (had_slots != (part.slots > 0)) part.since = now;
    share.set_may_start(GiveStarts(endpoint, part, limits, now));
  }
  return response;
}

}  // namespace kmosaic
