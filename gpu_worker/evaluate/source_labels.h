// Labels from the text of a solution. They never decide anything: words prove neither
// guilt nor innocence.
#ifndef KMOSAIC_GPU_WORKER_EVALUATE_SOURCE_LABELS_H_
#define KMOSAIC_GPU_WORKER_EVALUATE_SOURCE_LABELS_H_

#include <string>
#include <string_view>
#include <vector>

namespace kmosaic {

// "library call: torch.matmul (line 12)", "library call: cublas (line 3)", "try/except
// (line 40)", "stream (line 8)", at most one per kind and name, in the order of the
// text. Comments of Python and of C++ are not looked at; C++ inside Python strings is.
std::vector<std::string> SourceLabels(std::string_view source);

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_EVALUATE_SOURCE_LABELS_H_
