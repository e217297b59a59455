// One HTTP POST with time limits, cancellation and connections that are kept.
#ifndef KMOSAIC_AGENT_RUNNER_LLM_HTTP_CALL_H_
#define KMOSAIC_AGENT_RUNNER_LLM_HTTP_CALL_H_

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "agent_runner/llm/cancel_token.h"
#include "common/base/clock.h"

namespace kmosaic {

struct HttpCall {
  std::string url;
  // "Name: value"; never logged.
  std::vector<std::string> headers;
  std::string body;
  absl::Duration connect_timeout = absl::Seconds(10);
  // From sending until the first byte of the answer; zero: only `total_timeout`.
  absl::Duration first_byte_timeout;
  // Between two bytes of the answer; zero: only `total_timeout`.
  absl::Duration idle_timeout;
  // Zero: none.
  absl::Duration total_timeout;
  // Status and content type are known when the first piece of the body comes. Returning
  // false ends the call early, as a success.
  std::function<bool(int status, const std::string& content_type, std::string_view piece)> on_body;
};

struct HttpOutcome {
  enum class End { kDone, kConnect, kTimeout, kBroken, kCancelled };
  End end = End::kDone;
  int status = 0;
  std::string content_type;
  std::string retry_after;
  // The server's own name for the request; empty where it gave none.
  std::string request_id;
  // For ends other than kDone: which limit, or the library's words.
  std::string message;
};

// Thread-safe. Keeps the connections of finished calls; a request that a kept
// connection refuses before any byte of an answer is sent again on a new one by the
// library. No redirects, http and https only.
class HttpClient {
 public:
  struct Options {
    // URL of a proxy for all calls (http, https or socks5); empty: none, whatever the
    // environment says.
    std::string proxy;
    // Hosts that are reached without it, separated by commas.
    std::string no_proxy;
    // PEM file of the certificate authorities that are trusted; empty: the system's.
    std::string ca_file;
  };

  // `clock` must outlive the client.
  HttpClient(const Clock& clock, Options options);
  ~HttpClient();

  HttpOutcome Post(const HttpCall& call, CancelToken& cancel);

 private:
  struct Handle;
  std::unique_ptr<Handle> Take();
  void Keep(std::unique_ptr<Handle> handle);

  const Clock& clock_;
  const Options options_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Handle>> idle_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kmosaic

#endif  // KMOSAIC_AGENT_RUNNER_LLM_HTTP_CALL_H_
