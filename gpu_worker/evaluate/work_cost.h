// Counted work of the emulated device, and one figure to compare two solutions by.
#ifndef KMOSAIC_GPU_WORKER_EVALUATE_WORK_COST_H_
#define KMOSAIC_GPU_WORKER_EVALUATE_WORK_COST_H_

#include <nlohmann/json.hpp>

#include "kernelmosaic/v1/types.pb.h"

namespace kmosaic {

// cost = global load bytes + global store bytes
//        + shared bytes / 8
//        + 2 * threads + 4 * barriers + 2 * warp operations + 32 * atomics
//        + 10,000 * launches
//
// in bytes of global traffic. An estimate of ours, not a time. The weights follow what
// GPUs of the Hopper class have per second: about 4 TB/s of memory traffic; shared memory
// about 8 times that (128 bytes a clock and multiprocessor); an atomic moves one 32-byte
// sector; the rest are orders of magnitude only. A launch takes about a microsecond, 4 MB
// of traffic, at full shapes; here shapes are reduced and it would drown all else, so it
// counts for 10 kB.
double WorkCost(const kernelmosaic::v1::WorkReport& work);

// Of a "work" object from a candidate's reply; fields that are missing or not natural
// numbers stay 0. Fills cost.
kernelmosaic::v1::WorkReport ParseWork(const nlohmann::json& work);

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_EVALUATE_WORK_COST_H_
