#include "coordinator/queue/reader.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status.h"
#include "coordinator/queue/item_plan.h"
#include "coordinator/queue/item_states.h"

namespace kmosaic {
namespace {

template <typename Message>
absl::StatusOr<Message> Parse(std::string_view bytes, Family family) {
  Message message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::DataLossError(absl::StrCat("the store contradicts itself: a ",
                                            std::string(FamilyName(family)),
                                            " row cannot be read; restore a backup"));
  }
  return message;
}

// NOT_FOUND here is a row that has to be there.
template <typename Message>
absl::StatusOr<Message> ReadRow(const StoreSnapshot& snapshot, Family family,
                                const std::string& key) {
  absl::StatusOr<std::string> bytes = snapshot.Get(family, key);
  if (absl::IsNotFound(bytes.status())) {
    return absl::DataLossError(absl::StrCat("the store contradicts itself: a ",
                                            std::string(FamilyName(family)),
                                            " row is missing; restore a backup"));
  }
  if (!bytes.ok()) return bytes.status();
  return Parse<Message>(*bytes, family);
}

absl::StatusOr<uint64_t> NumberOf(const StoreSnapshot& snapshot, const std::string& job) {
  absl::StatusOr<std::string> value = snapshot.Get(Family::kJobId, job);
  if (absl::IsNotFound(value.status())) return absl::NotFoundError(absl::StrCat("no job ", job));
  if (!value.ok()) return value.status();
  std::optional<uint64_t> number = keys::ParseJob(*value);
  if (!number.has_value()) {
    return absl::DataLossError("the store contradicts itself: a job_id row cannot be read");
  }
  return *number;
}

}  // namespace

absl::StatusOr<JobReader> JobReader::Open(const TaskStore& store, const std::string& job) {
  std::shared_ptr<StoreSnapshot> snapshot = store.Snapshot();
  KMOSAIC_ASSIGN_OR_RETURN(uint64_t number, NumberOf(*snapshot, job));
  return OpenOn(std::move(snapshot), number);
}

absl::StatusOr<JobReader> JobReader::OpenOn(std::shared_ptr<const StoreSnapshot> snapshot,
                                            uint64_t number) {
  JobReader reader;
  reader.snapshot_ = std::move(snapshot);
  reader.number_ = number;
  std::string key = keys::Job(reader.number_);
  KMOSAIC_ASSIGN_OR_RETURN(reader.job_,
                           ReadRow<v1::StoredJob>(*reader.snapshot_, Family::kJob, key));
  KMOSAIC_ASSIGN_OR_RETURN(reader.state_,
                           ReadRow<v1::StoredJobState>(*reader.snapshot_, Family::kJobState, key));
  return reader;
}

v1::JobState JobReader::state() const { return JobStateOf(state_); }

absl::StatusOr<v1::StoredTask> JobReader::ReadTaskRow(uint32_t number) const {
  return ReadRow<v1::StoredTask>(*snapshot_, Family::kTask,
                                 keys::Task(number_, PlaceOf(job_.spec(), number).task));
}

absl::StatusOr<v1::Item> JobReader::Assemble(uint32_t number, const v1::StoredItem* row) const {
  v1::Item item;
  item.mutable_id()->set_job(job_.id());
  item.mutable_id()->set_number(number);
  ItemPlace place = PlaceOf(job_.spec(), number);
  if (!task_id_.has_value() || task_id_->first != place.task) {
    KMOSAIC_ASSIGN_OR_RETURN(v1::StoredTask task, ReadTaskRow(number));
    task_id_.emplace(place.task, task.spec().id());
  }
  item.set_task(task_id_->second);
  *item.mutable_views() = job_.spec().views(place.view_set);
  item.set_sample(place.sample);
  if (row == nullptr) {
    item.set_state(state_.cancelled() ? v1::ITEM_STATE_CANCELLED : v1::ITEM_STATE_READY);
    *item.mutable_updated() = job_.created();
    return item;
  }
  item.set_state(row->state());
  item.set_attempts(row->attempts());
  item.set_charged_attempts(row->charged_attempts());
  item.set_holder_deaths(row->holder_deaths());
  if (row->has_not_before()) *item.mutable_not_before() = row->not_before();
  *item.mutable_updated() = row->updated();
  item.set_holder(row->holder());
  item.set_steps(row->steps());
  if (row->ended() == v1::ATTEMPT_END_COMPLETED && IsFinal(row->state())) {
    KMOSAIC_ASSIGN_OR_RETURN(
        *item.mutable_result(),
        ReadRow<v1::ItemResult>(*snapshot_, Family::kResult, keys::Item(number_, number)));
  }
  KMOSAIC_RETURN_IF_ERROR(AddLastError(number, *row, item));
  return item;
}

absl::Status JobReader::AddLastError(uint32_t number, const v1::StoredItem& row,
                                     v1::Item& item) const {
  bool leased = row.state() == v1::ITEM_STATE_LEASED;
  uint32_t ended_attempts = leased ? row.attempts() - 1 : row.attempts();
  if (ended_attempts == 0 || row.state() == v1::ITEM_STATE_DONE) return absl::OkStatus();
  KMOSAIC_ASSIGN_OR_RETURN(v1::Attempt attempt,
                           ReadRow<v1::Attempt>(*snapshot_, Family::kAttempt,
                                                keys::Attempt(number_, number, ended_attempts)));
  if (attempt.failure() != v1::FAILURE_CLASS_UNSPECIFIED ||
      row.ended() == v1::ATTEMPT_END_EXPIRED) {
    item.set_last_error(attempt.outcome());
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<v1::StoredItem>> JobReader::ReadRowOf(uint32_t number) const {
  if (number >= state_.touched()) return std::optional<v1::StoredItem>();
  for (Family family : {Family::kItem, Family::kLive}) {
    absl::StatusOr<std::string> bytes = snapshot_->Get(family, keys::Item(number_, number));
    if (absl::IsNotFound(bytes.status())) continue;
    if (!bytes.ok()) return bytes.status();
    KMOSAIC_ASSIGN_OR_RETURN(v1::StoredItem row, Parse<v1::StoredItem>(*bytes, family));
    return std::optional<v1::StoredItem>(std::move(row));
  }
  return absl::DataLossError(absl::StrCat("the store contradicts itself: item ", number, " of job ",
                                          id(), " has no row; restore a backup"));
}

absl::StatusOr<v1::Item> JobReader::ReadItem(uint32_t number, bool with_history) const {
  if (number >= items()) {
    return absl::OutOfRangeError(
        absl::StrCat("job ", id(), " has items 0 to ", items() - 1, ", not ", number));
  }
  KMOSAIC_ASSIGN_OR_RETURN(std::optional<v1::StoredItem> row, ReadRowOf(number));
  KMOSAIC_ASSIGN_OR_RETURN(v1::Item item, Assemble(number, row.has_value() ? &*row : nullptr));
  if (with_history) {
    auto cursor = snapshot_->Scan(Family::kAttempt, keys::AllOfItem(number_, number));
    for (; cursor->Valid(); cursor->Next()) {
      KMOSAIC_ASSIGN_OR_RETURN(*item.add_history(),
                               Parse<v1::Attempt>(cursor->value(), Family::kAttempt));
    }
    KMOSAIC_RETURN_IF_ERROR(cursor->status());
  }
  return item;
}

absl::StatusOr<v1::TaskSpec> JobReader::ReadTask(uint32_t number) const {
  if (number >= items()) {
    return absl::OutOfRangeError(absl::StrCat("job ", id(), " has no item ", number));
  }
  KMOSAIC_ASSIGN_OR_RETURN(v1::StoredTask row, ReadTaskRow(number));
  return std::move(*row.mutable_spec());
}

absl::StatusOr<std::vector<v1::Step>> JobReader::ReadSteps(uint32_t number) const {
  std::vector<v1::Step> steps;
  auto cursor = snapshot_->Scan(Family::kStep, keys::AllOfItem(number_, number));
  for (; cursor->Valid(); cursor->Next()) {
    KMOSAIC_ASSIGN_OR_RETURN(v1::StoredStep stored,
                             Parse<v1::StoredStep>(cursor->value(), Family::kStep));
    steps.push_back(std::move(*stored.mutable_step()));
  }
  KMOSAIC_RETURN_IF_ERROR(cursor->status());
  return steps;
}

absl::Status JobReader::ForEachItem(uint32_t first, const Visit& visit) const {
  auto item_rows = snapshot_->Scan(Family::kItem, keys::NumberedFrom(number_, first));
  auto live_rows = snapshot_->Scan(Family::kLive, keys::NumberedFrom(number_, first));
  for (uint32_t number = first; number < items(); ++number) {
    std::optional<v1::StoredItem> row;
    std::string key = keys::Item(number_, number);
    for (StoreCursor* cursor : {item_rows.get(), live_rows.get()}) {
      if (!cursor->Valid() || cursor->key() != key) continue;
      KMOSAIC_ASSIGN_OR_RETURN(row, Parse<v1::StoredItem>(cursor->value(), Family::kItem));
      cursor->Next();
    }
    KMOSAIC_ASSIGN_OR_RETURN(v1::Item item, Assemble(number, row.has_value() ? &*row : nullptr));
    KMOSAIC_ASSIGN_OR_RETURN(bool more, visit(item));
    if (!more) break;
  }
  KMOSAIC_RETURN_IF_ERROR(item_rows->status());
  return live_rows->status();
}

absl::StatusOr<DeadLetterPage> ReadDeadLetters(const TaskStore& store, const std::string& job,
                                               const std::string& page_token, size_t limit) {
  keys::Range range;
  std::shared_ptr<StoreSnapshot> snapshot = store.Snapshot();
  if (!job.empty()) {
    KMOSAIC_ASSIGN_OR_RETURN(uint64_t number, NumberOf(*snapshot, job));
    range = keys::OfJob(number);
  }
  if (!page_token.empty()) {
    std::string key = absl::HexStringToBytes(page_token);
    if (page_token.size() != 2 * keys::Item(0, 0).size() ||
        absl::BytesToHexString(key) != page_token) {
      return absl::InvalidArgumentError(
          absl::StrCat("page_token '", page_token, "' is not one that a ListDeadLetters returned"));
    }
    range.begin = std::max(range.begin, key);
  }
  DeadLetterPage page;
  std::optional<JobReader> reader;
  uint64_t reader_of = 0;
  auto cursor = snapshot->Scan(Family::kDeadLetter, range);
  for (; cursor->Valid(); cursor->Next()) {
    std::optional<keys::Numbered> key = keys::ParseNumbered(cursor->key());
    if (!key.has_value()) return absl::DataLossError("a dead letter's key is not one");
    if (page.items.size() == limit) {
      page.next_page_token =
          absl::BytesToHexString(absl::string_view(cursor->key().data(), cursor->key().size()));
      break;
    }
    if (!reader.has_value() || reader_of != key->job) {
      KMOSAIC_ASSIGN_OR_RETURN(reader, JobReader::OpenOn(snapshot, key->job));
      reader_of = key->job;
    }
    KMOSAIC_ASSIGN_OR_RETURN(page.items.emplace_back(), reader->ReadItem(key->number, false));
  }
  KMOSAIC_RETURN_IF_ERROR(cursor->status());
  return page;
}

absl::StatusOr<DeadLetterPage> ReadDeadLetters(const std::vector<const TaskStore*>& stores,
                                               const std::string& page_token, size_t limit) {
  // Store and token of that store.
  std::pair<std::string, std::string> parts = absl::StrSplit(page_token, absl::MaxSplits(':', 1));
  size_t at = 0;
  if (!page_token.empty() && (!absl::SimpleAtoi(parts.first, &at) || at >= stores.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat("page_token '", page_token, "' is not one that a ListDeadLetters returned"));
  }
  KMOSAIC_ASSIGN_OR_RETURN(DeadLetterPage page,
                           ReadDeadLetters(*stores[at], "", parts.second, limit));
  // A page that a store does not fill is short.
  if (!page.next_page_token.empty()) {
    page.next_page_token = absl::StrCat(at, ":", page.next_page_token);
  } else if (at + 1 < stores.size()) {
    page.next_page_token = absl::StrCat(at + 1, ":");
  }
  return page;
}

absl::StatusOr<EventPage> ReadEvents(const TaskStore& store, const std::string& job,
                                     uint64_t from_seq, size_t limit) {
  std::unique_ptr<StoreSnapshot> snapshot = store.Snapshot();
  KMOSAIC_ASSIGN_OR_RETURN(uint64_t number, NumberOf(*snapshot, job));
  KMOSAIC_ASSIGN_OR_RETURN(
      v1::StoredJobState state,
      ReadRow<v1::StoredJobState>(*snapshot, Family::kJobState, keys::Job(number)));
  EventPage page;
  uint64_t next = from_seq == 0 ? 1 : from_seq;
  auto cursor = snapshot->Scan(Family::kEvent, keys::EventsFrom(number, next));
  // Items of a task are often in a row.
  uint32_t task_number = 0;
  std::string task_id;
  for (; cursor->Valid() && page.events.size() < limit; cursor->Next()) {
    KMOSAIC_ASSIGN_OR_RETURN(v1::JobEvent event,
                             Parse<v1::JobEvent>(cursor->value(), Family::kEvent));
    // Events of schema 1 hold the id.
    if (event.has_item() && event.item().task().empty()) {
      uint32_t wanted = event.item().id().number() / std::max(state.items_per_task(), uint32_t{1});
      if (task_id.empty() || wanted != task_number) {
        KMOSAIC_ASSIGN_OR_RETURN(
            v1::StoredTask task,
            ReadRow<v1::StoredTask>(*snapshot, Family::kTask, keys::Task(number, wanted)));
        task_number = wanted;
        task_id = task.spec().id();
      }
      event.mutable_item()->set_task(task_id);
    }
    page.events.push_back(std::move(event));
    ++next;
  }
  KMOSAIC_RETURN_IF_ERROR(cursor->status());
  page.ended = state.has_finished() && next > state.last_event();
  return page;
}

}  // namespace kmosaic
