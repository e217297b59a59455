#include "coordinator/store/keys.h"

namespace kmosaic {

std::string_view FamilyName(Family family) {
  switch (family) {
    case Family::kMeta:
      return "meta";
    case Family::kJob:
      return "job";
    case Family::kJobState:
      return "job_state";
    case Family::kJobId:
      return "job_id";
    case Family::kTask:
      return "task";
    case Family::kItem:
      return "item";
    case Family::kResult:
      return "result";
    case Family::kAttempt:
      return "attempt";
    case Family::kStep:
      return "step";
    case Family::kEvent:
      return "event";
    case Family::kTaskSpec:
      return "task_spec";
    case Family::kLive:
      return "live";
    case Family::kDeadLetter:
      return "dead_letter";
    case Family::kExtension:
      return "extension";
  }
  return "";
}

namespace keys {
namespace {

constexpr size_t kJobBytes = 8;
constexpr size_t kNumberBytes = 4;
constexpr size_t kSeqBytes = 8;

template <typename Integer>
void AppendBigEndian(std::string& key, Integer value) {
  for (int shift = static_cast<int>(sizeof value) * 8 - 8; shift >= 0; shift -= 8) {
    key += static_cast<char>((value >> shift) & 0xff);
  }
}

template <typename Integer>
Integer ReadBigEndian(std::string_view bytes) {
  Integer value = 0;
  for (size_t i = 0; i < sizeof value; ++i) {
    value = static_cast<Integer>((value << 8) | static_cast<unsigned char>(bytes[i]));
  }
  return value;
}

std::string ThreePart(uint64_t job, uint32_t item, uint32_t number) {
  std::string key = Item(job, item);
  AppendBigEndian(key, number);
  return key;
}

// The first key after every key that begins with `prefix`; prefixes here are numbers
// below their maximum, so that one byte always has room.
std::string After(std::string prefix) {
  while (!prefix.empty() && static_cast<unsigned char>(prefix.back()) == 0xff) prefix.pop_back();
  if (!prefix.empty()) prefix.back() = static_cast<char>(prefix.back() + 1);
  return prefix;
}

}  // namespace

std::string Job(uint64_t job) {
  std::string key;
  AppendBigEndian(key, job);
  return key;
}

std::optional<uint64_t> ParseJob(std::string_view key) {
  if (key.size() != kJobBytes) return std::nullopt;
  return ReadBigEndian<uint64_t>(key);
}

std::string Task(uint64_t job, uint32_t task) { return Item(job, task); }

std::string Item(uint64_t job, uint32_t item) {
  std::string key = Job(job);
  AppendBigEndian(key, item);
  return key;
}

std::optional<Numbered> ParseNumbered(std::string_view key) {
  if (key.size() != kJobBytes + kNumberBytes) return std::nullopt;
  return Numbered{ReadBigEndian<uint64_t>(key), ReadBigEndian<uint32_t>(key.substr(kJobBytes))};
}

std::string Attempt(uint64_t job, uint32_t item, uint32_t attempt) {
  return ThreePart(job, item, attempt);
}

std::string Step(uint64_t job, uint32_t item, uint32_t step) { return ThreePart(job, item, step); }

std::optional<OfItem> ParseOfItem(std::string_view key) {
  if (key.size() != kJobBytes + 2 * kNumberBytes) return std::nullopt;
  return OfItem{ReadBigEndian<uint64_t>(key), ReadBigEndian<uint32_t>(key.substr(kJobBytes)),
                ReadBigEndian<uint32_t>(key.substr(kJobBytes + kNumberBytes))};
}

std::string Event(uint64_t job, uint64_t seq) {
  std::string key = Job(job);
  AppendBigEndian(key, seq);
  return key;
}

std::optional<EventKey> ParseEvent(std::string_view key) {
  if (key.size() != kJobBytes + kSeqBytes) return std::nullopt;
  return EventKey{ReadBigEndian<uint64_t>(key), ReadBigEndian<uint64_t>(key.substr(kJobBytes))};
}

std::string Extension(uint64_t job, std::string_view request_id) {
  return Job(job).append(request_id);
}

Range OfJob(uint64_t job) { return {Job(job), After(Job(job))}; }

Range NumberedFrom(uint64_t job, uint32_t first) { return {Item(job, first), After(Job(job))}; }

Range AllOfItem(uint64_t job, uint32_t item) { return {Item(job, item), After(Item(job, item))}; }

Range AllStaging() { return {kStaging, After(kStaging)}; }

std::string Drain(std::string_view worker) { return kDrain + std::string(worker); }

Range AllDrains() { return {kDrain, After(kDrain)}; }

Range EventsFrom(uint64_t job, uint64_t seq) { return {Event(job, seq), After(Job(job))}; }

}  // namespace keys
}  // namespace kmosaic
