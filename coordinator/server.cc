#include "coordinator/server.h"

#include <google/protobuf/util/time_util.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <future>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/base/version.h"
#include "common/http/http_server.h"
#include "common/metrics/metrics.h"
#include "common/rpc/server.h"
#include "coordinator/fleet_reporter.h"
#include "coordinator/http/service_discovery.h"
#include "coordinator/metrics.h"
#include "coordinator/placement/placement.h"
#include "coordinator/queue/queue_metrics.h"
#include "coordinator/queue/task_queue.h"
#include "coordinator/service/admin_service.h"
#include "coordinator/service/audit_log.h"
#include "coordinator/service/blob_files.h"
#include "coordinator/service/blob_service.h"
#include "coordinator/service/dataset_service.h"
#include "coordinator/service/job_service.h"
#include "coordinator/service/lease_slots.h"
#include "coordinator/service/runner_service.h"
#include "coordinator/service/score_service.h"
#include "coordinator/service/worker_registry.h"
#include "coordinator/store/backup.h"
#include "coordinator/store/drain_orders.h"
#include "coordinator/store/rocksdb_task_store.h"

namespace kmosaic {
namespace {

// How long a scrape of /sd/prometheus waits for the queue.
constexpr std::chrono::seconds kRunnersPatience(5);

absl::Status PrepareDirectory(const std::string& directory) {
  if (directory.empty()) {
    return absl::InvalidArgumentError("no data directory: name one with --data-dir");
  }
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) {
    return Annotate(ErrnoStatus(error.value(), absl::StrCat("make ", directory)), "data directory");
  }
  if (access(directory.c_str(), R_OK | W_OK | X_OK) != 0) {
    return Annotate(ErrnoStatus(errno, absl::StrCat("write to ", directory)),
                    "data directory (give this user the right, or name another with --data-dir)");
  }
  return absl::OkStatus();
}

// Empty when some worker could serve every call that the job's conversations will make.
std::string WhyUnsatisfiable(const Placement& placement, const v1::JobSpec& spec) {
  std::vector<v1::Role> roles = {v1::ROLE_COMPILE, v1::ROLE_VERIFY};
  if (spec.evaluation().benchmark() && spec.evaluation().device() == v1::DEVICE_KIND_CUDA) {
    roles.push_back(v1::ROLE_BENCHMARK);
  }
  for (v1::Role role : roles) {
    SlotRequirement requirement{
        role,
        spec.evaluation().device(),
        {spec.evaluation().require().begin(), spec.evaluation().require().end()}};
    absl::Status status = placement.CheckSatisfiable(requirement);
    if (!status.ok()) return std::string(status.message());
  }
  return "";
}

class Server : public CoordinatorServer {
 public:
  Server() : metrics_("kmosaic-coordinator") {}

  absl::Status Start(const Options& options, const Clock& clock);

  const std::string& target() const override { return rpc_->target(); }
  std::string http_address() const override { return http_->address(); }
  void StopServing() override {
    healthy_ = false;
    rpc_->SetServing(false);
  }

 private:
  std::string ServiceDiscovery() const;
  absl::StatusOr<v1::BackupResponse> Backup(const std::string& data_dir,
                                            const std::string& directory, const Clock& clock) const;

  // Order is dependency: what comes later uses what comes before.
  Metrics metrics_;
  QueueMetrics queue_metrics_{metrics_};
  PlacementMetrics placement_metrics_{metrics_};
  ScoreMetrics score_metrics_{metrics_};
  ExportMetrics export_metrics_{metrics_};
  std::atomic<bool> healthy_ = true;
  std::vector<std::unique_ptr<RocksDbTaskStore>> stores_;
  std::unique_ptr<BlobFiles> blobs_;
  std::unique_ptr<AuditLog> audit_;
  std::unique_ptr<Placement> placement_;
  std::unique_ptr<TaskQueue> queue_;
  std::unique_ptr<LeaseSlots> lease_slots_;
  std::unique_ptr<FleetReporter> reporter_;
  std::unique_ptr<HttpServer> http_;
  std::unique_ptr<JobService> job_service_;
  std::unique_ptr<RunnerService> runner_service_;
  std::unique_ptr<WorkerRegistry> worker_registry_;
  std::unique_ptr<ScoreService> score_service_;
  std::unique_ptr<DatasetService> dataset_service_;
  std::unique_ptr<BlobService> blob_service_;
  std::unique_ptr<AdminService> admin_service_;
  std::unique_ptr<RpcServer> rpc_;
};

absl::Status Server::Start(const Options& options, const Clock& clock) {
  KMOSAIC_RETURN_IF_ERROR(PrepareDirectory(options.data_dir));
  size_t shards = static_cast<size_t>(options.shards);
  size_t stores = std::max(shards, CountStores(options.data_dir));
  std::vector<TaskStore*> opened;
  for (size_t shard = 0; shard < stores; ++shard) {
    KMOSAIC_ASSIGN_OR_RETURN(std::unique_ptr<RocksDbTaskStore> store,
                             RocksDbTaskStore::Open(StoreDirectory(options.data_dir, shard), {}));
    opened.push_back(store.get());
    stores_.push_back(std::move(store));
  }
  KMOSAIC_ASSIGN_OR_RETURN(blobs_, BlobFiles::Open(BlobDirectory(options.data_dir)));
  KMOSAIC_ASSIGN_OR_RETURN(audit_, AuditLog::Open(options.data_dir + "/audit.jsonl", clock));

  TaskQueueOptions queue_options;
  queue_options.rules = options.queue;
  queue_options.disk = options.disk;
  queue_options.free_bytes = [directory = options.data_dir] { return FreeBytes(directory); };
  queue_options.on_fatal = [this, on_fatal = options.on_fatal](const absl::Status& status) {
    healthy_ = false;
    on_fatal(status);
  };
  KMOSAIC_ASSIGN_OR_RETURN(queue_,
                           TaskQueue::Start(queue_options, opened, shards, clock, queue_metrics_));
  PlacementTable::Options placement = options.placement;
  KMOSAIC_ASSIGN_OR_RETURN(placement.drained, ReadDrainOrders(*opened[0], clock.Wall()));
  placement_ = std::make_unique<Placement>(
      std::move(placement), clock, [this](v1::Role role, absl::Duration waited) {
        placement_metrics_.wait_seconds.Add({{"role", RoleName(role)}}, SecondsBuckets())
            .Observe(absl::ToDoubleSeconds(waited));
      });
  lease_slots_ = std::make_unique<LeaseSlots>(*queue_, *placement_);
  reporter_ = std::make_unique<FleetReporter>(*placement_, placement_metrics_);

  HttpServer::Options http;
  http.listen = options.http_listen;
  http.metrics = &metrics_;
  http.healthy = [this] { return healthy_.load(); };
  http.handlers["/sd/prometheus"] = [this] {
    return HttpReply{200, "application/json", ServiceDiscovery()};
  };
  KMOSAIC_ASSIGN_OR_RETURN(http_, HttpServer::Start(std::move(http)));

  v1::Server self;
  self.set_version(kVersion);
  self.set_incarnation(queue_->identity().incarnation);
  self.set_epoch(queue_->identity().epoch);
  self.set_schema_version(queue_->identity().schema_version);
  *self.mutable_started() =
      google::protobuf::util::TimeUtil::NanosecondsToTimestamp(absl::ToUnixNanos(clock.Wall()));
  self.set_http_endpoint(http_->address());

  JobService::Options job_options;
  job_options.unsatisfiable = [this](const v1::JobSpec& spec) {
    return WhyUnsatisfiable(*placement_, spec);
  };
  job_options.audit = audit_.get();
  job_service_ = std::make_unique<JobService>(std::move(job_options), *queue_);
  runner_service_ = std::make_unique<RunnerService>(*queue_, *placement_, *lease_slots_, clock);
  worker_registry_ = std::make_unique<WorkerRegistry>(*placement_);
  score_service_ =
      std::make_unique<ScoreService>(ScoreService::Options{}, *placement_, clock, score_metrics_);
  dataset_service_ = std::make_unique<DatasetService>(*queue_, export_metrics_);
  blob_service_ = std::make_unique<BlobService>(*blobs_);
  admin_service_ = std::make_unique<AdminService>(
      std::move(self), *queue_, *placement_, audit_.get(),
      [this, data_dir = options.data_dir, &clock](const std::string& directory) {
        return Backup(data_dir, directory, clock);
      });

  RpcServer::Options rpc;
  rpc.listen = options.listen;
  rpc.grace = options.grace;
  rpc.services = {job_service_.get(),   runner_service_.get(),  worker_registry_.get(),
                  score_service_.get(), dataset_service_.get(), blob_service_.get(),
                  admin_service_.get()};
  KMOSAIC_ASSIGN_OR_RETURN(rpc_, RpcServer::Start(rpc));
  return absl::OkStatus();
}

absl::StatusOr<v1::BackupResponse> Server::Backup(const std::string& data_dir,
                                                  const std::string& directory,
                                                  const Clock& clock) const {
  absl::Duration begin = clock.Steady();
  std::vector<const RocksDbTaskStore*> stores;
  for (const auto& store : stores_) stores.push_back(store.get());
  KMOSAIC_ASSIGN_OR_RETURN(BackupSize size, MakeBackup(stores, data_dir, directory));
  v1::BackupResponse response;
  response.set_files(size.files);
  response.set_bytes(size.bytes);
  response.set_seconds(absl::ToDoubleSeconds(clock.Steady() - begin));
  return response;
}

std::string Server::ServiceDiscovery() const {
  auto runners = std::make_shared<std::promise<std::vector<v1::Runner>>>();
  std::future<std::vector<v1::Runner>> future = runners->get_future();
  queue_->ListRunners([runners](absl::StatusOr<std::vector<v1::Runner>> list) {
    runners->set_value(list.ok() ? *std::move(list) : std::vector<v1::Runner>());
  });
  std::vector<v1::Runner> list;
  if (future.wait_for(kRunnersPatience) == std::future_status::ready) list = future.get();
  return ServiceDiscoveryJson(http_->address(), placement_->Workers(), list);
}

}  // namespace

absl::StatusOr<std::unique_ptr<CoordinatorServer>> CoordinatorServer::Start(const Options& options,
                                                                            const Clock& clock) {
  auto server = std::make_unique<Server>();
  KMOSAIC_RETURN_IF_ERROR(server->Start(options, clock));
  return server;
}

}  // namespace kmosaic
