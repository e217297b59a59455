// Replacements in a text, collected in any order and applied at once.
#ifndef KMOSAIC_GPU_WORKER_EMULATION_TEXT_EDITS_H_
#define KMOSAIC_GPU_WORKER_EMULATION_TEXT_EDITS_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace kmosaic {

class TextEdits {
 public:
  // Replaces [begin, end); begin == end inserts.
  void Replace(std::size_t begin, std::size_t end, std::string text);
  // An edit that overlaps an earlier one (by position) is left out.
  std::string ApplyTo(std::string_view source);

 private:
  struct Edit {
    std::size_t begin;
    std::size_t end;
    std::string text;
  };
  std::vector<Edit> edits_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_EMULATION_TEXT_EDITS_H_
