#include "tests/testing/fake_chat_server.h"

#include <httplib.h>

#include <algorithm>
#include <mutex>
#include <thread>
#include <utility>

#include "common/base/text.h"

namespace kmosaic {

using nlohmann::json;

ScriptedReply ScriptedReply::Stream(const std::string& content, int prompt_tokens,
                                    int completion_tokens, size_t delta_bytes) {
  ScriptedReply reply;
  auto add = [&reply](const json& event) {
    reply.pieces.push_back("data: " + event.dump() + "\n\n");
  };
  std::string_view rest = content;
  while (!rest.empty()) {
    std::string_view delta = TruncateUtf8(rest, std::max<size_t>(delta_bytes, 4));
    add({{"choices", {{{"index", 0}, {"delta", {{"content", delta}}}}}}});
    rest.remove_prefix(delta.size());
  }
  add({{"choices", {{{"index", 0}, {"delta", json::object()}, {"finish_reason", "stop"}}}}});
  add({{"choices", json::array()},
       {"usage", {{"prompt_tokens", prompt_tokens}, {"completion_tokens", completion_tokens}}}});
  reply.pieces.push_back("data: [DONE]\n\n");
  return reply;
}

ScriptedReply ScriptedReply::Raw(const std::string& body) {
  ScriptedReply reply;
  reply.pieces.push_back(body);
  return reply;
}

ScriptedReply ScriptedReply::Body(int status, const std::string& body,
                                  const std::string& content_type) {
  ScriptedReply reply;
  reply.status = status;
  reply.content_type = content_type;
  reply.pieces.push_back(body);
  return reply;
}

struct FakeChatServer::Impl {
  Handler handler;
  httplib::Server server;
  int port = 0;
  std::thread thread;

  mutable std::mutex mutex;
  std::vector<json> requests;
  httplib::Headers last_headers;
  std::map<std::string, int> asked;

  void Answer(const httplib::Request& request, httplib::Response& response) {
    json body = json::parse(request.body);
    {
      std::lock_guard lock(mutex);
      requests.push_back(body);
      last_headers = request.headers;
      ++asked[body["messages"].dump()];
    }
    auto reply = std::make_shared<ScriptedReply>(handler(body));
    if (reply->before) reply->before();
    response.status = reply->status;
    for (const auto& [name, value] : reply->headers) response.set_header(name, value);
    response.set_chunked_content_provider(reply->content_type,
                                          [reply](size_t, httplib::DataSink& sink) {
                                            for (const std::string& piece : reply->pieces) {
                                              if (!sink.write(piece.data(), piece.size()))
                                                return false;
                                            }
                                            if (reply->after_pieces) reply->after_pieces();
                                            if (reply->break_off) return false;
                                            sink.done();
                                            return true;
                                          });
  }
};

FakeChatServer::FakeChatServer(Handler handler) : impl_(std::make_unique<Impl>()) {
  Impl* impl = impl_.get();
  impl->handler = std::move(handler);
  impl->server.set_tcp_nodelay(true);
  // One thread for each of many conversations that wait at once.
  impl->server.new_task_queue = [] { return new httplib::ThreadPool(16); };
  impl->server.Post("/v1/chat/completions",
                    [impl](const httplib::Request& request, httplib::Response& response) {
                      impl->Answer(request, response);
                    });
  impl->port = impl->server.bind_to_any_port("127.0.0.1");
  impl->thread = std::thread([impl] { impl->server.listen_after_bind(); });
}

FakeChatServer::FakeChatServer(std::vector<ScriptedReply> replies)
    : FakeChatServer([replies = std::move(replies), next = size_t{0},
                      mutex = std::make_shared<std::mutex>()](const json&) mutable {
        std::lock_guard lock(*mutex);
        if (next < replies.size()) return replies[next++];
        return ScriptedReply::Body(500, R"({"error": {"message": "nothing is scripted"}})");
      }) {}

FakeChatServer::~FakeChatServer() {
  impl_->server.stop();
  impl_->thread.join();
}

std::string FakeChatServer::url() const {
  return "http://127.0.0.1:" + std::to_string(impl_->port) + "/v1";
}

std::vector<json> FakeChatServer::requests() const {
  std::lock_guard lock(impl_->mutex);
  return impl_->requests;
}

std::string FakeChatServer::last_header(const std::string& name) const {
  std::lock_guard lock(impl_->mutex);
  auto found = impl_->last_headers.find(name);
  return found == impl_->last_headers.end() ? "" : found->second;
}

std::map<std::string, int> FakeChatServer::asked() const {
  std::lock_guard lock(impl_->mutex);
  return impl_->asked;
}

}  // namespace kmosaic
