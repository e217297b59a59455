#include "coordinator/placement/worker_record.h"

#include <google/protobuf/util/time_util.h>

#include <functional>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace kmosaic {
namespace {

bool HasRole(const WorkerRecord& worker, v1::Role role) {
  auto slots = worker.slots.find(role);
  return slots != worker.slots.end() && slots->second.total > 0;
}

bool HasDevice(const WorkerRecord& worker, v1::DeviceKind device) {
  return device == v1::DEVICE_KIND_UNSPECIFIED || worker.device() == device;
}

bool HasLabel(const WorkerRecord& worker, const std::string& key, const std::string& value) {
  auto label = worker.said.labels().find(key);
  return label != worker.said.labels().end() && label->second == value;
}

std::string Workers(size_t count) {
  return absl::StrCat(count, count == 1 ? " worker" : " workers");
}

using Candidates = std::vector<const WorkerRecord*>;

Candidates Keep(const Candidates& from, const std::function<bool(const WorkerRecord&)>& keep) {
  Candidates kept;
  for (const WorkerRecord* worker : from) {
    if (keep(*worker)) kept.push_back(worker);
  }
  return kept;
}

std::string DevicesOf(const Candidates& workers) {
  std::set<std::string> devices;
  for (const WorkerRecord* worker : workers) devices.insert(DeviceName(worker->device()));
  return absl::StrJoin(devices, ", ");
}

std::string ValuesOf(const Candidates& workers, const std::string& key) {
  std::set<std::string> values;
  for (const WorkerRecord* worker : workers) {
    auto label = worker->said.labels().find(key);
    if (label != worker->said.labels().end()) values.insert(label->second);
  }
  if (values.empty()) return absl::StrCat("none has the label ", key);
  return absl::StrCat(key, " is ", absl::StrJoin(values, ", "), " there");
}

std::string Labels(const SlotRequirement& requirement) {
  return absl::StrJoin(requirement.labels, ", ", absl::PairFormatter("="));
}

}  // namespace

bool WorkerRecord::HasFree(v1::Role role) const {
  auto found = slots.find(role);
  return found != slots.end() && found->second.used < found->second.total;
}

bool WorkerRecord::Idle() const {
  if (said.busy() > 0) return false;
  for (const auto& [role, count] : slots) {
    if (count.used > 0) return false;
  }
  return true;
}

v1::WorkerState WorkerRecord::State() const {
  if (lost) return v1::WORKER_STATE_LOST;
  if (draining()) return v1::WORKER_STATE_DRAINING;
  if (sick()) return v1::WORKER_STATE_SICK;
  return Idle() ? v1::WORKER_STATE_READY : v1::WORKER_STATE_BUSY;
}

v1::Worker WorkerRecord::ToWire() const {
  v1::Worker worker;
  worker.set_id(said.worker());
  worker.set_state(State());
  worker.set_endpoint(said.endpoint());
  worker.set_http_endpoint(said.http_endpoint());
  worker.set_version(said.version());
  *worker.mutable_labels() = said.labels();
  for (const auto& [role, count] : slots) {
    v1::WorkerSlots* out = worker.add_slots();
    out->set_role(role);
    out->set_total(count.total);
    out->set_used(count.used);
  }
  worker.set_health_reason(said.health_reason());
  *worker.mutable_last_sync() =
      google::protobuf::util::TimeUtil::NanosecondsToTimestamp(absl::ToUnixNanos(last_sync_wall));
  *worker.mutable_device() = said.device();
  return worker;
}

v1::DeviceKind WorkerRecord::device() const {
  if (said.device().kind() != v1::DEVICE_KIND_UNSPECIFIED) return said.device().kind();
  auto label = said.labels().find("device");
  if (label == said.labels().end()) return v1::DEVICE_KIND_UNSPECIFIED;
  return ParseDevice(label->second).value_or(v1::DEVICE_KIND_UNSPECIFIED);
}

bool WorkerRecord::Meets(const SlotRequirement& requirement) const {
  if (!HasRole(*this, requirement.role) || !HasDevice(*this, requirement.device)) return false;
  for (const auto& [key, value] : requirement.labels) {
    if (!HasLabel(*this, key, value)) return false;
  }
  return true;
}

std::string Describe(const SlotRequirement& requirement) {
  std::string text = RoleName(requirement.role);
  if (requirement.device != v1::DEVICE_KIND_UNSPECIFIED) {
    absl::StrAppend(&text, " on ", DeviceName(requirement.device));
  }
  if (!requirement.labels.empty()) absl::StrAppend(&text, " with ", Labels(requirement));
  return text;
}

std::string WhyUnsatisfiable(const std::map<std::string, WorkerRecord>& workers,
                             const SlotRequirement& requirement) {
  Candidates left;
  for (const auto& [id, worker] : workers) {
    if (!worker.lost) left.push_back(&worker);
  }
  std::string prefix = absl::StrCat("no worker can serve ", Describe(requirement), ": ");
  if (left.empty()) return absl::StrCat(prefix, "no worker is registered");

  std::string role = RoleName(requirement.role);
  Candidates with_role =
      Keep(left, [&](const WorkerRecord& worker) { return HasRole(worker, requirement.role); });
  if (with_role.empty()) {
    return absl::StrCat(prefix, "none of the ", Workers(left.size()), " registered has ", role,
                        " slots");
  }
  Candidates with_device = Keep(
      with_role, [&](const WorkerRecord& worker) { return HasDevice(worker, requirement.device); });
  if (with_device.empty()) {
    return absl::StrCat(prefix, "none of the ", Workers(with_role.size()), " with ", role,
                        " slots has the device ", DeviceName(requirement.device),
                        " (there: ", DevicesOf(with_role), ")");
  }
  for (const auto& [key, value] : requirement.labels) {
    Candidates labelled =
        Keep(with_device, [&key = key, &value = value](const WorkerRecord& worker) {
          return HasLabel(worker, key, value);
        });
    if (labelled.empty()) {
      return absl::StrCat(prefix, "none of the ", Workers(with_device.size()),
                          " with that role and device has ", key, "=", value, " (",
                          ValuesOf(with_device, key), ")");
    }
  }
  return absl::StrCat(prefix, "no single worker has all of the labels ", Labels(requirement));
}

}  // namespace kmosaic
