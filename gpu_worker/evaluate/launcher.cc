#include "gpu_worker/evaluate/launcher.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"

namespace kmosaic {
namespace {

using nlohmann::json;

// Gigabytes are looked at in a fraction of a second; a process that takes this long hangs.
constexpr absl::Duration kDeadline = absl::Minutes(2);

bool Flag(const json& reply, const char* name) {
  auto found = reply.find(name);
  return found != reply.end() && found->is_boolean() && found->get<bool>();
}

double Number(const json& reply, const char* name) {
  auto found = reply.find(name);
  return found != reply.end() && found->is_number() ? found->get<double>() : 0;
}

absl::Status Malformed(const std::string& what) {
  return absl::UnavailableError("launcher process: " + what);
}

json RuleJson(const ToleranceRule& rule, double scale_hint, double baseline_error) {
  return {{"unit", rule.unit},
          {"accumulation", rule.accumulation},
          {"block", rule.block},
          {"scale_hint", scale_hint},
          {"baseline_error", baseline_error},
          {"factor", rule.factor},
          {"smallest_block", rule.smallest_block}};
}

// A number as harness/wire.py writes it.
double AnyNumber(const json& reply, const char* name) {
  auto found = reply.find(name);
  if (found == reply.end() || !found->is_string()) return Number(reply, name);
  const std::string& text = found->get_ref<const std::string&>();
  double number = 0;
  return absl::SimpleAtod(text, &number) ? number : std::numeric_limits<double>::quiet_NaN();
}

uint64_t Count(const json& reply, const char* name) {
  auto found = reply.find(name);
  return found != reply.end() && found->is_number_unsigned() ? found->get<uint64_t>() : 0;
}

TensorFacts FactsOf(const json& leaf) {
  TensorFacts facts;
  facts.clean = Flag(leaf, "clean");
  facts.worst_ratio = Number(leaf, "worst_ratio");
  facts.zeros_pass = Flag(leaf, "zeros_pass");
  facts.baseline_error = Number(leaf, "baseline_error");
  facts.size = Count(leaf, "size");
  facts.zeros = Count(leaf, "zeros");
  facts.nans = Count(leaf, "nans");
  facts.poisoned = Count(leaf, "poisoned");
  facts.wrong = Count(leaf, "wrong");
  facts.wrong_poisoned = Count(leaf, "wrong_poisoned");
  facts.wrong_zeros = Count(leaf, "wrong_zeros");
  facts.expected_all_zero = Flag(leaf, "expected_all_zero");
  // Its place is in the tensor, whatever was said.
  facts.at = facts.size == 0 ? 0 : std::min(Count(leaf, "at"), facts.size - 1);
  facts.expected = AnyNumber(leaf, "expected");
  facts.got = AnyNumber(leaf, "got");
  facts.tolerance = AnyNumber(leaf, "tolerance");
  facts.max_error = AnyNumber(leaf, "max_error");
  facts.norm = AnyNumber(leaf, "norm");
  facts.norm_bound = AnyNumber(leaf, "norm_bound");
  return facts;
}

// As harness/wire.py reads it, made of what was understood: what else a solution's process wrote
// goes no further.
json NodeOf(const Value& value) {
  json items = json::array();
  switch (value.kind) {
    case Value::Kind::kTensor: {
      const Tensor& tensor = value.tensor;
      return {{"k", "tensor"},
              {"dtype", tensor.dtype_name},
              {"shape", tensor.shape},
              {"offset", tensor.offset},
              {"bytes", tensor.size_bytes}};
    }
    case Value::Kind::kList:
    case Value::Kind::kTuple:
      for (const Value& item : value.items) items.push_back(NodeOf(item));
      return {{"k", "list"}, {"items", items}};
    case Value::Kind::kDict:
      for (const auto& [name, item] : value.entries) {
        items.push_back(json::array({name, NodeOf(item)}));
      }
      return {{"k", "dict"}, {"items", items}};
    default:
      return {{"k", "none"}};  // nothing that is compared there
  }
}

std::vector<const Tensor*> Tensors(const Value& value) {
  std::vector<const Tensor*> tensors;
  for (const Leaf& leaf : Leaves(value)) {
    if (leaf.value->kind == Value::Kind::kTensor) tensors.push_back(&leaf.value->tensor);
  }
  return tensors;
}

}  // namespace

LauncherPool::LauncherPool(RoleStarter* starter, RoleLimits limits, std::string device, size_t most)
    : starter_(starter), limits_(limits), device_(std::move(device)), most_(most) {}

LauncherPool::~LauncherPool() = default;

absl::StatusOr<std::unique_ptr<Role>> LauncherPool::Start() {
  auto started = starter_->Start(RoleKind::kLauncher, limits_, {});
  if (!started.ok()) return Annotate(started.status(), "launcher process");
  auto reply = (*started)->Call({{"op", "start"}, {"device", device_}}, {}, kDeadline);
  if (!reply.ok()) {
    return absl::UnavailableError(
        absl::StrCat("launcher process: ", reply.status().message(), "\n", (*started)->Output()));
  }
  std::lock_guard lock(mutex_);
  device_memory_ = Flag(reply->message, "device_memory");
  return started;
}

absl::StatusOr<std::unique_ptr<Role>> LauncherPool::Take() {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !idle_.empty() || running_ < most_; });
    if (!idle_.empty()) {
      std::unique_ptr<Role> role = std::move(idle_.back());
      idle_.pop_back();
      return role;
    }
    ++running_;
  }
  auto started = Start();
  if (!started.ok()) GiveBack(nullptr);
  return started;
}

void LauncherPool::GiveBack(std::unique_ptr<Role> role) {
  {
    std::lock_guard lock(mutex_);
    if (role == nullptr) {
      --running_;
    } else {
      idle_.push_back(std::move(role));
    }
  }
  changed_.notify_one();
}

absl::StatusOr<Frame> LauncherPool::Call(const json& request, const std::vector<int>& fds) {
  KMOSAIC_ASSIGN_OR_RETURN(std::unique_ptr<Role> role, Take());
  auto reply = role->Call(request, fds, kDeadline);
  if (!reply.ok()) {
    absl::Status failed = Malformed(absl::StrCat(reply.status().message(), "\n", role->Output()));
    role.reset();
    GiveBack(nullptr);
    return failed;
  }
  if (Flag(reply->message, "ok")) {
    GiveBack(std::move(role));
    return reply;
  }
  std::string error = reply->message.value("error", "no reason given");
  auto bad = reply->message.find("bad");
  if (bad != reply->message.end() && bad->is_number_unsigned()) {
    GiveBack(std::move(role));
    return absl::InvalidArgumentError(absl::StrCat("descriptor ", bad->get<size_t>(), ": ", error));
  }
  if (Flag(reply->message, "out_of_memory")) {
    GiveBack(std::move(role));
    return absl::ResourceExhaustedError(error);
  }
  // An error of the GPU may last as long as the process does.
  role.reset();
  GiveBack(nullptr);
  return Malformed(error);
}

absl::StatusOr<bool> LauncherPool::HasDeviceMemory() {
  KMOSAIC_ASSIGN_OR_RETURN(std::unique_ptr<Role> role, Take());
  GiveBack(std::move(role));
  std::lock_guard lock(mutex_);
  return device_memory_;
}

absl::StatusOr<Frame> LauncherExaminer::Ask(json request, const std::vector<std::string>& names,
                                            const std::vector<const Parcel*>& parcels,
                                            bool last_is_given) {
  request["memory"] = BlockMemoryName(memory_);
  std::vector<UniqueFd> held;
  std::vector<int> fds;
  for (size_t i = 0; i < parcels.size(); ++i) {
    request[names[i]] = parcels[i] == nullptr ? json() : NodeOf(parcels[i]->value);
    if (parcels[i] == nullptr) continue;
    KMOSAIC_ASSIGN_OR_RETURN(UniqueFd fd, parcels[i]->ToDescriptor(names[i]));
    held.push_back(std::move(fd));
    fds.push_back(held.back().get());
  }
  auto reply = pool_->Call(request, fds);
  if (absl::IsInvalidArgument(reply.status())) {
    bool last = reply.status().message().find(absl::StrCat("descriptor ", fds.size() - 1, ":")) !=
                absl::string_view::npos;
    if (!last || !last_is_given) return absl::InternalError(reply.status().message());
  }
  return reply;
}

absl::StatusOr<OutputSummary> LauncherExaminer::Summarize(const Parcel& expected) {
  if (!expected.on_device() && memory_ == BlockMemory::kDevice) return host_.Summarize(expected);
  KMOSAIC_ASSIGN_OR_RETURN(Frame reply, Ask({{"op", "summary"}}, {"tree"}, {&expected}, false));
  OutputSummary summary;
  const json leaves = reply.message.value("leaves", json::array());
  size_t next = 0;
  for (const Leaf& leaf : Leaves(expected.value)) {
    summary.mean_squares.push_back(0);
    if (leaf.value->kind != Value::Kind::kTensor) continue;
    if (next >= leaves.size()) return Malformed("a summary lacks a tensor");
    const json& numbers = leaves[next++];
    if (!numbers.is_object()) continue;
    summary.mean_squares.back() = Number(numbers, "mean_square");
    summary.non_finite = summary.non_finite || Flag(numbers, "non_finite");
  }
  return summary;
}

absl::StatusOr<Comparison> LauncherExaminer::Compare(const Parcel& expected,
                                                     const Parcel* expected64, const Parcel& got,
                                                     const CompareOptions& options) {
  if (auto other = CompareForm(expected.value, got.value); other.has_value()) return *other;
  Comparison scalars = CompareScalars(
      expected.value, expected64 == nullptr ? nullptr : &expected64->value, got.value);
  if (scalars.verdict != kernelmosaic::v1::VERDICT_PASSED) return scalars;
  std::vector<const Tensor*> tensors = Tensors(expected.value);
  std::vector<const Tensor*> tensors64;
  if (expected64 != nullptr) tensors64 = Tensors(expected64->value);
  bool usable64 = expected64 != nullptr && tensors64.size() == tensors.size();
  for (size_t i = 0; usable64 && i < tensors.size(); ++i) {
    usable64 = IsReference64(*tensors[i], *tensors64[i]);
  }
  // Rare: float64 with other shapes for some outputs.
  if (expected64 != nullptr && !usable64) return CompareHere(expected, expected64, got, options);

  json rules = json::array();
  size_t leaf_index = 0;
  for (const Leaf& leaf : Leaves(expected.value)) {
    size_t index = leaf_index++;
    double hint = index < options.scale_hints.size() ? options.scale_hints[index] : 0;
    double error = index < options.baseline_errors.size() ? options.baseline_errors[index] : 0;
    if (leaf.value->kind != Value::Kind::kTensor) continue;
    rules.push_back(RuleJson(RuleOf(leaf.value->tensor, usable64, options.tolerance), hint, error));
  }
  KMOSAIC_ASSIGN_OR_RETURN(
      Frame reply, Ask({{"op", "compare"},
                        {"rules", rules},
                        {"poison", options.poison.has_value() ? json(*options.poison) : json()}},
                       {"expected", "expected64", "got"}, {&expected, expected64, &got}, true));
  const json leaves = reply.message.value("leaves", json::array());
  if (leaves.size() != rules.size()) return Malformed("a comparison lacks a tensor");
  Comparison result;
  size_t next = 0;
  leaf_index = 0;
  for (const Leaf& leaf : Leaves(expected.value)) {
    size_t index = leaf_index++;
    result.baseline_errors.push_back(0);
    if (leaf.value->kind != Value::Kind::kTensor) continue;
    TensorFacts facts = FactsOf(leaves[next++]);
    result.baseline_errors.back() = facts.baseline_error;
    Comparison one = ConcludeTensor(leaf.value->tensor, facts, leaf.path, index);
    result.worst_error_ratio = std::max(result.worst_error_ratio, one.worst_error_ratio);
    result.zeros_pass = result.zeros_pass && one.zeros_pass;
    if (one.verdict != kernelmosaic::v1::VERDICT_PASSED) {
      one.worst_error_ratio = result.worst_error_ratio;
      return one;
    }
  }
  return result;
}

absl::StatusOr<Comparison> LauncherExaminer::CompareHere(const Parcel& expected,
                                                         const Parcel* expected64,
                                                         const Parcel& got,
                                                         const CompareOptions& options) {
  KMOSAIC_ASSIGN_OR_RETURN(Parcel want, ToHost(expected));
  Parcel want64;
  if (expected64 != nullptr) {
    KMOSAIC_ASSIGN_OR_RETURN(want64, ToHost(*expected64));
  }
  KMOSAIC_ASSIGN_OR_RETURN(Parcel have, ToHost(got));
  return host_.Compare(want, expected64 == nullptr ? nullptr : &want64, have, options);
}

absl::StatusOr<std::optional<Difference>> LauncherExaminer::FirstDifference(const Parcel& before,
                                                                            const Parcel& after) {
  if (auto form = FormDifference(before.value, after.value); form.has_value()) return form;
  KMOSAIC_ASSIGN_OR_RETURN(Frame reply,
                           Ask({{"op", "same"}}, {"before", "after"}, {&before, &after}, true));
  const json same = reply.message.value("same", json::array());
  size_t next = 0;
  size_t index = 0;
  for (const Leaf& leaf : Leaves(before.value)) {
    size_t number = index++;
    if (leaf.value->kind != Value::Kind::kTensor) continue;
    if (next >= same.size()) return Malformed("a comparison lacks a tensor");
    const json& flag = same[next++];
    if (!flag.is_boolean() || !flag.get<bool>()) {
      return std::optional<Difference>(Difference{number, leaf.path, "its content"});
    }
  }
  return std::optional<Difference>();
}

absl::StatusOr<Parcel> LauncherExaminer::ToHost(const Parcel& parcel) {
  if (!parcel.on_device()) return parcel;
  Parcel here;
  here.node = parcel.node;
  if (parcel.device_bytes > 0) {
    KMOSAIC_ASSIGN_OR_RETURN(UniqueFd fd, parcel.ToDescriptor("fetched"));
    auto reply = pool_->Call(
        {{"op", "fetch"}, {"memory", "device"}, {"bytes", parcel.device_bytes}}, {fd.get()});
    // It was looked at before.
    if (absl::IsInvalidArgument(reply.status())) {
      return absl::InternalError(reply.status().message());
    }
    if (!reply.ok()) return reply.status();
    if (reply->fds.empty()) return Malformed("fetched nothing");
    KMOSAIC_ASSIGN_OR_RETURN(here.block, ReadBlock(reply->fds[0].get(), max_bytes_));
  }
  KMOSAIC_ASSIGN_OR_RETURN(here.value, ParseValue(here.node, here.block));
  return here;
}

}  // namespace kmosaic
