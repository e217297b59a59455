// The views of a task.
#ifndef KMOSAIC_COMMON_BASE_VIEWS_H_
#define KMOSAIC_COMMON_BASE_VIEWS_H_

#include "kernelmosaic/v1/types.pb.h"

namespace kmosaic {

// Whether the task has the view's text.
bool HasView(const kernelmosaic::v1::TaskSpec& task, kernelmosaic::v1::View view);

}  // namespace kmosaic

#endif  // KMOSAIC_COMMON_BASE_VIEWS_H_
