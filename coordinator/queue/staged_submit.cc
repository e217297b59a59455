#include "coordinator/queue/staged_submit.h"

#include <malloc.h>

#include <utility>

namespace kmosaic {
namespace {

// Keeps itself alive until it is answered.
class StagedSubmit : public std::enable_shared_from_this<StagedSubmit> {
 public:
  StagedSubmit(QueueShard& shard, std::shared_ptr<const Submission> submission,
               TaskQueue::Done<v1::SubmitResponse> done)
      : shard_(shard), submission_(std::move(submission)), done_(std::move(done)) {}
  ~StagedSubmit() {
    submission_.reset();
    // Hundreds of MiB in small pieces, which the allocator would keep.
    malloc_trim(0);
  }

  void Begin() {
    Post([this](const StepContext& context, Effects& effects) -> QueueShard::Reply {
      absl::StatusOr<Sequencer::Staged> staged =
          shard_.sequencer().Stage(*submission_, context, effects);
      if (!staged.ok()) return Last(staged.status());
      if (staged->existed.has_value()) return Last(*std::move(staged->existed));
      number_ = staged->number;
      return [self = shared_from_this()] { self->Next(); };
    });
  }

 private:
  void Post(QueueShard::Apply apply) {
    shard_.Post(
        [self = shared_from_this(), apply = std::move(apply)](
            const StepContext& context, Effects& effects) { return apply(context, effects); },
        [self = shared_from_this()](absl::Status status) { self->done_(std::move(status)); });
  }

  void Next() {
    Post([this](const StepContext& context, Effects& effects) -> QueueShard::Reply {
      if (first_ == submission_->tasks.size()) {
        return Last(shard_.sequencer().FinishSubmit(number_, *submission_, context, effects));
      }
      first_ = shard_.sequencer().StageTasks(number_, *submission_, first_, effects);
      return [self = shared_from_this()] { self->Next(); };
    });
  }

  QueueShard::Reply Last(absl::StatusOr<v1::SubmitResponse> result) {
    return [self = shared_from_this(), result = std::move(result)] { self->done_(result); };
  }

  QueueShard& shard_;
  std::shared_ptr<const Submission> submission_;
  const TaskQueue::Done<v1::SubmitResponse> done_;
  uint64_t number_ = 0;
  size_t first_ = 0;
};

}  // namespace

void SubmitInPieces(QueueShard& shard, std::shared_ptr<const Submission> submission,
                    TaskQueue::Done<v1::SubmitResponse> done) {
  std::make_shared<StagedSubmit>(shard, std::move(submission), std::move(done))->Begin();
}

}  // namespace kmosaic
