#include "cli/output/table.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>

namespace kmosaic {
namespace {

constexpr size_t kGap = 2;
constexpr size_t kNarrowest = 8;

struct CodePoint {
  uint32_t value;
  size_t bytes;
};

// `text` is not empty. A byte that starts no sequence counts as one character.
CodePoint Decode(std::string_view text) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  size_t bytes = byte(0) < 0x80       ? 1
                 : byte(0) >> 5 == 6  ? 2
                 : byte(0) >> 4 == 14 ? 3
                 : byte(0) >> 3 == 30 ? 4
                                      : 1;
  if (bytes == 1 || bytes > text.size()) return {byte(0), 1};
  uint32_t value = byte(0) & (0x7F >> bytes);
  for (size_t i = 1; i < bytes; ++i) value = value << 6 | (byte(i) & 0x3F);
  return {value, bytes};
}

bool In(uint32_t c, uint32_t first, uint32_t last) { return c >= first && c <= last; }

size_t Columns(uint32_t c) {
  if (c < 0x20 || In(c, 0x7F, 0x9F)) return 0;
  bool combining = In(c, 0x300, 0x36F) || In(c, 0x200B, 0x200F) || In(c, 0x1AB0, 0x1AFF) ||
                   In(c, 0x20D0, 0x20FF) || In(c, 0xFE00, 0xFE0F) || In(c, 0xFE20, 0xFE2F);
  if (combining) return 0;
  bool wide = In(c, 0x1100, 0x115F) || In(c, 0x2E80, 0x303E) || In(c, 0x3041, 0xA4CF) ||
              In(c, 0xAC00, 0xD7A3) || In(c, 0xF900, 0xFAFF) || In(c, 0xFE30, 0xFE6F) ||
              In(c, 0xFF00, 0xFF60) || In(c, 0xFFE0, 0xFFE6) || In(c, 0x1F300, 0x1F64F) ||
              In(c, 0x1F900, 0x1F9FF) || In(c, 0x20000, 0x3FFFD);
  return wide ? 2 : 1;
}

// Length in bytes of a colour sequence (ESC [ ... m) at the start of `text`; 0 if none.
size_t EscapeBytes(std::string_view text) {
  if (text.size() < 3 || text[0] != '\x1b' || text[1] != '[') return 0;
  size_t end = text.find('m');
  return end == std::string_view::npos ? 0 : end + 1;
}

}  // namespace

size_t DisplayWidth(std::string_view utf8) {
  size_t width = 0;
  while (!utf8.empty()) {
    size_t skip = EscapeBytes(utf8);
    if (skip == 0) {
      CodePoint c = Decode(utf8);
      width += Columns(c.value);
      skip = c.bytes;
    }
    utf8.remove_prefix(skip);
  }
  return width;
}

std::string Shorten(std::string_view utf8, size_t width) {
  if (DisplayWidth(utf8) <= width) return std::string(utf8);
  if (width == 0) return "";
  size_t used = 0;
  size_t kept = 0;
  while (kept < utf8.size()) {
    size_t skip = EscapeBytes(utf8.substr(kept));
    if (skip == 0) {
      CodePoint c = Decode(utf8.substr(kept));
      if (used + Columns(c.value) > width - 1) break;
      used += Columns(c.value);
      skip = c.bytes;
    }
    kept += skip;
  }
  return std::string(utf8.substr(0, kept)) + "…";
}

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

void Table::AddRow(std::vector<std::string> cells) {
  cells.resize(columns_.size());
  for (std::string& cell : cells) {
    std::replace_if(
        cell.begin(), cell.end(), [](char c) { return c == '\n' || c == '\t' || c == '\r'; }, ' ');
  }
  rows_.push_back(std::move(cells));
}

std::vector<size_t> Table::Widths(size_t max_width) const {
  std::vector<size_t> widths;
  for (const Column& column : columns_) widths.push_back(DisplayWidth(column.title));
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], DisplayWidth(row[i]));
  }
  if (max_width == 0 || widths.empty()) return widths;
  auto total = [&] {
    return std::accumulate(widths.begin(), widths.end(), size_t{0}) + kGap * (widths.size() - 1);
  };
  while (total() > max_width) {
    size_t widest = widths.size();
    for (size_t i = 0; i < widths.size(); ++i) {
      bool shrinks = columns_[i].align == Align::kLeft && widths[i] > kNarrowest;
      if (shrinks && (widest == widths.size() || widths[i] > widths[widest])) widest = i;
    }
    if (widest == widths.size()) break;
    --widths[widest];
  }
  return widths;
}

std::string Table::Render(size_t max_width) const {
  std::vector<size_t> widths = Widths(max_width);
  std::string text;
  auto add_line = [&](const std::vector<std::string>& cells) {
    std::string line;
    for (size_t i = 0; i < cells.size(); ++i) {
      std::string cell = Shorten(cells[i], widths[i]);
      std::string padding(widths[i] - std::min(widths[i], DisplayWidth(cell)), ' ');
      if (i > 0) line.append(kGap, ' ');
      line += columns_[i].align == Align::kRight ? padding + cell : cell + padding;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  };
  std::vector<std::string> titles;
  for (const Column& column : columns_) titles.push_back(column.title);
  add_line(titles);
  for (const auto& row : rows_) add_line(row);
  return text;
}

}  // namespace kmosaic
