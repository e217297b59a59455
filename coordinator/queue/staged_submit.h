// A submission that is too large for one batch: each piece is written with a batch of its
// own, so that others are served in between.
#ifndef KMOSAIC_COORDINATOR_QUEUE_STAGED_SUBMIT_H_
#define KMOSAIC_COORDINATOR_QUEUE_STAGED_SUBMIT_H_

#include <memory>

#include "coordinator/queue/queue_shard.h"
#include "coordinator/queue/submission.h"

namespace kmosaic {

// `shard` must outlive the submission, which answers once.
void SubmitInPieces(QueueShard& shard, std::shared_ptr<const Submission> submission,
                    TaskQueue::Done<v1::SubmitResponse> done);

}  // namespace kmosaic

#endif  // KMOSAIC_COORDINATOR_QUEUE_STAGED_SUBMIT_H_
