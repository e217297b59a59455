#include "cli/taskfiles/text_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "common/base/text.h"

namespace kmosaic {
namespace {

// Line (from 1) of the first byte that is not part of valid UTF-8.
int FirstBadLine(const std::string& text, const std::string& repaired) {
  size_t same = 0;
  while (same < text.size() && same < repaired.size() && text[same] == repaired[same]) ++same;
  return 1 +
         static_cast<int>(std::count(text.begin(), text.begin() + static_cast<long>(same), '\n'));
}

}  // namespace

std::optional<std::string> ReadTextFile(const std::string& path, size_t max_bytes,
                                        Problems& problems,
                                        const std::optional<Location>& reported_at) {
  Location where = reported_at.value_or(Location{path});
  std::string name = reported_at ? absl::StrCat(path, ": ") : "";
  std::error_code error;
  auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) {
    problems.Add(where, absl::StrCat(name, "there is no such file"));
    return std::nullopt;
  }
  if (!std::filesystem::is_regular_file(status)) {
    problems.Add(where, absl::StrCat(name, "this is not a regular file"));
    return std::nullopt;
  }
  std::ifstream input(path, std::ios::binary);
  std::ostringstream buffer;
  if (input) buffer << input.rdbuf();
  if (!input && std::filesystem::file_size(path, error) != 0) {
    problems.Add(where, absl::StrCat(name, "cannot be read: ", std::strerror(errno)));
    return std::nullopt;
  }
  std::string text = buffer.str();
  if (text.size() > max_bytes) {
    problems.Add(where, absl::StrCat(name, "has ", text.size(), " bytes; at most ", max_bytes,
                                     " are allowed"));
    return std::nullopt;
  }
  if (std::string repaired = ToValidUtf8(text); repaired != text) {
    problems.Add({path, FirstBadLine(text, repaired)}, "is not UTF-8; save the file as UTF-8");
    return std::nullopt;
  }
  return text;
}

}  // namespace kmosaic
