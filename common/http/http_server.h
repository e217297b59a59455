// The small HTTP side of a process: /metrics, /healthz and what a process adds.
#ifndef KMOSAIC_COMMON_HTTP_HTTP_SERVER_H_
#define KMOSAIC_COMMON_HTTP_HTTP_SERVER_H_

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/metrics/metrics.h"

namespace kmosaic {

struct HttpReply {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};

// A value: listens while it lives, the destructor stops it. Handlers are called from
// several threads.
class HttpServer {
 public:
  struct Options {
    // HOST:PORT; port 0 takes a free one.
    std::string listen = "127.0.0.1:0";
    // For /metrics; must outlive the server.
    const Metrics* metrics = nullptr;
    // False turns /healthz into 503.
    std::function<bool()> healthy = [] { return true; };
    // Exact path -> handler of GET.
    std::map<std::string, std::function<HttpReply()>> handlers;
  };

  // UNAVAILABLE with the address when it cannot be bound.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(Options options);
  virtual ~HttpServer() = default;

  // HOST:PORT as bound.
  virtual std::string address() const = 0;
};

}  // namespace kmosaic

#endif  // KMOSAIC_COMMON_HTTP_HTTP_SERVER_H_
