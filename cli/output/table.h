// Aligned columns of text.
#ifndef KMOSAIC_CLI_OUTPUT_TABLE_H_
#define KMOSAIC_CLI_OUTPUT_TABLE_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace kmosaic {

// Columns of a terminal that `utf8` takes: combining marks 0, wide East Asian characters
// and emoji 2, everything else 1. Escape sequences of colours take none.
size_t DisplayWidth(std::string_view utf8);

// At most `width` columns; what is cut off is replaced by "…".
std::string Shorten(std::string_view utf8, size_t width);

enum class Align { kLeft, kRight };

class Table {
 public:
  struct Column {
    std::string title;
    Align align = Align::kLeft;
  };

  explicit Table(std::vector<Column> columns);

  // As many cells as there are columns. Line breaks in a cell become spaces.
  void AddRow(std::vector<std::string> cells);

  bool empty() const { return rows_.empty(); }

  // Lines with their newlines. With `max_width` > 0 the widest left-aligned columns are
  // shortened until a line fits, but none below 8 columns.
  std::string Render(size_t max_width = 0) const;

 private:
  std::vector<size_t> Widths(size_t max_width) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_CLI_OUTPUT_TABLE_H_
