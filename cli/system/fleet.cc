#include "cli/system/fleet.h"

#include <grpcpp/client_context.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/rpc/channel.h"
#include "kernelmosaic/v1/admin.grpc.pb.h"

namespace kmosaic {
namespace {

namespace v1 = kernelmosaic::v1;

constexpr absl::Duration kPause = absl::Milliseconds(50);
constexpr absl::Duration kLongestCall = absl::Seconds(10);

// -1 when the coordinator does not answer.
int64_t WorkersThatTakeWork(v1::AdminService::Stub& stub, Interrupt& stop) {
  grpc::ClientContext context;
  SetDeadline(context, kLongestCall);
  Interrupt::Scope scope(stop, [&context] { context.TryCancel(); });
  v1::ListWorkersResponse fleet;
  if (!stub.ListWorkers(&context, v1::ListWorkersRequest(), &fleet).ok()) return -1;
  return std::count_if(fleet.workers().begin(), fleet.workers().end(), [](const auto& worker) {
    return worker.state() == v1::WORKER_STATE_READY || worker.state() == v1::WORKER_STATE_BUSY;
  });
}

}  // namespace

absl::Status AwaitWorkers(const std::string& target, int count, absl::Duration patience,
                          const Clock& clock, Interrupt& stop) {
  if (count == 0) return absl::OkStatus();
  auto stub = v1::AdminService::NewStub(MakeChannel(target));
  absl::Duration give_up = clock.Steady() + patience;
  while (true) {
    int64_t listed = WorkersThatTakeWork(*stub, stop);
    if (listed >= count) return absl::OkStatus();
    if (stop.triggered()) return absl::CancelledError("interrupted while the workers register");
    if (clock.Steady() >= give_up) {
      std::string seen = listed < 0 ? std::string("the coordinator does not answer")
                                    : absl::StrCat("the coordinator lists ", listed, " of ", count);
      return absl::DeadlineExceededError(absl::StrCat("the workers serve, but after ",
                                                      absl::FormatDuration(patience), " ", seen,
                                                      "; look into the logs of both"));
    }
    stop.WaitFor(kPause);
  }
}

}  // namespace kmosaic
