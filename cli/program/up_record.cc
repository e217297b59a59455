#include "cli/program/up_record.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/ids.h"
#include "common/base/status.h"

namespace kmosaic {
namespace {

namespace fs = std::filesystem;

class Fd {
 public:
  explicit Fd(int fd) : fd_(fd) {}
  ~Fd() {
    if (fd_ >= 0) close(fd_);
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

std::string ReadAll(int fd) {
  std::string text;
  char chunk[4096];
  ssize_t got;
  while (text.size() < 65536 && (got = read(fd, chunk, sizeof chunk)) > 0) {
    text.append(chunk, static_cast<size_t>(got));
  }
  return text;
}

std::optional<UpRecord> ParseRecord(const std::string& text) {
  auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  for (const char* key : {"coordinator", "http", "data"}) {
    if (!json.contains(key) || !json[key].is_string()) return std::nullopt;
  }
  if (!json.contains("pid") || !json["pid"].is_number_integer()) return std::nullopt;
  return UpRecord{json["pid"], json["coordinator"], json["http"], json["data"]};
}

}  // namespace

std::string UpRecordDirectory(const Host& host) {
  if (std::string runtime = host.Env("XDG_RUNTIME_DIR"); !runtime.empty()) {
    return absl::StrCat(runtime, "/kmosaic");
  }
  std::string state =
      host.Env("XDG_STATE_HOME", absl::StrCat(host.Env("HOME", "/tmp"), "/.local/state"));
  return absl::StrCat(state, "/kmosaic/run");
}

absl::StatusOr<std::unique_ptr<PublishedUpRecord>> PublishedUpRecord::Publish(
    const std::string& directory, const UpRecord& record) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) {
    return ErrnoStatus(error.value(), absl::StrCat("cannot make the directory ", directory));
  }
  fs::permissions(directory, fs::perms::owner_all, error);
  std::string path = absl::StrCat(directory, "/up-", record.pid, "-", RandomId("r"), ".json");
  std::string hidden = absl::StrCat(path, ".new");
  int fd = open(hidden.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("cannot write ", hidden));
  // Locked and complete before it gets the name under which it is found.
  nlohmann::ordered_json json = {{"pid", record.pid},
                                 {"coordinator", record.coordinator},
                                 {"http", record.http},
                                 {"data", record.data}};
  std::string text = json.dump() + "\n";
  bool good = flock(fd, LOCK_EX | LOCK_NB) == 0 &&
              write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
              rename(hidden.c_str(), path.c_str()) == 0;
  if (!good) {
    absl::Status status = ErrnoStatus(errno, absl::StrCat("cannot write ", path));
    unlink(hidden.c_str());
    close(fd);
    return status;
  }
  return std::unique_ptr<PublishedUpRecord>(new PublishedUpRecord(path, fd));
}

PublishedUpRecord::~PublishedUpRecord() {
  unlink(path_.c_str());
  close(fd_);
}

std::vector<UpRecord> FindUpRecords(const std::string& directory) {
  std::vector<UpRecord> records;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    std::string name = entry.path().filename().string();
    if (!absl::StartsWith(name, "up-") || !absl::EndsWith(name, ".json")) continue;
    Fd file(open(entry.path().c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    struct stat info {};
    if (file.get() < 0 || fstat(file.get(), &info) != 0) continue;
    if (info.st_uid != geteuid() || (info.st_mode & 022) != 0) continue;
    if (flock(file.get(), LOCK_SH | LOCK_NB) == 0) {
      // Nobody holds it: its writer is dead.
      unlink(entry.path().c_str());
      continue;
    }
    if (auto record = ParseRecord(ReadAll(file.get()))) records.push_back(*record);
  }
  std::sort(records.begin(), records.end(),
            [](const UpRecord& a, const UpRecord& b) { return a.pid < b.pid; });
  return records;
}

}  // namespace kmosaic
