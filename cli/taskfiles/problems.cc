#include "cli/taskfiles/problems.h"

#include "absl/strings/str_cat.h"

namespace kmosaic {

std::string Location::ToString() const {
  std::string text = file;
  if (line > 0) absl::StrAppend(&text, ":", line);
  if (line > 0 && column > 0) absl::StrAppend(&text, ":", column);
  return text;
}

void Problems::Add(const Location& where, const std::string& what) {
  lines_.push_back(absl::StrCat(where.ToString(), ": ", what));
}

}  // namespace kmosaic
