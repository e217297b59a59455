// A C++ source with comments and literals blanked out, so that a scan by characters sees code
// only. Takes any bytes; linear in their number.
#ifndef KMOSAIC_GPU_WORKER_EMULATION_MASKED_SOURCE_H_
#define KMOSAIC_GPU_WORKER_EMULATION_MASKED_SOURCE_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace kmosaic {

class MaskedSource {
 public:
  static constexpr std::size_t kNone = std::string_view::npos;

  // `source` must outlive this object.
  explicit MaskedSource(std::string_view source);

  // The source as given, and the same number of characters with comments turned into spaces and
  // the insides of literals into '_' (newlines are kept).
  std::string_view raw() const { return raw_; }
  std::string_view code() const { return code_; }
  // Is the character part of a preprocessor directive (continuation lines included)?
  bool InDirective(std::size_t position) const { return directive_[position]; }

  // Position of the next `token` at or after `from` that stands as a whole identifier, or kNone.
  std::size_t FindIdentifier(std::string_view token, std::size_t from) const;
  bool HasIdentifier(std::string_view token) const { return FindIdentifier(token, 0) != kNone; }
  // Position of the bracket that closes the ( [ or { at `open`, or kNone.
  std::size_t FindClose(std::size_t open) const;
  // Position of the bracket that opens the ) ] or } at `close`, or kNone.
  std::size_t FindOpen(std::size_t close) const;
  // First position at or after `from` that is neither white space nor a line continuation; the
  // size when there is none.
  std::size_t SkipSpace(std::size_t from) const;

 private:
  void Mask();
  void MarkDirectives();

  std::string_view raw_;
  std::string code_;
  std::vector<bool> directive_;
};

bool IsIdentifierCharacter(char c);

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_EMULATION_MASKED_SOURCE_H_
