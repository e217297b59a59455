#include "coordinator/queue/records.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include "coordinator/queue/item_states.h"

namespace kmosaic {

google::protobuf::Timestamp ToTimestamp(absl::Time time) {
  google::protobuf::Timestamp timestamp;
  timestamp.set_seconds(absl::ToUnixSeconds(time));
  timestamp.set_nanos(static_cast<int32_t>(
      absl::ToInt64Nanoseconds(time - absl::FromUnixSeconds(timestamp.seconds()))));
  return timestamp;
}

absl::Time FromTimestamp(const google::protobuf::Timestamp& timestamp) {
  return absl::FromUnixSeconds(timestamp.seconds()) + absl::Nanoseconds(timestamp.nanos());
}

google::protobuf::Duration ToProtoDuration(absl::Duration duration) {
  google::protobuf::Duration proto;
  proto.set_seconds(absl::ToInt64Seconds(duration));
  proto.set_nanos(
      static_cast<int32_t>(absl::ToInt64Nanoseconds(duration - absl::Seconds(proto.seconds()))));
  return proto;
}

absl::Duration FromProtoDuration(const google::protobuf::Duration& duration) {
  return absl::Seconds(duration.seconds()) + absl::Nanoseconds(duration.nanos());
}

std::string SerializeDeterministic(const google::protobuf::MessageLite& message) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    message.SerializeToCodedStream(&coded);
  }
  return bytes;
}

void ToStored(const ItemRecord& item, v1::StoredItem& stored) {
  stored.Clear();
  stored.set_state(item.state);
  stored.set_ended(item.ended);
  stored.set_attempts(item.attempts);
  stored.set_charged_attempts(item.charged_attempts);
  stored.set_holder_deaths(item.holder_deaths);
  stored.set_deaths_since_step(item.deaths_since_step);
  stored.set_blame_since_step(item.blame_since_step);
  stored.set_infrastructure_failures(item.infrastructure_failures);
  stored.set_steps(item.steps);
  stored.set_lease_epoch(item.lease_epoch);
  stored.set_step_bytes(item.step_bytes);
  *stored.mutable_updated() = ToTimestamp(item.updated);
  for (const std::string& worker : item.failed_workers) stored.add_failed_workers(worker);
  if (item.state == v1::ITEM_STATE_DELAYED) {
    *stored.mutable_not_before() = ToTimestamp(item.not_before);
  }
  if (item.lease != nullptr) {
    stored.set_holder(item.lease->runner);
    *stored.mutable_lease_started() = ToTimestamp(item.lease->started);
  }
}

ItemRecord FromStored(const v1::StoredItem& stored) {
  ItemRecord item;
  item.state = stored.state();
  item.ended = stored.ended();
  item.attempts = stored.attempts();
  item.charged_attempts = stored.charged_attempts();
  item.holder_deaths = stored.holder_deaths();
  item.deaths_since_step = stored.deaths_since_step();
  item.blame_since_step = stored.blame_since_step();
  item.infrastructure_failures = stored.infrastructure_failures();
  item.steps = stored.steps();
  item.lease_epoch = stored.lease_epoch();
  item.step_bytes = stored.step_bytes();
  item.updated = FromTimestamp(stored.updated());
  item.failed_workers.assign(stored.failed_workers().begin(), stored.failed_workers().end());
  item.not_before = FromTimestamp(stored.not_before());
  if (item.state == v1::ITEM_STATE_LEASED) {
    item.lease = std::make_unique<LeaseRecord>();
    item.lease->runner = stored.holder();
    item.lease->started = FromTimestamp(stored.lease_started());
    item.lease->first_digest = item.steps;
  }
  return item;
}

std::string StoredTaskRow(std::string_view serialized_spec) {
  // One field, of type bytes on the wire as every message is.
  std::string row;
  row.reserve(serialized_spec.size() + 6);
  row += static_cast<char>((v1::StoredTask::kSpecFieldNumber << 3) | 2);
  size_t length = serialized_spec.size();
  for (; length >= 0x80; length >>= 7) row += static_cast<char>((length & 0x7f) | 0x80);
  row += static_cast<char>(length);
  return row.append(serialized_spec);
}

v1::JobSpec WithoutRecordings(const v1::JobSpec& spec) {
  v1::JobSpec shown = spec;
  if (shown.has_endpoint()) shown.mutable_endpoint()->clear_recordings();
  return shown;
}

v1::Job ToJob(const JobRecord& record) {
  v1::Job job;
  job.set_id(record.id);
  *job.mutable_spec() = record.shown_spec;
  job.set_state(JobStateOf(record.state));
  *job.mutable_counts() = record.state.counts();
  *job.mutable_created() = ToTimestamp(record.created);
  if (record.state.has_finished()) *job.mutable_finished() = record.state.finished();
  return job;
}

}  // namespace kmosaic
