#include "gpu_worker/compile/artifact_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>
#include <system_error>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/digest.h"
#include "common/base/enum_names.h"
#include "common/base/status.h"
#include "common/log/log.h"

namespace kmosaic {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr char kEntryFile[] = "entry.json";
constexpr int kFormat = 2;

absl::Status FsStatus(const std::error_code& error, const std::string& what) {
  return ErrnoStatus(error.value(), what);
}

absl::StatusOr<std::string> ReadFile(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return ErrnoStatus(errno, absl::StrCat("open ", path.string()));
  std::ostringstream text;
  text << in.rdbuf();
  if (in.bad()) return absl::DataLossError(absl::StrCat("read ", path.string()));
  return std::move(text).str();
}

absl::Status WriteFile(const fs::path& path, std::string_view text) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
  out.close();
  if (!out) return ErrnoStatus(errno, absl::StrCat("write ", path.string()));
  return absl::OkStatus();
}

// A directory that no one else has, held by a lock that ends with this process.
class PrivateDirectory {
 public:
  static absl::StatusOr<PrivateDirectory> Make(const fs::path& parent) {
    PrivateDirectory made;
    made.path_ = parent / absl::BytesToHexString(RandomBytes(12));
    if (mkdir(made.path_.c_str(), 0700) != 0) {
      return ErrnoStatus(errno, absl::StrCat("mkdir ", made.path_.string()));
    }
    made.lock_ = open(made.path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (made.lock_ < 0) return ErrnoStatus(errno, absl::StrCat("open ", made.path_.string()));
    // A file system without locks (some NFS) only loses the cleaning after a crash.
    (void)flock(made.lock_, LOCK_EX | LOCK_NB);
    return made;
  }
  PrivateDirectory(PrivateDirectory&& other) noexcept
      : path_(std::move(other.path_)), lock_(std::exchange(other.lock_, -1)) {
    other.path_.clear();
  }
  PrivateDirectory& operator=(PrivateDirectory&&) = delete;
  ~PrivateDirectory() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
    if (lock_ >= 0) close(lock_);
  }
  const fs::path& path() const { return path_; }

 private:
  PrivateDirectory() = default;
  fs::path path_;
  int lock_ = -1;
};

// Directories of builders that are gone: nobody holds their lock.
void RemoveAbandoned(const fs::path& builds) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(builds, error)) {
    int fd = open(entry.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) continue;
    bool abandoned = flock(fd, LOCK_EX | LOCK_NB) == 0;
    if (abandoned) {
      std::error_code ignored;
      fs::remove_all(entry.path(), ignored);
    }
    close(fd);
  }
}

bool IsKept(kernelmosaic::v1::Verdict failure) {
  switch (failure) {
    case kernelmosaic::v1::VERDICT_UNSPECIFIED:
    case kernelmosaic::v1::VERDICT_COMPILE_ERROR:
    case kernelmosaic::v1::VERDICT_UNSUPPORTED:
      return true;
    default:
      return false;
  }
}

absl::StatusOr<json> DescribeFiles(const fs::path& directory,
                                   const std::vector<std::string>& names) {
  json files = json::array();
  for (const std::string& name : names) {
    KMOSAIC_ASSIGN_OR_RETURN(std::string bytes, ReadFile(directory / name));
    files.push_back({{"name", name}, {"bytes", bytes.size()}, {"sha256", Sha256Hex(bytes)}});
  }
  return files;
}

}  // namespace

struct ArtifactCache::Impl {
  Options options;
  fs::path entries;
  fs::path builds;
  std::mutex mutex;
  std::condition_variable changed;
  std::set<std::string> building;
  uint64_t size_bytes = 0;

  fs::path EntryPath(const std::string& key) const { return entries / key.substr(0, 2) / key; }

  // Nothing when there is none or it is damaged (then it is removed).
  std::optional<CachedBuild> Load(const std::string& key) {
    fs::path directory = EntryPath(key);
    auto text = ReadFile(directory / kEntryFile);
    std::error_code error;
    if (!text.ok()) {
      if (fs::exists(directory, error)) Discard(key, "it has no entry.json");
      return std::nullopt;
    }
    json entry = json::parse(*text, nullptr, false);
    CachedBuild build;
    build.cached = true;
    build.directory = directory.string();
    try {
      if (entry.at("format") != kFormat || entry.at("key") != key) {
        Discard(key, "its entry.json is of another key or format");
        return std::nullopt;
      }
      std::string failure = entry.at("failure");
      if (!failure.empty()) {
        build.outcome.failure =
            ParseVerdict(failure).value_or(kernelmosaic::v1::VERDICT_COMPILE_ERROR);
      }
      build.outcome.reason = entry.at("reason");
      build.outcome.log = entry.at("log");
      build.outcome.log_dropped_bytes = entry.at("log_dropped_bytes");
      build.outcome.seconds = entry.at("seconds");
      build.outcome.failed_parts = entry.at("failed_parts").get<std::vector<std::string>>();
      for (const json& file : entry.at("files")) {
        std::string name = file.at("name");
        auto bytes = ReadFile(directory / name);
        if (!bytes.ok() || bytes->size() != file.at("bytes").get<uint64_t>() ||
            Sha256Hex(*bytes) != file.at("sha256").get<std::string>()) {
          Discard(key, absl::StrCat(name, " is not what was written"));
          return std::nullopt;
        }
        build.outcome.files.push_back(std::move(name));
      }
    } catch (const json::exception&) {
      Discard(key, "its entry.json is damaged");
      return std::nullopt;
    }
    Touch(directory);
    return build;
  }

  void Discard(const std::string& key, const std::string& why) {
    LogWarning("an artifact is damaged and will be built again", {{"key", key}, {"why", why}});
    RemoveEntry(EntryPath(key));
  }

  // By rename first, so that no reader sees half of it.
  void RemoveEntry(const fs::path& directory) {
    fs::path away = builds / absl::StrCat("removed-", absl::BytesToHexString(RandomBytes(12)));
    std::error_code error;
    fs::rename(directory, away, error);
    if (!error) fs::remove_all(away, error);
  }

  // The time of last use is the time of entry.json.
  static void Touch(const fs::path& directory) {
    (void)utimensat(AT_FDCWD, (directory / kEntryFile).c_str(), nullptr, 0);
  }

  absl::StatusOr<CachedBuild> Build(const std::string& key, const Builder& builder) {
    KMOSAIC_ASSIGN_OR_RETURN(PrivateDirectory work, PrivateDirectory::Make(builds));
    KMOSAIC_ASSIGN_OR_RETURN(BuildOutcome outcome, builder(work.path().string()));
    CachedBuild build;
    build.outcome = outcome;
    if (!IsKept(outcome.failure)) return build;

    KMOSAIC_ASSIGN_OR_RETURN(json files, DescribeFiles(work.path(), outcome.files));
    json entry = {{"format", kFormat},
                  {"key", key},
                  {"failure", outcome.ok() ? "" : VerdictName(outcome.failure)},
                  {"reason", outcome.reason},
                  {"log", outcome.log},
                  {"log_dropped_bytes", outcome.log_dropped_bytes},
                  {"seconds", outcome.seconds},
                  {"failed_parts", outcome.failed_parts},
                  {"files", files}};
    KMOSAIC_ASSIGN_OR_RETURN(PrivateDirectory parcel, PrivateDirectory::Make(builds));
    std::error_code error;
    for (const std::string& name : outcome.files) {
      fs::rename(work.path() / name, parcel.path() / name, error);
      if (error) return FsStatus(error, absl::StrCat("keep ", name));
      // The candidate that loads it runs as another user.
      fs::permissions(parcel.path() / name, fs::perms(0644), error);
    }
    KMOSAIC_RETURN_IF_ERROR(WriteFile(parcel.path() / kEntryFile,
                                      entry.dump(-1, ' ', false, json::error_handler_t::replace)));
    (void)chmod(parcel.path().c_str(), 0755);
    fs::path target = EntryPath(key);
    fs::create_directories(target.parent_path(), error);
    fs::rename(parcel.path(), target, error);
    if (error) {
      // Another process was first; its entry is as good if it is whole.
      if (auto theirs = Load(key); theirs.has_value()) {
        theirs->cached = false;
        return *theirs;
      }
      fs::rename(parcel.path(), target, error);
      if (error) return FsStatus(error, absl::StrCat("publish ", target.string()));
    }
    build.directory = target.string();
    MakeRoom(target);
    return build;
  }

  struct Found {
    fs::path directory;
    fs::file_time_type used;
    uint64_t bytes = 0;
  };

  std::vector<Found> List() const {
    std::vector<Found> found;
    std::error_code error;
    for (const fs::directory_entry& prefix : fs::directory_iterator(entries, error)) {
      for (const fs::directory_entry& entry : fs::directory_iterator(prefix.path(), error)) {
        Found one;
        one.directory = entry.path();
        one.used = fs::last_write_time(entry.path() / kEntryFile, error);
        if (error) one.used = fs::file_time_type::min();
        for (const fs::directory_entry& file : fs::directory_iterator(entry.path(), error)) {
          uint64_t bytes = file.file_size(error);
          if (!error) one.bytes += bytes;
        }
        found.push_back(std::move(one));
      }
    }
    return found;
  }

  // `newest` is never removed.
  void MakeRoom(const fs::path& newest) {
    std::vector<Found> found = List();
    uint64_t total = 0;
    for (const Found& one : found) total += one.bytes;
    std::sort(found.begin(), found.end(),
              [](const Found& a, const Found& b) { return a.used < b.used; });
    auto now = fs::file_time_type::clock::from_sys(
        std::chrono::time_point_cast<std::chrono::system_clock::duration>(
            absl::ToChronoTime(options.clock->Wall())));
    auto oldest_in_use = now - absl::ToChronoNanoseconds(options.keep);
    for (const Found& one : found) {
      if (total <= options.max_bytes) break;
      if (one.directory == newest || one.used > oldest_in_use) continue;
      RemoveEntry(one.directory);
      total -= one.bytes;
    }
    std::lock_guard lock(mutex);
    size_bytes = total;
  }
};

ArtifactCache::ArtifactCache(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ArtifactCache::~ArtifactCache() = default;

absl::StatusOr<std::unique_ptr<ArtifactCache>> ArtifactCache::Open(Options options) {
  auto impl = std::make_unique<Impl>();
  impl->entries = fs::path(options.root) / "entries";
  impl->builds = fs::path(options.root) / "build";
  impl->options = std::move(options);
  std::error_code error;
  for (const fs::path& folder : {impl->entries, impl->builds}) {
    fs::create_directories(folder, error);
    if (error) return FsStatus(error, absl::StrCat("cache directory ", folder.string()));
  }
  RemoveAbandoned(impl->builds);
  auto probe = PrivateDirectory::Make(impl->builds);
  if (!probe.ok()) return Annotate(probe.status(), "the cache directory cannot be written");
  impl->MakeRoom({});
  return std::unique_ptr<ArtifactCache>(new ArtifactCache(std::move(impl)));
}

absl::StatusOr<CachedBuild> ArtifactCache::GetOrBuild(const std::string& key,
                                                      const Builder& builder,
                                                      const std::function<bool()>& cancelled) {
  if (key.size() < 8 ||
      !std::all_of(key.begin(), key.end(), [](unsigned char c) { return std::isxdigit(c) != 0; })) {
    return absl::InvalidArgumentError(absl::StrCat("cache key '", key, "' is not a digest"));
  }
  {
    std::unique_lock lock(impl_->mutex);
    while (impl_->building.count(key) != 0) {
      if (cancelled())
        return absl::CancelledError("cancelled while another call built the same source");
      impl_->changed.wait_for(lock, std::chrono::milliseconds(100));
    }
    impl_->building.insert(key);
  }
  absl::Cleanup done = [this, &key] {
    {
      std::lock_guard lock(impl_->mutex);
      impl_->building.erase(key);
    }
    impl_->changed.notify_all();
  };
  if (auto found = impl_->Load(key); found.has_value()) return *std::move(found);
  return impl_->Build(key, builder);
}

uint64_t ArtifactCache::size_bytes() const {
  std::lock_guard lock(impl_->mutex);
  return impl_->size_bytes;
}

}  // namespace kmosaic
