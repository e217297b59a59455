// What compilers made, by content. On a disk that several workers may share.
//
//   <root>/entries/<first two digits>/<key>/entry.json, manifest.json, *.so
//   <root>/build/<random>/        one per running build, locked by its builder
//
// A build happens in a directory of its own and is published by one rename, so readers
// see all or nothing, and no lock outlives its process. Every use checks size and
// SHA-256 of every file; a damaged entry is thrown away and built again.
#ifndef KMOSAIC_GPU_WORKER_COMPILE_ARTIFACT_CACHE_H_
#define KMOSAIC_GPU_WORKER_COMPILE_ARTIFACT_CACHE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "kernelmosaic/v1/types.pb.h"

namespace kmosaic {

// How a build ended, good or bad.
struct BuildOutcome {
  // UNSPECIFIED when it succeeded, at least in part; else COMPILE_ERROR and so on.
  kernelmosaic::v1::Verdict failure = kernelmosaic::v1::VERDICT_UNSPECIFIED;
  // Keys of the parts that do not compile: `reason` is about the first, `log` has all.
  std::vector<std::string> failed_parts;
  std::string reason;
  std::string log;
  uint64_t log_dropped_bytes = 0;
  // Wall seconds that the build took when it was made.
  double seconds = 0;
  // Names, in the build directory, of what has to be kept.
  std::vector<std::string> files;

  bool ok() const { return failure == kernelmosaic::v1::VERDICT_UNSPECIFIED; }
};

struct CachedBuild {
  BuildOutcome outcome;
  // Directory of the entry; stays while the object lives and for the cache's `keep`
  // time after.
  std::string directory;
  // It was there already.
  bool cached = false;
};

// Thread-safe.
class ArtifactCache {
 public:
  struct Options {
    std::string root;
    // Entries are removed, least recently used first, when they hold more than this.
    uint64_t max_bytes = uint64_t{4} << 30;
    // An entry used within this time is not removed: a candidate may be loading it.
    absl::Duration keep = absl::Minutes(10);
    // Must outlive the cache; tells the age of entries.
    const Clock* clock = nullptr;
  };

  // Makes the folders, removes builds whose process is gone. PERMISSION_DENIED or
  // another status with path and cause when the folder cannot be used.
  static absl::StatusOr<std::unique_ptr<ArtifactCache>> Open(Options options);
  ~ArtifactCache();

  // Fills a directory; an error status (machine trouble) is passed on and not kept.
  using Builder = std::function<absl::StatusOr<BuildOutcome>(const std::string& directory)>;

  // The entry of `key` (hex), or what `builder` makes of it. Callers with the same key
  // at the same time wait for one builder; when that one gives up, the next one builds.
  // Good results, compile errors and UNSUPPORTED are kept; other failures are not.
  // CANCELLED when `cancelled` turns true while waiting.
  absl::StatusOr<CachedBuild> GetOrBuild(const std::string& key, const Builder& builder,
                                         const std::function<bool()>& cancelled);

  // Bytes of all entries, as of the last look.
  uint64_t size_bytes() const;

 private:
  struct Impl;
  explicit ArtifactCache(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_COMPILE_ARTIFACT_CACHE_H_
