#include "common/base/views.h"

namespace kmosaic {

namespace v1 = kernelmosaic::v1;

bool HasView(const v1::TaskSpec& task, v1::View view) {
  switch (view) {
    case v1::VIEW_DESCRIPTION:
      return !task.description().empty();
    case v1::VIEW_REFERENCE:
      return !task.reference().empty();
    case v1::VIEW_SPEC:
      return !task.spec().empty();
    default:
      return false;
  }
}

}  // namespace kmosaic
