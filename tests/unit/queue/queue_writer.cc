// A queue on disk that works through one job and prints the number of each item whose
// completion was acknowledged, until killed.
#include <cstdio>
#include <string>

#include "common/base/clock.h"
#include "coordinator/queue/queue_metrics.h"
#include "coordinator/queue/task_queue.h"
#include "coordinator/store/rocksdb_task_store.h"
#include "tests/unit/queue/await.h"

namespace {

using namespace kmosaic;

Submission OneJob() {
  v1::SubmitRequest request;
  request.set_request_id("the only one");
  v1::JobSpec& spec = *request.mutable_spec();
  spec.add_views()->add_views(v1::VIEW_SPEC);
  spec.set_samples(1000);
  spec.mutable_endpoint()->set_kind(v1::ENDPOINT_KIND_REPLAY);
  for (int i = 0; i < 100; ++i) {
    v1::TaskSpec& task = *request.add_tasks();
    task.set_id("task" + std::to_string(i));
    task.set_spec("y = x");
    task.set_contract(v1::CONTRACT_MODELNEW);
    task.mutable_oracle()->set_reference("class Model: pass");
  }
  SubmissionBuilder builder({});
  if (!builder.Add(request).ok()) return {};
  return *builder.Finish();
}

v1::RecordStepRequest StepOf(const v1::LeaseToken& token, uint32_t number) {
  v1::RecordStepRequest request;
  *request.mutable_token() = token;
  request.mutable_step()->set_number(number);
  if (number == 0) {
    request.mutable_step()->mutable_reply()->set_content(std::string(3000, 'r'));
  } else {
    request.mutable_step()->mutable_result()->set_best(true);
  }
  return request;
}

int Work(TaskQueue& queue) {
  Await<absl::StatusOr<v1::SubmitResponse>> submitted;
  queue.Submit(OneJob(), submitted.done());
  if (!submitted.Get().ok()) return 5;
  for (;;) {
    v1::RunnerSyncRequest request;
    request.set_runner("runner");
    request.set_free(4);
    Await<absl::StatusOr<v1::RunnerSyncResponse>> synced;
    queue.Sync(request, synced.done());
    auto answer = synced.Get();
    if (!answer.ok()) return 6;
    for (const v1::Lease& lease : answer->granted()) {
      for (uint32_t number = static_cast<uint32_t>(lease.steps_size()); number < 2; ++number) {
        Await<absl::Status> recorded;
        queue.RecordStep(StepOf(lease.token(), number), recorded.done());
        if (!recorded.Get().ok()) return 7;
      }
      v1::CompleteRequest completion;
      *completion.mutable_token() = lease.token();
      Await<absl::Status> completed;
      queue.Complete(completion, completed.done());
      if (!completed.Get().ok()) return 8;
      std::printf("%u\n", lease.token().item().number());
      std::fflush(stdout);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  auto store = RocksDbTaskStore::Open(argv[1], {});
  if (!store.ok()) return 3;
  SystemClock clock;
  Metrics metrics("queue_writer");
  QueueMetrics queue_metrics(metrics);
  auto queue = TaskQueue::Start({}, **store, clock, queue_metrics);
  if (!queue.ok()) return 4;
  return Work(**queue);
}
