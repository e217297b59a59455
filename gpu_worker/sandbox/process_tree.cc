#include "gpu_worker/sandbox/process_tree.h"

#include <cctype>
#include <filesystem>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gpu_worker/sandbox/kernel_file.h"

namespace kmosaic {
namespace {

// Of the lines "Name:   123 kB" whose names are given, in bytes.
uint64_t SumOfLines(const std::string& text, std::initializer_list<const char*> names) {
  uint64_t bytes = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    for (const char* name : names) {
      absl::string_view rest = line;
      uint64_t kibibytes = 0;
      if (!absl::ConsumePrefix(&rest, name)) continue;
      absl::ConsumeSuffix(&rest, "kB");
      if (absl::SimpleAtoi(rest, &kibibytes)) bytes += kibibytes << 10;
    }
  }
  return bytes;
}

}  // namespace

absl::StatusOr<ProcessInfo> ParseStat(const std::string& text) {
  // The second field is the program's name in parentheses and may hold anything.
  size_t open = text.find('(');
  size_t close = text.rfind(')');
  if (open == std::string::npos || close == std::string::npos || close < open) {
    return absl::InvalidArgumentError("no process name in a stat file");
  }
  std::vector<std::string> fields =
      absl::StrSplit(absl::string_view(text).substr(close + 1), ' ', absl::SkipWhitespace());
  // proc(5): state is field 3, ppid 4, num_threads 20, starttime 22.
  constexpr size_t kState = 0, kParent = 1, kThreads = 17, kStart = 19;
  ProcessInfo info;
  if (fields.size() <= kStart ||
      !absl::SimpleAtoi(absl::string_view(text).substr(0, open), &info.pid) ||
      !absl::SimpleAtoi(fields[kParent], &info.parent) ||
      !absl::SimpleAtoi(fields[kThreads], &info.threads) ||
      !absl::SimpleAtoi(fields[kStart], &info.start_time)) {
    return absl::InvalidArgumentError("a stat file with too few numbers");
  }
  info.zombie = fields[kState] == "Z" || fields[kState] == "X";
  return info;
}

absl::StatusOr<ProcessInfo> ReadProcess(pid_t pid) {
  std::string text = ReadKernelFile(absl::StrCat("/proc/", pid, "/stat"));
  if (text.empty()) return absl::NotFoundError(absl::StrCat("no process ", pid));
  return ParseStat(text);
}

std::map<pid_t, ProcessInfo> ListProcesses() {
  std::map<pid_t, ProcessInfo> processes;
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc", error), end; !error && entry != end;
       entry.increment(error)) {
    pid_t pid;
    if (!absl::SimpleAtoi(entry->path().filename().string(), &pid)) continue;
    if (auto info = ReadProcess(pid); info.ok()) processes[pid] = *info;
  }
  return processes;
}

std::vector<pid_t> Descendants(const std::map<pid_t, ProcessInfo>& processes, pid_t root) {
  std::multimap<pid_t, pid_t> children;
  for (const auto& [pid, info] : processes) children.emplace(info.parent, pid);
  std::vector<pid_t> found;
  if (processes.count(root) != 0) found.push_back(root);
  for (size_t i = 0; i < found.size(); ++i) {
    auto [first, last] = children.equal_range(found[i]);
    for (auto child = first; child != last; ++child) found.push_back(child->second);
  }
  return found;
}

uint64_t OwnMemoryBytes(pid_t pid) {
  return SumOfLines(ReadKernelFile(absl::StrCat("/proc/", pid, "/status")),
                    {"RssAnon:", "RssShmem:"});
}

std::optional<uint64_t> ProportionalMemoryBytes(pid_t pid) {
  std::string text = ReadKernelFile(absl::StrCat("/proc/", pid, "/smaps_rollup"));
  if (text.find("Pss_Anon:") == std::string::npos) return std::nullopt;
  return SumOfLines(text, {"Pss_Anon:", "Pss_Shmem:"});
}

}  // namespace kmosaic
