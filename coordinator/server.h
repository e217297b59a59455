// The coordinator as a value: everything that kmosaic-coordinator serves.
#ifndef KMOSAIC_COORDINATOR_SERVER_H_
#define KMOSAIC_COORDINATOR_SERVER_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "coordinator/placement/placement_table.h"
#include "coordinator/queue/queue_rules.h"
#include "coordinator/store/disk_space.h"

namespace kmosaic {

class CoordinatorServer {
 public:
  struct Options {
    // gRPC: HOST:PORT (port 0 takes a free one) or unix:PATH.
    std::string listen = "127.0.0.1:0";
    // /metrics, /healthz and /sd/prometheus: HOST:PORT.
    std::string http_listen = "127.0.0.1:0";
    // Everything durable; made when it is not there. One coordinator at a time.
    std::string data_dir;
    // Stores and threads of the queue. More of them than before take new jobs from now on;
    // with fewer the further ones finish what they have.
    int64_t shards = 1;
    QueueRules queue;
    DiskMarks disk;
    PlacementTable::Options placement;
    // How long running calls may take to end when the server stops.
    absl::Duration grace = absl::Seconds(2);
    // Called once, from a thread of the server, when the store failed: nothing more will be
    // acknowledged, and the process should end with a code other than 0.
    std::function<void(const absl::Status&)> on_fatal = [](const absl::Status&) {};
  };

  // Serves while it lives. `clock` must outlive it. Errors name what is in the way: the data
  // directory (not writable, in use, of a newer version) or an address that is taken.
  static absl::StatusOr<std::unique_ptr<CoordinatorServer>> Start(const Options& options,
                                                                  const Clock& clock);
  virtual ~CoordinatorServer() = default;

  // What clients dial.
  virtual const std::string& target() const = 0;
  // HOST:PORT.
  virtual std::string http_address() const = 0;
  // The health services say so at once; running calls go on.
  virtual void StopServing() = 0;
};

}  // namespace kmosaic

#endif  // KMOSAIC_COORDINATOR_SERVER_H_
