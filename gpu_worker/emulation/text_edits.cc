#include "gpu_worker/emulation/text_edits.h"

#include <algorithm>
#include <utility>

namespace kmosaic {

void TextEdits::Replace(std::size_t begin, std::size_t end, std::string text) {
  edits_.push_back({begin, end, std::move(text)});
}

std::string TextEdits::ApplyTo(std::string_view source) {
  std::stable_sort(edits_.begin(), edits_.end(),
                   [](const Edit& a, const Edit& b) { return a.begin < b.begin; });
  std::string out;
  out.reserve(source.size() + source.size() / 4);
  std::size_t position = 0;
  for (const Edit& edit : edits_) {
    if (edit.begin < position) continue;
    out.append(source, position, edit.begin - position);
    out += edit.text;
    position = edit.end;
  }
  out.append(source, position, std::string_view::npos);
  return out;
}

}  // namespace kmosaic
