// Every key of the store, in one place. Integers are big-endian so that byte order is
// numeric order; all keys of a job begin with its number, so that one range holds all.
//
//   family      key                     value
//   meta        name                    text or decimal number (names below)
//   job         job8                    StoredJob
//   job_state   job8                    StoredJobState
//   job_id      id                      job8
//   task        job8 task4              StoredTask
//   live        job8 item4              StoredItem, of an item that was granted and is not final
//   item        job8 item4              StoredItem, of a final one
//   dead_letter job8 item4              empty, for each FAILED or DEAD item
//   extension   job8 request id         StoredExtension
//   result      job8 item4              ItemResult
//   attempt     job8 item4 attempt4     Attempt
//   step        job8 item4 step4        StoredStep
//   event       job8 seq8               JobEvent
//   task_spec   SHA-256, hex            TaskSpec; schema 1 only, empty since
//
// An item without a row in live and item is READY and was never granted, or CANCELLED when
// its job is. So a backlog costs no rows but its tasks, and a start reads no finished item.
#ifndef KMOSAIC_COORDINATOR_STORE_KEYS_H_
#define KMOSAIC_COORDINATOR_STORE_KEYS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kmosaic {

// Numbers stay inside the process (kFamilies is in their order); on disk a family is known
// by its name.
enum class Family : uint8_t {
  kMeta,
  kJob,
  kJobState,
  kJobId,
  kTask,
  kItem,
  kResult,
  kAttempt,
  kStep,
  kEvent,
  kTaskSpec,
  kLive,
  kDeadLetter,
  kExtension,
};

inline constexpr std::array<Family, 14> kFamilies = {
    Family::kMeta,     Family::kJob,    Family::kJobState,   Family::kJobId,    Family::kTask,
    Family::kItem,     Family::kResult, Family::kAttempt,    Family::kStep,     Family::kEvent,
    Family::kTaskSpec, Family::kLive,   Family::kDeadLetter, Family::kExtension};

// Families whose keys begin with a job's number.
inline constexpr std::array<Family, 11> kJobFamilies = {
    Family::kJob,    Family::kJobState,   Family::kTask,     Family::kItem,
    Family::kResult, Family::kAttempt,    Family::kStep,     Family::kEvent,
    Family::kLive,   Family::kDeadLetter, Family::kExtension};

// Name on disk; pinned by a test.
std::string_view FamilyName(Family family);

namespace keys {

// Names in the meta family.
inline constexpr char kSchemaVersion[] = "schema_version";
inline constexpr char kIncarnation[] = "incarnation";
inline constexpr char kEpoch[] = "epoch";
// Number that the next job gets; numbers are never used twice.
inline constexpr char kNextJob[] = "next_job";
// Followed by a job's number in decimal, while a large submission is being written: its
// tasks are there and the job is not yet.
inline constexpr char kStaging[] = "staging/";

// Followed by a worker's id: an order to drain (store/drain_orders.h).
inline constexpr char kDrain[] = "drain/";

// Half-open.
struct Range {
  std::string begin;
  std::string end;
};

struct Numbered {
  uint64_t job = 0;
  uint32_t number = 0;
  bool operator==(const Numbered&) const = default;
};

struct OfItem {
  uint64_t job = 0;
  uint32_t item = 0;
  uint32_t number = 0;
  bool operator==(const OfItem&) const = default;
};

struct EventKey {
  uint64_t job = 0;
  uint64_t seq = 0;
  bool operator==(const EventKey&) const = default;
};

// job, job_state; the value of job_id.
std::string Job(uint64_t job);
std::optional<uint64_t> ParseJob(std::string_view key);

std::string Task(uint64_t job, uint32_t task);
// live, item, dead_letter, result.
std::string Item(uint64_t job, uint32_t item);
// Key of a task or an item; nothing when `key` is not one.
std::optional<Numbered> ParseNumbered(std::string_view key);

std::string Attempt(uint64_t job, uint32_t item, uint32_t attempt);
std::string Step(uint64_t job, uint32_t item, uint32_t step);
// Key of an attempt or a step.
std::optional<OfItem> ParseOfItem(std::string_view key);

std::string Event(uint64_t job, uint64_t seq);
std::optional<EventKey> ParseEvent(std::string_view key);

std::string Extension(uint64_t job, std::string_view request_id);

// Everything of a job, in any family of kJobFamilies.
Range OfJob(uint64_t job);
// Items from number `first` on (also of results and tasks).
Range NumberedFrom(uint64_t job, uint32_t first);
// All steps or attempts of an item.
Range AllOfItem(uint64_t job, uint32_t item);
// Meta entries that begin with kStaging.
Range AllStaging();
std::string Drain(std::string_view worker);
// Meta entries that begin with kDrain.
Range AllDrains();
// Events from `seq` on.
Range EventsFrom(uint64_t job, uint64_t seq);

}  // namespace keys
}  // namespace kmosaic

#endif  // KMOSAIC_COORDINATOR_STORE_KEYS_H_
