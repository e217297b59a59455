#include "common/http/http_server.h"

#include <httplib.h>

#include <charconv>
#include <thread>

#include "absl/strings/str_cat.h"

namespace kmosaic {
namespace {

class HttplibServer : public HttpServer {
 public:
  explicit HttplibServer(Options options) : options_(std::move(options)) {
    // Without SO_REUSEPORT, which would let a second server share the port in silence.
    server_.set_socket_options([](socket_t socket) {
      int yes = 1;
      setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    });
    server_.new_task_queue = [] { return new httplib::ThreadPool(4); };
    server_.Get("/metrics", [this](const httplib::Request&, httplib::Response& response) {
      response.set_content(options_.metrics->Serialize(),
                           "text/plain; version=0.0.4; charset=utf-8");
    });
    server_.Get("/healthz", [this](const httplib::Request&, httplib::Response& response) {
      bool healthy = options_.healthy();
      response.status = healthy ? 200 : 503;
      response.set_content(healthy ? "ok\n" : "not healthy\n", "text/plain");
    });
    for (const auto& [path, handler] : options_.handlers) {
      server_.Get(path, [&handler = handler](const httplib::Request&, httplib::Response& response) {
        HttpReply reply = handler();
        response.status = reply.status;
        response.set_content(reply.body, reply.content_type);
      });
    }
  }

  ~HttplibServer() override {
    server_.stop();
    if (thread_.joinable()) thread_.join();
  }

  absl::Status Listen() {
    size_t colon = options_.listen.rfind(':');
    int port = -1;
    if (colon != std::string::npos) {
      const char* end = options_.listen.data() + options_.listen.size();
      auto [rest, error] = std::from_chars(options_.listen.data() + colon + 1, end, port);
      if (error != std::errc() || rest != end) port = -1;
    }
    if (port < 0 || port > 65535) {
      return absl::InvalidArgumentError(
          absl::StrCat("HTTP address \"", options_.listen, "\" is not HOST:PORT"));
    }
    std::string host = options_.listen.substr(0, colon);
    if (port == 0) {
      port = server_.bind_to_any_port(host);
    } else if (!server_.bind_to_port(host, port)) {
      port = -1;
    }
    if (port < 0) {
      return absl::UnavailableError(
          absl::StrCat("cannot listen for HTTP on ", options_.listen,
                       ": it may be taken; give another address or port 0"));
    }
    address_ = absl::StrCat(host, ":", port);
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    // stop() only reaches a server that runs.
    while (!server_.is_running()) std::this_thread::yield();
    return absl::OkStatus();
  }

  std::string address() const override { return address_; }

 private:
  const Options options_;
  std::string address_;
  httplib::Server server_;
  std::thread thread_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(Options options) {
  auto server = std::make_unique<HttplibServer>(std::move(options));
  absl::Status status = server->Listen();
  if (!status.ok()) return status;
  return server;
}

}  // namespace kmosaic
