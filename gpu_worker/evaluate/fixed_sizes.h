// Solutions that hold a task's sizes as numbers of their own.
#ifndef KMOSAIC_GPU_WORKER_EVALUATE_FIXED_SIZES_H_
#define KMOSAIC_GPU_WORKER_EVALUATE_FIXED_SIZES_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "kernelmosaic/v1/types.pb.h"

namespace kmosaic {

// The part of a solution that can hold sizes to work with: without comments, without
// get_inputs and get_init_inputs (many files repeat the task's own), and without
// module-level numbers that no class reads.
std::string CodeThatRuns(std::string_view solution);

// Which of the reduced sizes (`shapes`: name -> reduced value; `sizes`: name -> value in
// the reference's source) have their full value as an integer literal in CodeThatRuns(`solution`).
// Such a solution may be right at full shapes and wrong at reduced ones. Name -> full value.
std::map<std::string, int64_t> FixedSizes(std::string_view solution,
                                          const std::map<std::string, int64_t>& shapes,
                                          const std::map<std::string, int64_t>& sizes);

// Whether a verdict may come from shapes that a solution was not written for.
bool MayComeFromShapes(kernelmosaic::v1::Verdict verdict);

// "batch_size=256, dim=1024".
std::string SizesText(const std::map<std::string, int64_t>& sizes);

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_EVALUATE_FIXED_SIZES_H_
