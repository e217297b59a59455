// Server-sent events out of arbitrary pieces of a byte stream.
#ifndef KMOSAIC_AGENT_RUNNER_LLM_SSE_PARSER_H_
#define KMOSAIC_AGENT_RUNNER_LLM_SSE_PARSER_H_

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace kmosaic {

// Pure; one thread at a time. Lines end with LF, CRLF or CR; comments, ids and retry
// times are skipped; several data lines of an event are joined with '\n'. Bytes are
// passed on as they came: a character may be split between two calls.
class SseParser {
 public:
  // `event` is the event's name, empty where it has none.
  using OnEvent = std::function<void(std::string_view event, std::string_view data)>;

  explicit SseParser(OnEvent on_event, size_t max_event_bytes = 16 * 1024 * 1024);

  // False, now and from then on, once an event is larger than the limit.
  bool Feed(std::string_view bytes);

  // The stream has ended: passes on a last event that no empty line closed.
  void Finish();

 private:
  void Line(std::string_view line);
  void Dispatch();

  const OnEvent on_event_;
  const size_t max_event_bytes_;
  std::string line_;
  std::string event_;
  std::string data_;
  bool has_data_ = false;
  bool after_cr_ = false;
  bool first_line_ = true;
  bool too_large_ = false;
};

}  // namespace kmosaic

#endif  // KMOSAIC_AGENT_RUNNER_LLM_SSE_PARSER_H_
