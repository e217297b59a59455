// Structured logs: one JSON object per line on standard error.
//
//   LogInfo("lease granted", {{"job", job}, {"attempt", 2}});
//   {"time":"2026-01-02T03:04:05.678Z","level":"info","process":"kmosaic-coordinator",
//    "message":"lease granted","job":"job-...","attempt":2}
//
// Thread-safe; a line is written with one write(2). Secrets never go in here: callers
// log names of keys, not keys.
#ifndef KMOSAIC_COMMON_LOG_LOG_H_
#define KMOSAIC_COMMON_LOG_LOG_H_

#include <nlohmann/json.hpp>
#include <string_view>

namespace kmosaic {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

// Once, at the start of main. Lines below `level` are dropped.
void StartLog(std::string_view process, LogLevel level);

// "debug", "info", "warning", "error"; false for anything else.
bool ParseLogLevel(std::string_view name, LogLevel* level);

using LogFields = nlohmann::json::object_t;

void Log(LogLevel level, std::string_view message, const LogFields& fields);
inline void LogDebug(std::string_view message, const LogFields& fields = {}) {
  Log(LogLevel::kDebug, message, fields);
}
inline void LogInfo(std::string_view message, const LogFields& fields = {}) {
  Log(LogLevel::kInfo, message, fields);
}
inline void LogWarning(std::string_view message, const LogFields& fields = {}) {
  Log(LogLevel::kWarning, message, fields);
}
inline void LogError(std::string_view message, const LogFields& fields = {}) {
  Log(LogLevel::kError, message, fields);
}

}  // namespace kmosaic

#endif  // KMOSAIC_COMMON_LOG_LOG_H_
