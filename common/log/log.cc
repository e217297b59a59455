#include "common/log/log.h"

#include <unistd.h>

#include <atomic>
#include <string>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace kmosaic {
namespace {

std::atomic<LogLevel> g_level{LogLevel::kInfo};
// Written once by StartLog, before other threads exist.
std::string& ProcessName() {
  static std::string name = "kmosaic";
  return name;
}

const char* LevelName(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kError:
      return "error";
  }
  return "?";
}

}  // namespace

void StartLog(std::string_view process, LogLevel level) {
  ProcessName() = process;
  g_level = level;
}

bool ParseLogLevel(std::string_view name, LogLevel* level) {
  for (LogLevel candidate :
       {LogLevel::kDebug, LogLevel::kInfo, LogLevel::kWarning, LogLevel::kError}) {
    if (name == LevelName(candidate)) {
      *level = candidate;
      return true;
    }
  }
  return false;
}

void Log(LogLevel level, std::string_view message, const LogFields& fields) {
  if (level < g_level.load(std::memory_order_relaxed)) return;
  nlohmann::ordered_json line;
  line["time"] = absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::Now(), absl::UTCTimeZone());
  line["level"] = LevelName(level);
  line["process"] = ProcessName();
  line["message"] = message;
  for (const auto& [key, value] : fields) line[key] = value;
  std::string text =
      line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n';
  size_t written = 0;
  while (written < text.size()) {
    ssize_t n = write(STDERR_FILENO, text.data() + written, text.size() - written);
    if (n <= 0) return;  // nowhere left to say it
    written += static_cast<size_t>(n);
  }
}

}  // namespace kmosaic
