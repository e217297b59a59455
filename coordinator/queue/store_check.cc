#include "coordinator/queue/store_check.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/enum_names.h"
#include "common/base/status.h"
#include "coordinator/queue/item_states.h"
#include "kernelmosaic/v1/storage.pb.h"

namespace kmosaic {
namespace {

class Checker {
 public:
  explicit Checker(const TaskStore& store) : snapshot_(store.Snapshot()) {}

  absl::StatusOr<StoreSummary> Run() {
    std::unique_ptr<StoreCursor> cursor = snapshot_->Scan(Family::kJob, {"", ""});
    for (; cursor->Valid(); cursor->Next()) {
      std::optional<uint64_t> number = keys::ParseJob(cursor->key());
      if (!number.has_value()) return Wrong("a job's key is not one");
      jobs_.insert(*number);
      KMOSAIC_ASSIGN_OR_RETURN(v1::StoredJob job,
                               Parse<v1::StoredJob>(cursor->value(), Family::kJob));
      KMOSAIC_RETURN_IF_ERROR(Annotate(Job(*number, job), absl::StrCat("job ", job.id())));
    }
    KMOSAIC_RETURN_IF_ERROR(cursor->status());
    KMOSAIC_RETURN_IF_ERROR(Orphans());
    return summary_;
  }

 private:
  static absl::Status Wrong(const std::string& what) {
    return absl::DataLossError(absl::StrCat("the store contradicts itself: ", what));
  }

  template <typename Message>
  static absl::StatusOr<Message> Parse(std::string_view bytes, Family family) {
    Message message;
    if (message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return message;
    return Wrong(absl::StrCat("a row of ", std::string(FamilyName(family)), " cannot be read"));
  }

  template <typename Message>
  absl::StatusOr<Message> Read(Family family, const std::string& key) const {
    absl::StatusOr<std::string> row = snapshot_->Get(family, key);
    if (absl::IsNotFound(row.status())) {
      return Wrong(absl::StrCat("a row of ", std::string(FamilyName(family)), " is missing"));
    }
    if (!row.ok()) return row.status();
    return Parse<Message>(*row, family);
  }

  // Of one job, from its rows.
  struct Counted {
    v1::JobCounts counts;
    uint64_t steps = 0;
    uint64_t verified = 0;
    uint32_t touched = 0;
    std::set<uint32_t> dead;
  };

  absl::Status Job(uint64_t number, const v1::StoredJob& job) {
    KMOSAIC_ASSIGN_OR_RETURN(v1::StoredJobState state,
                             Read<v1::StoredJobState>(Family::kJobState, keys::Job(number)));
    absl::StatusOr<std::string> by_id = snapshot_->Get(Family::kJobId, job.id());
    if (!by_id.ok() || *by_id != keys::Job(number)) return Wrong("its id does not lead to it");
    KMOSAIC_RETURN_IF_ERROR(Tasks(number, state));
    Counted counted;
    for (Family family : {Family::kItem, Family::kLive}) {
      KMOSAIC_RETURN_IF_ERROR(Items(number, family, state, counted));
    }
    if (counted.touched != state.touched()) return Wrong("items that were granted lack rows");
    AddToCount(counted.counts, state.cancelled() ? v1::ITEM_STATE_CANCELLED : v1::ITEM_STATE_READY,
               static_cast<int64_t>(state.counts().total()) - counted.touched);
    for (int each = v1::ITEM_STATE_READY; each <= v1::ITEM_STATE_DEAD; ++each) {
      auto item_state = static_cast<v1::ItemState>(each);
      uint64_t rows = CountOf(counted.counts, item_state);
      uint64_t counter = CountOf(state.counts(), item_state);
      if (rows != counter) {
        return Wrong(absl::StrCat("the counter of ", ItemStateName(item_state), " items is ",
                                  counter, ", their rows are ", rows));
      }
    }
    if (counted.steps != state.counts().steps()) return Wrong("the counter of steps");
    if (counted.verified != state.counts().verified()) {
      return Wrong("the counter of verified items");
    }
    bool open = counted.counts.ready() + counted.counts.delayed() + counted.counts.leased() > 0;
    if (open == state.has_finished()) return Wrong("finished is not what the items say");
    KMOSAIC_RETURN_IF_ERROR(DeadLetters(number, counted));
    ++summary_.jobs;
    summary_.items += state.counts().total();
    summary_.steps += counted.steps;
    return Events(number, state);
  }

  absl::Status Tasks(uint64_t number, const v1::StoredJobState& state) {
    uint32_t tasks = 0;
    std::unique_ptr<StoreCursor> cursor = snapshot_->Scan(Family::kTask, keys::OfJob(number));
    for (; cursor->Valid(); cursor->Next(), ++tasks) {
      if (cursor->key() != keys::Task(number, tasks)) return Wrong("tasks have a gap");
      KMOSAIC_ASSIGN_OR_RETURN(v1::StoredTask task,
                               Parse<v1::StoredTask>(cursor->value(), Family::kTask));
      if (task.spec().ByteSizeLong() > state.largest_task()) {
        return Wrong("a task is larger than the largest");
      }
    }
    KMOSAIC_RETURN_IF_ERROR(cursor->status());
    if (tasks != state.tasks()) return Wrong("tasks are missing, or too many");
    if (uint64_t{tasks} * state.items_per_task() != state.counts().total()) {
      return Wrong("the items are not those of the tasks");
    }
    summary_.tasks += tasks;
    return absl::OkStatus();
  }

  absl::Status Items(uint64_t number, Family family, const v1::StoredJobState& state,
                     Counted& counted) {
    std::unique_ptr<StoreCursor> cursor = snapshot_->Scan(family, keys::OfJob(number));
    for (; cursor->Valid(); cursor->Next()) {
      std::optional<keys::Numbered> key = keys::ParseNumbered(cursor->key());
      if (!key.has_value() || key->number >= state.touched()) {
        return Wrong("an item's key is not one of those granted");
      }
      KMOSAIC_ASSIGN_OR_RETURN(v1::StoredItem item, Parse<v1::StoredItem>(cursor->value(), family));
      if (IsFinal(item.state()) != (family == Family::kItem)) {
        return Wrong(absl::StrCat("item ", key->number, " is in the wrong family"));
      }
      AddToCount(counted.counts, item.state(), 1);
      ++counted.touched;
      if (family == Family::kLive) ++summary_.live;
      if (IsDeadLetter(item.state())) counted.dead.insert(key->number);
      KMOSAIC_RETURN_IF_ERROR(Annotate(Item(number, key->number, item, state.cancelled(), counted),
                                       absl::StrCat("item ", key->number)));
    }
    return cursor->status();
  }

  absl::Status Item(uint64_t job, uint32_t number, const v1::StoredItem& item, bool cancelled,
                    Counted& counted) {
    uint32_t steps = 0;
    uint64_t bytes = 0;
    std::unique_ptr<StoreCursor> cursor =
        snapshot_->Scan(Family::kStep, keys::AllOfItem(job, number));
    for (; cursor->Valid(); cursor->Next()) {
      if (cursor->key() != keys::Step(job, number, steps++)) return Wrong("steps have a gap");
      KMOSAIC_ASSIGN_OR_RETURN(v1::StoredStep step,
                               Parse<v1::StoredStep>(cursor->value(), Family::kStep));
      bytes += step.step().ByteSizeLong();
    }
    KMOSAIC_RETURN_IF_ERROR(cursor->status());
    if (steps != item.steps()) return Wrong("its steps are not those on disk");
    if (bytes != item.step_bytes()) return Wrong("the bytes of its steps");
    counted.steps += steps;
    absl::StatusOr<std::string> row = snapshot_->Get(Family::kResult, keys::Item(job, number));
    if (!row.ok() && !absl::IsNotFound(row.status())) return row.status();
    if (item.state() == v1::ITEM_STATE_DONE && !row.ok()) return Wrong("done without a result");
    if (row.ok()) {
      if (item.state() != v1::ITEM_STATE_DONE && item.state() != v1::ITEM_STATE_CANCELLED) {
        return Wrong("a result without an end");
      }
      KMOSAIC_ASSIGN_OR_RETURN(v1::ItemResult result, Parse<v1::ItemResult>(*row, Family::kResult));
      if (result.verified() && item.state() != v1::ITEM_STATE_DONE) {
        return Wrong("cancelled with a verified result");
      }
      if (result.verified()) ++counted.verified;
    }
    bool waits = item.state() == v1::ITEM_STATE_READY || item.state() == v1::ITEM_STATE_DELAYED;
    if (cancelled && waits) return Wrong("it waits, and its job is cancelled");
    if ((item.state() == v1::ITEM_STATE_LEASED) == item.holder().empty()) {
      return Wrong("a holder without a lease, or the other way round");
    }
    return absl::OkStatus();
  }

  absl::Status DeadLetters(uint64_t number, const Counted& counted) {
    std::set<uint32_t> listed;
    std::unique_ptr<StoreCursor> cursor = snapshot_->Scan(Family::kDeadLetter, keys::OfJob(number));
    for (; cursor->Valid(); cursor->Next()) {
      std::optional<keys::Numbered> key = keys::ParseNumbered(cursor->key());
      if (!key.has_value()) return Wrong("a dead letter's key is not one");
      listed.insert(key->number);
    }
    KMOSAIC_RETURN_IF_ERROR(cursor->status());
    if (listed != counted.dead) return Wrong("its dead letters are not its failed and dead items");
    summary_.dead_letters += listed.size();
    return absl::OkStatus();
  }

  absl::Status Events(uint64_t job, const v1::StoredJobState& state) {
    uint64_t seq = 0;
    v1::JobEvent event;
    std::unique_ptr<StoreCursor> cursor = snapshot_->Scan(Family::kEvent, keys::OfJob(job));
    for (; cursor->Valid(); cursor->Next()) {
      if (cursor->key() != keys::Event(job, ++seq)) return Wrong("events have a gap");
      KMOSAIC_ASSIGN_OR_RETURN(event, Parse<v1::JobEvent>(cursor->value(), Family::kEvent));
      if (event.seq() != seq) return Wrong("an event has another number than its key");
    }
    KMOSAIC_RETURN_IF_ERROR(cursor->status());
    if (seq != state.last_event()) return Wrong("the newest event is missing");
    if (event.counts().SerializeAsString() != state.counts().SerializeAsString()) {
      return Wrong("counters of the newest event are not the job's");
    }
    summary_.events += seq;
    return absl::OkStatus();
  }

  absl::Status Orphans() {
    std::set<uint64_t> staging;
    std::unique_ptr<StoreCursor> meta = snapshot_->Scan(Family::kMeta, keys::AllStaging());
    for (; meta->Valid(); meta->Next()) {
      uint64_t number = 0;
      std::string digits(meta->key().substr(std::string_view(keys::kStaging).size()));
      if (!absl::SimpleAtoi(digits, &number)) return Wrong("a staging entry names no number");
      staging.insert(number);
    }
    KMOSAIC_RETURN_IF_ERROR(meta->status());
    std::unique_ptr<StoreCursor> old = snapshot_->Scan(Family::kTaskSpec, {"", ""});
    if (old->Valid()) return Wrong("task_spec holds rows, which are of schema 1");
    for (Family family : kJobFamilies) {
      // From job to job: what lies between two jobs' numbers belongs to none.
      uint64_t next = 0;
      for (;;) {
        std::unique_ptr<StoreCursor> cursor = snapshot_->Scan(family, {keys::Job(next), ""});
        if (!cursor->Valid()) {
          KMOSAIC_RETURN_IF_ERROR(cursor->status());
          break;
        }
        std::optional<uint64_t> number = keys::ParseJob(cursor->key().substr(0, 8));
        if (!number.has_value()) return Wrong("a key is too short");
        bool staged = family == Family::kTask && staging.count(*number) > 0;
        if (jobs_.count(*number) == 0 && !staged) {
          return Wrong(absl::StrCat("a row of a job that is gone is left in ",
                                    std::string(FamilyName(family))));
        }
        next = *number + 1;
      }
    }
    return absl::OkStatus();
  }

  const std::unique_ptr<StoreSnapshot> snapshot_;
  std::set<uint64_t> jobs_;
  StoreSummary summary_;
};

}  // namespace

absl::StatusOr<StoreSummary> CheckStore(const TaskStore& store) { return Checker(store).Run(); }

}  // namespace kmosaic
