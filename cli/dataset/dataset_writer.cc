#include "cli/dataset/dataset_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/base/version.h"

namespace kmosaic {
namespace {

namespace fs = std::filesystem;
namespace v1 = kernelmosaic::v1;
using nlohmann::ordered_json;

constexpr const char* kSplits[] = {"train", "validation", "test"};
constexpr char kManifest[] = "manifest.json";
constexpr char kCard[] = "README.md";
constexpr size_t kBufferBytes = 1 << 20;

std::string FileOfSplit(const std::string& split) { return absl::StrCat(split, ".jsonl"); }

std::vector<std::string> AllNames() {
  std::vector<std::string> names = {kManifest, kCard};
  for (const char* split : kSplits) names.push_back(FileOfSplit(split));
  return names;
}

bool IsOurManifest(const fs::path& path) {
  std::ifstream file(path);
  auto json = nlohmann::json::parse(file, nullptr, false);
  return json.is_object() && json.contains("kernelmosaic_version");
}

absl::Status SyncFolder(const std::string& folder) {
  int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("cannot open ", folder));
  int failed = fsync(fd);
  int error = errno;
  close(fd);
  if (failed != 0) return ErrnoStatus(error, absl::StrCat("cannot make ", folder, " durable"));
  return absl::OkStatus();
}

ordered_json ManifestJson(const DatasetInfo& info, const DatasetCounts& counts,
                          const v1::ExportSummary& summary) {
  ordered_json json = {
      {"kernelmosaic_version", kVersion},
      {"format", info.format},
      {"created", absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", info.created, absl::UTCTimeZone())},
      {"jobs", info.jobs},
      {"filters",
       {{"include_emulated", info.include_emulated},
        {"include_unverified", info.include_unverified},
        {"min_speedup", nullptr}}},
      {"items", summary.items()},
      {"rows", summary.rows()},
      {"rows_verified_on_the_emulated_device_only", counts.emulated},
      {"rows_without_a_verified_solution", counts.unverified},
      {"splits", ordered_json::object()},
      {"dropped", ordered_json::object()}};
  if (info.min_speedup >= 0) json["filters"]["min_speedup"] = info.min_speedup;
  for (const auto& [split, rows] : counts.rows) {
    json["splits"][split] = {{"file", FileOfSplit(split)}, {"rows", rows}};
  }
  std::map<std::string, uint64_t> dropped(summary.dropped().begin(), summary.dropped().end());
  for (const auto& [reason, number] : dropped) json["dropped"][reason] = number;
  return json;
}

// Whether the row says yes in that column.
bool Says(const nlohmann::json& row, const char* column) {
  auto value = row.find(column);
  return value != row.end() && value->is_boolean() && value->get<bool>();
}

}  // namespace

// A temporary file beside its final name. Removes itself unless it was given that name.
class DatasetWriter::File {
 public:
  File(std::string temporary, std::string final_name, int fd)
      : temporary_(std::move(temporary)), final_(std::move(final_name)), fd_(fd) {}
  ~File() {
    if (fd_ >= 0) close(fd_);
    if (!renamed_) unlink(temporary_.c_str());
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  absl::Status Append(const std::string& text) {
    buffer_ += text;
    return buffer_.size() < kBufferBytes ? absl::OkStatus() : Flush();
  }

  absl::Status MakeDurable() {
    KMOSAIC_RETURN_IF_ERROR(Flush());
    if (fsync(fd_) != 0)
      return ErrnoStatus(errno, absl::StrCat("cannot make ", temporary_, " durable"));
    return absl::OkStatus();
  }

  absl::Status GiveName() {
    if (rename(temporary_.c_str(), final_.c_str()) != 0) {
      return ErrnoStatus(errno, absl::StrCat("cannot name ", final_));
    }
    renamed_ = true;
    return absl::OkStatus();
  }

 private:
  absl::Status Flush() {
    size_t written = 0;
    while (written < buffer_.size()) {
      ssize_t got = write(fd_, buffer_.data() + written, buffer_.size() - written);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return ErrnoStatus(errno, absl::StrCat("cannot write ", temporary_));
      written += static_cast<size_t>(got);
    }
    buffer_.clear();
    return absl::OkStatus();
  }

  std::string temporary_;
  std::string final_;
  int fd_;
  std::string buffer_;
  bool renamed_ = false;
};

DatasetWriter::DatasetWriter(std::string folder) : folder_(std::move(folder)) {}
DatasetWriter::~DatasetWriter() = default;

absl::StatusOr<std::unique_ptr<DatasetWriter>> DatasetWriter::Open(const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return ErrnoStatus(error.value(), absl::StrCat("cannot make the folder ", folder));
  if (!IsOurManifest(fs::path(folder) / kManifest)) {
    for (const std::string& name : AllNames()) {
      if (!fs::exists(fs::path(folder) / name, error)) continue;
      return absl::FailedPreconditionError(
          absl::StrCat(folder, " holds ", name,
                       ", which is not of a complete earlier export; give another folder "
                       "with --out, or remove it"));
    }
  }
  return std::unique_ptr<DatasetWriter>(new DatasetWriter(folder));
}

absl::StatusOr<DatasetWriter::File*> DatasetWriter::Temporary(const std::string& name) {
  auto& slot = files_[name];
  if (slot == nullptr) {
    std::string temporary = absl::StrCat(folder_, "/.", name, ".", RandomId("part"));
    int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0) {
      absl::Status status = ErrnoStatus(errno, absl::StrCat("cannot write ", temporary));
      files_.erase(name);
      return status;
    }
    slot = std::make_unique<File>(temporary, absl::StrCat(folder_, "/", name), fd);
  }
  return slot.get();
}

absl::Status DatasetWriter::Add(const v1::ExportRow& row) {
  bool known = false;
  for (const char* split : kSplits) known = known || row.split() == split;
  if (!known)
    return absl::DataLossError(absl::StrCat("a row is of the unknown split \"", row.split(), "\""));
  auto json = nlohmann::json::parse(row.json(), nullptr, false);
  if (!json.is_object() || row.json().find('\n') != std::string::npos) {
    return absl::DataLossError("a row is not one line with one JSON object");
  }
  KMOSAIC_ASSIGN_OR_RETURN(File * file, Temporary(FileOfSplit(row.split())));
  KMOSAIC_RETURN_IF_ERROR(file->Append(row.json() + "\n"));
  ++counts_.rows[row.split()];
  if (!Says(json, "verified")) {
    ++counts_.unverified;
  } else if (Says(json, "emulated")) {  // of an unverified row: where it was judged
    ++counts_.emulated;
  }
  return absl::OkStatus();
}

absl::Status DatasetWriter::WriteWhole(const std::string& name, const std::string& text) {
  KMOSAIC_ASSIGN_OR_RETURN(File * file, Temporary(name));
  return file->Append(text);
}

absl::Status DatasetWriter::Finish(const DatasetInfo& info, const v1::ExportSummary& summary) {
  KMOSAIC_RETURN_IF_ERROR(WriteWhole(kCard, DatasetCard(info, counts_, summary)));
  KMOSAIC_RETURN_IF_ERROR(
      WriteWhole(kManifest, ManifestJson(info, counts_, summary).dump(2) + "\n"));
  for (auto& [name, file] : files_) KMOSAIC_RETURN_IF_ERROR(file->MakeDurable());

  std::string manifest = absl::StrCat(folder_, "/", kManifest);
  if (unlink(manifest.c_str()) != 0 && errno != ENOENT) {
    return ErrnoStatus(errno, absl::StrCat("cannot replace ", manifest));
  }
  for (const std::string& name : AllNames()) {
    // A split that the earlier export had and this one has not.
    if (files_.count(name) == 0) unlink(absl::StrCat(folder_, "/", name).c_str());
  }
  for (auto& [name, file] : files_) {
    if (name != kManifest) KMOSAIC_RETURN_IF_ERROR(file->GiveName());
  }
  KMOSAIC_RETURN_IF_ERROR(SyncFolder(folder_));
  KMOSAIC_RETURN_IF_ERROR(files_[kManifest]->GiveName());
  return SyncFolder(folder_);
}

}  // namespace kmosaic
