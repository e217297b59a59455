#include "gpu_worker/evaluate/device_findings.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/text.h"

namespace kmosaic {
namespace {

namespace v1 = kernelmosaic::v1;
using nlohmann::json;

constexpr size_t kMaxFindings = 64;
constexpr size_t kMaxTextBytes = 512;

struct Meaning {
  std::string_view kind;
  v1::Verdict verdict;
  std::string_view words;
};

// The worst first.
constexpr std::array<Meaning, 8> kMeanings = {{
    {"unsupported", v1::VERDICT_UNSUPPORTED, "the emulated device cannot run this"},
    {"out_of_bounds", v1::VERDICT_OUT_OF_BOUNDS, "out-of-bounds access"},
    {"misaligned_access", v1::VERDICT_ILLEGAL_ACCESS, "misaligned access"},
    {"illegal_launch", v1::VERDICT_ILLEGAL_LAUNCH, "illegal launch"},
    {"race", v1::VERDICT_DATA_RACE, "data race"},
    {"deadlock", v1::VERDICT_TIME_LIMIT, "deadlock, the kernel would never end"},
    {"device_assert", v1::VERDICT_RUNTIME_ERROR, "device-side assertion failed"},
    {"trap", v1::VERDICT_RUNTIME_ERROR, "the kernel trapped"},
}};

std::string Text(const json& object, const char* key) {
  auto found = object.find(key);
  if (found == object.end() || !found->is_string()) return "";
  return ElideMiddle(ToValidUtf8(found->get_ref<const std::string&>()), kMaxTextBytes);
}

std::vector<int64_t> Triple(const json& object, const char* key) {
  std::vector<int64_t> triple;
  auto found = object.find(key);
  if (found == object.end() || !found->is_array() || found->size() > 3) return triple;
  for (const json& number : *found) {
    if (!number.is_number_integer()) return {};
    triple.push_back(number.get<int64_t>());
  }
  return triple;
}

const Meaning* FindMeaning(const DeviceFinding& finding) {
  for (const Meaning& meaning : kMeanings) {
    if (meaning.kind == finding.kind) return &meaning;
  }
  return nullptr;
}

}  // namespace

std::vector<DeviceFinding> ParseFindings(const json& list) {
  std::vector<DeviceFinding> findings;
  if (!list.is_array()) return findings;
  for (const json& entry : list) {
    if (findings.size() >= kMaxFindings) break;
    if (!entry.is_object()) continue;
    DeviceFinding finding;
    finding.kind = Text(entry, "kind");
    if (finding.kind.empty()) continue;
    finding.kernel = Text(entry, "kernel");
    finding.block = Triple(entry, "block");
    finding.thread = Triple(entry, "thread");
    finding.detail = Text(entry, "detail");
    findings.push_back(std::move(finding));
  }
  return findings;
}

std::vector<DeviceFinding> ParseReport(std::string_view lines) {
  json list = json::array();
  while (!lines.empty() && list.size() < kMaxFindings) {
    size_t end = lines.find('\n');
    std::string_view line = lines.substr(0, end);
    lines.remove_prefix(end == std::string_view::npos ? lines.size() : end + 1);
    // An unused report is zero bytes.
    line = line.substr(0, line.find('\0'));
    json entry = json::parse(line, nullptr, false);
    if (entry.is_object()) list.push_back(std::move(entry));
  }
  return ParseFindings(list);
}

std::string Words(const DeviceFinding& finding) {
  std::string words = finding.kernel.empty() ? "a kernel" : finding.kernel;
  if (!finding.block.empty()) {
    absl::StrAppend(&words, ", block (", absl::StrJoin(finding.block, ","), ")");
  }
  if (!finding.thread.empty()) {
    absl::StrAppend(&words, ", thread (", absl::StrJoin(finding.thread, ","), ")");
  }
  if (!finding.detail.empty()) absl::StrAppend(&words, ": ", finding.detail);
  return words;
}

std::optional<Conclusion> Conclude(const std::vector<DeviceFinding>& findings) {
  for (const Meaning& meaning : kMeanings) {
    for (const DeviceFinding& finding : findings) {
      if (finding.kind != meaning.kind) continue;
      return Conclusion{
          meaning.verdict, absl::StrCat(std::string(meaning.words), ": ", Words(finding)), {}};
    }
  }
  return std::nullopt;
}

std::vector<std::string> Notes(const std::vector<DeviceFinding>& findings) {
  std::vector<std::string> notes;
  for (const DeviceFinding& finding : findings) {
    if (FindMeaning(finding) != nullptr) continue;
    std::string kind = finding.kind;
    std::replace(kind.begin(), kind.end(), '_', ' ');
    notes.push_back(absl::StrCat(kind, ": ", Words(finding)));
  }
  return notes;
}

}  // namespace kmosaic
