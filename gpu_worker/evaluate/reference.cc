#include "gpu_worker/evaluate/reference.h"

#include <algorithm>
#include <list>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/digest.h"
#include "common/base/status.h"

namespace kmosaic {
namespace {

using nlohmann::json;

constexpr size_t kMaxNotes = 32;

std::string Dump(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::vector<std::string> Strings(const json& reply, const char* key) {
  std::vector<std::string> texts;
  auto found = reply.find(key);
  if (found == reply.end() || !found->is_array()) return texts;
  for (const json& text : *found) {
    if (text.is_string() && texts.size() < kMaxNotes) texts.push_back(text.get<std::string>());
  }
  return texts;
}

std::map<std::string, int64_t> Integers(const json& reply, const char* key) {
  std::map<std::string, int64_t> numbers;
  auto found = reply.find(key);
  if (found == reply.end() || !found->is_object()) return numbers;
  for (const auto& [name, value] : found->items()) {
    if (value.is_number_integer()) numbers[name] = value.get<int64_t>();
  }
  return numbers;
}

std::string Text(const json& reply, const char* key) {
  auto found = reply.find(key);
  return found != reply.end() && found->is_string() ? found->get<std::string>() : "";
}

uint64_t Unsigned(const json& reply, const char* key) {
  auto found = reply.find(key);
  return found != reply.end() && found->is_number_unsigned() ? found->get<uint64_t>() : 0;
}

bool IsOk(const json& reply) {
  auto found = reply.find("ok");
  return found != reply.end() && found->is_boolean() && found->get<bool>();
}

// A reply that is not as agreed is the reference's fault: its code runs in that process.
Conclusion Malformed(const absl::Status& status) {
  return ConcludeRefusal("INVALID_TASK",
                         std::string(status.message().data(), status.message().size()),
                         Untrusted::kReference, false);
}

}  // namespace

uint64_t TaskCase::size_bytes() const {
  return inputs.size_bytes() + expected.size_bytes() +
         (expected64.has_value() ? expected64->size_bytes() : 0) +
         (parameters.has_value() ? parameters->size_bytes() : 0);
}

struct ReferenceCache::Impl {
  struct Entry {
    std::string key;
    std::shared_ptr<const TaskShape> shape;
    std::shared_ptr<const TaskCase> task_case;
    uint64_t bytes = 0;
  };
  explicit Impl(uint64_t max) : max_bytes(max) {}

  const Entry* Find(const std::string& key) {
    auto found = index.find(key);
    if (found == index.end()) return nullptr;
    order.splice(order.begin(), order, found->second);
    return &*found->second;
  }
  void Put(Entry entry) {
    if (index.count(entry.key) != 0 || entry.bytes > max_bytes) return;
    bytes += entry.bytes;
    order.push_front(std::move(entry));
    index[order.front().key] = order.begin();
    while (bytes > max_bytes) {
      bytes -= order.back().bytes;
      index.erase(order.back().key);
      order.pop_back();
    }
  }

  std::mutex mutex;
  const uint64_t max_bytes;
  uint64_t bytes = 0;
  std::list<Entry> order;
  std::map<std::string, std::list<Entry>::iterator> index;
};

ReferenceCache::ReferenceCache(uint64_t max_bytes) : impl_(std::make_unique<Impl>(max_bytes)) {}
ReferenceCache::~ReferenceCache() = default;

std::shared_ptr<const TaskShape> ReferenceCache::FindShape(const std::string& key) {
  std::lock_guard lock(impl_->mutex);
  const Impl::Entry* entry = impl_->Find(key);
  return entry == nullptr ? nullptr : entry->shape;
}
std::shared_ptr<const TaskCase> ReferenceCache::FindCase(const std::string& key) {
  std::lock_guard lock(impl_->mutex);
  const Impl::Entry* entry = impl_->Find(key);
  return entry == nullptr ? nullptr : entry->task_case;
}
void ReferenceCache::Put(const std::string& key, std::shared_ptr<const TaskShape> shape) {
  std::lock_guard lock(impl_->mutex);
  uint64_t bytes = shape->init.size_bytes() + key.size() + 1024;
  impl_->Put({key, std::move(shape), nullptr, bytes});
}
void ReferenceCache::Put(const std::string& key, std::shared_ptr<const TaskCase> task_case) {
  std::lock_guard lock(impl_->mutex);
  uint64_t bytes = task_case->size_bytes() + key.size() + 1024;
  impl_->Put({key, nullptr, std::move(task_case), bytes});
}
uint64_t ReferenceCache::size_bytes() const {
  std::lock_guard lock(impl_->mutex);
  return impl_->bytes;
}

Reference::Reference(Options options, RoleStarter* starter, ReferenceCache* cache,
                     Cancellation* cancellation)
    : options_(std::move(options)), starter_(starter), cache_(cache), cancellation_(cancellation) {
  json identity = {{"reference", options_.oracle.reference()},
                   {"device", options_.device},
                   {"scale", options_.scale},
                   {"weight_seed", options_.weight_seed},
                   {"parameters", options_.want_parameters},
                   {"torch", options_.torch}};
  for (const auto& [name, value] : options_.oracle.scaled_shapes())
    identity["scaled"][name] = value;
  if (options_.weights_on_cpu) identity["weights_on"] = "cpu";
  key_ = Sha256Hex(Dump(identity));
}

Reference::~Reference() = default;

std::variant<Frame, Conclusion> Reference::Call(const json& request, const std::string& doing,
                                                absl::Duration limit) {
  auto reply = role_->Call(request, {}, limit);
  if (!reply.ok()) {
    if (!role_->failure().has_value()) return ConcludeMachine(reply.status());
    return ConcludeFailure(*role_->failure(), Untrusted::kReference, doing);
  }
  if (!IsOk(reply->message)) {
    return ConcludeRefusal(Text(reply->message, "verdict"), Text(reply->message, "error"),
                           Untrusted::kReference, false);
  }
  return *std::move(reply);
}

std::optional<Conclusion> Reference::EnsureLoaded() {
  if (role_ == nullptr) load_failure_ = Load();
  return load_failure_;
}

std::optional<Conclusion> Reference::Load() {
  auto started = starter_->Start(RoleKind::kReference, options_.limits.role, {});
  if (!started.ok()) return ConcludeMachine(Annotate(started.status(), "reference process"));
  role_ = *std::move(started);
  on_cancel_ = cancellation_->OnCancel([role = role_.get()] { role->Kill(); });
  // What was decided once holds: it goes by the time that construction took.
  std::string weights_on = shape_ != nullptr         ? shape_->weights_on
                           : options_.weights_on_cpu ? "cpu"
                                                     : "auto";
  json scaled = json::object();
  for (const auto& [name, value] : options_.oracle.scaled_shapes()) scaled[name] = value;
  auto reply = Call({{"op", "load"},
                     {"source", options_.oracle.reference()},
                     {"device", options_.device},
                     {"memory", BlockMemoryName(options_.memory)},
                     {"scale", options_.scale},
                     {"scaled_shapes", scaled},
                     {"weight_seed", options_.weight_seed},
                     {"weights_on", weights_on}},
                    "being loaded", options_.limits.reference_load);
  if (auto* failed = std::get_if<Conclusion>(&reply)) return *failed;
  const Frame& frame = std::get<Frame>(reply);
  auto shape = std::make_shared<TaskShape>();
  size_t next = 0;
  auto init = ReadParcel(frame.message.value("init", json()), frame.fds, &next,
                         options_.limits.block_bytes, BlockMemory::kHost);
  if (!init.ok()) return Malformed(init.status());
  shape->init = *std::move(init);
  shape->shapes = Integers(frame.message, "shapes");
  shape->sizes = Integers(frame.message, "sizes");
  shape->families = Strings(frame.message, "families");
  shape->notes = Strings(frame.message, "notes");
  if (Text(frame.message, "weights_on") == "cuda") shape->weights_on = "cuda";
  shape->multiply_adds = Unsigned(frame.message, "multiply_adds");
  shape->parameter_bytes = Unsigned(frame.message, "parameter_bytes");
  // What a reference says, but no more than could be sent.
  shape->case_bytes =
      std::min(Unsigned(frame.message, "case_bytes"), 2 * options_.limits.block_bytes);
  shape_ = shape;
  cache_->Put(key_ + "/shape", shape_);
  return std::nullopt;
}

OrConclusion<TaskShape> Reference::Shape() {
  if (shape_ == nullptr) shape_ = cache_->FindShape(key_ + "/shape");
  if (shape_ == nullptr) {
    if (auto failed = EnsureLoaded(); failed.has_value()) return *failed;
  }
  return shape_;
}

OrConclusion<TaskCase> Reference::Case(uint64_t seed, const std::string& family, bool keep) {
  std::string key = absl::StrCat(key_, "/case/", family, "/", seed);
  if (auto found = cache_->FindCase(key); found != nullptr) return found;
  OrConclusion<TaskCase> result = Compute(seed, family, std::nullopt, std::nullopt, keep);
  if (auto* made = std::get_if<std::shared_ptr<const TaskCase>>(&result);
      made != nullptr && keep && options_.memory == BlockMemory::kHost) {
    cache_->Put(key, *made);
  }
  return result;
}

OrConclusion<TaskCase> Reference::CaseWithWeights(uint64_t seed, uint64_t weight_seed) {
  return Compute(seed, "native", weight_seed, std::nullopt, false);
}

OrConclusion<TaskCase> Reference::Repeat(const TaskCase& task_case) {
  return Compute(task_case.seed, task_case.family, task_case.weight_seed, std::nullopt, false);
}

OrConclusion<TaskCase> Reference::TimedCase(uint64_t seed, uint64_t key) {
  return Compute(seed, "native", std::nullopt, key, true);
}

std::variant<json, Conclusion> Reference::BeginTiming(uint64_t seed, bool compiled) {
  if (auto failed = EnsureLoaded(); failed.has_value()) return *failed;
  auto reply = Call({{"op", "time_begin"}, {"seed", seed}, {"compiled", compiled}},
                    "being prepared to be timed", options_.limits.reference_case);
  if (auto* failed = std::get_if<Conclusion>(&reply)) return *failed;
  return std::get<Frame>(std::move(reply)).message;
}

std::variant<json, Conclusion> Reference::TimeCall(uint64_t key) {
  // The first call of a compiled program compiles it.
  auto reply = Call({{"op", "time_sample"}, {"key", key}}, "timed", options_.limits.reference_load);
  if (auto* failed = std::get_if<Conclusion>(&reply)) return *failed;
  return std::get<Frame>(std::move(reply)).message;
}

OrConclusion<TaskCase> Reference::Compute(uint64_t seed, const std::string& family,
                                          std::optional<uint64_t> weight_seed,
                                          std::optional<uint64_t> key, bool always64) {
  if (auto failed = EnsureLoaded(); failed.has_value()) return *failed;
  json request = {{"op", "case"},
                  {"max_bytes", options_.limits.block_bytes},
                  {"seed", seed},
                  {"family", family},
                  {"float64", always64 ? "always" : "quick"},
                  {"want_parameters", options_.want_parameters}};
  if (weight_seed.has_value()) request["weight_seed"] = *weight_seed;
  if (key.has_value()) request["key"] = *key;
  auto reply = Call(request, "run", options_.limits.reference_case);
  if (auto* failed = std::get_if<Conclusion>(&reply)) return *failed;
  const Frame& frame = std::get<Frame>(reply);
  const json& message = frame.message;
  auto made = std::make_shared<TaskCase>();
  made->seed = seed;
  made->family = family;
  made->weight_seed = weight_seed;
  size_t next = 0;
  uint64_t max_bytes = options_.limits.block_bytes;
  for (auto [name, target] : {std::pair{"inputs", &made->inputs}, {"expected", &made->expected}}) {
    auto parcel =
        ReadParcel(message.value(name, json()), frame.fds, &next, max_bytes, options_.memory);
    if (!parcel.ok()) return Malformed(parcel.status());
    *target = *std::move(parcel);
  }
  for (auto [name, target] :
       {std::pair{"expected64", &made->expected64}, {"parameters", &made->parameters}}) {
    auto node = message.find(name);
    if (node == message.end() || node->is_null()) continue;
    auto parcel = ReadParcel(*node, frame.fds, &next, max_bytes, options_.memory);
    if (!parcel.ok()) return Malformed(parcel.status());
    *target = *std::move(parcel);
  }
  if (auto reduction = message.find("reduction");
      reduction != message.end() && reduction->is_number_integer()) {
    made->reduction = reduction->get<int64_t>();
  }
  for (const json& leaf : message.value("fresh", json::array())) {
    if (leaf.is_number_unsigned()) made->fresh.push_back(leaf.get<uint32_t>());
  }
  made->notes = Strings(message, "notes");
  return std::shared_ptr<const TaskCase>(std::move(made));
}

}  // namespace kmosaic
