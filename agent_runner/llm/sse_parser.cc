#include "agent_runner/llm/sse_parser.h"

#include <utility>

namespace kmosaic {

SseParser::SseParser(OnEvent on_event, size_t max_event_bytes)
    : on_event_(std::move(on_event)), max_event_bytes_(max_event_bytes) {}

bool SseParser::Feed(std::string_view bytes) {
  while (!bytes.empty() && !too_large_) {
    if (std::exchange(after_cr_, false) && bytes[0] == '\n') {
      bytes.remove_prefix(1);
      continue;
    }
    size_t end = bytes.find_first_of("\r\n");
    line_.append(bytes.substr(0, end));
    if (line_.size() + data_.size() > max_event_bytes_) {
      too_large_ = true;
      break;
    }
    if (end == std::string_view::npos) break;
    after_cr_ = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    std::string line = std::exchange(line_, "");
    Line(line);
  }
  return !too_large_;
}

void SseParser::Finish() {
  if (too_large_) return;
  if (!line_.empty()) Line(std::exchange(line_, ""));
  Dispatch();
}

void SseParser::Line(std::string_view line) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (std::exchange(first_line_, false) && line.substr(0, 3) == kByteOrderMark) {
    line.remove_prefix(3);
  }
  if (line.empty()) {
    Dispatch();
    return;
  }
  size_t colon = line.find(':');
  std::string_view field = line.substr(0, colon);
  std::string_view value = colon == std::string_view::npos ? "" : line.substr(colon + 1);
  if (!value.empty() && value[0] == ' ') value.remove_prefix(1);
  if (field == "data") {
    if (has_data_) data_ += '\n';
    data_.append(value);
    has_data_ = true;
  } else if (field == "event") {
    event_ = std::string(value);
  }
}

void SseParser::Dispatch() {
  if (has_data_) on_event_(event_, data_);
  event_.clear();
  data_.clear();
  has_data_ = false;
}

}  // namespace kmosaic
