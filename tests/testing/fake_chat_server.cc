#include "tests/testing/fake_chat_server.h"

#include <httplib.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>

#include "common/base/text.h"
#include "tests/testing/test_certificates.h"

namespace kmosaic {

using nlohmann::json;

namespace {

// `content` in pieces of at most `bytes`, cut on character boundaries.
std::vector<std::string> Deltas(std::string_view content, size_t bytes) {
  std::vector<std::string> deltas;
  while (!content.empty()) {
    deltas.emplace_back(TruncateUtf8(content, std::max<size_t>(bytes, 4)));
    content.remove_prefix(deltas.back().size());
  }
  return deltas;
}

bool HasText(const json& message) {
  const json content = message.value("content", json());
  return (content.is_string() || content.is_array()) && !content.empty() && content != "";
}

std::string WrongOrder(const json& messages) {
  std::string last;
  for (const json& message : messages) {
    std::string role = message.at("role");
    if (role == "tool") role = "user";
    if (role == last) return "two messages of " + role + " in a row";
    if (role == "assistant" && last != "user") return "an assistant before any user";
    last = role;
  }
  return last == "user" ? "" : "the last message is of " + last;
}

bool UseTestCertificate(SSL_CTX& context) {
  auto read = [](const char* text) { return BIO_new_mem_buf(text, -1); };
  BIO* certificate_text = read(kTestCertificate);
  BIO* key_text = read(kTestPrivateKey);
  X509* certificate = PEM_read_bio_X509(certificate_text, nullptr, nullptr, nullptr);
  EVP_PKEY* key = PEM_read_bio_PrivateKey(key_text, nullptr, nullptr, nullptr);
  bool good = SSL_CTX_use_certificate(&context, certificate) == 1 &&
              SSL_CTX_use_PrivateKey(&context, key) == 1;
  X509_free(certificate);
  EVP_PKEY_free(key);
  BIO_free(certificate_text);
  BIO_free(key_text);
  return good;
}

}  // namespace

std::string WrongShape(const json& request, bool anthropic) {
  const json& messages = request.at("messages");
  json talk = json::array();
  for (size_t i = 0; i < messages.size(); ++i) {
    const json& message = messages[i];
    const std::string at = "message " + std::to_string(i);
    if (!HasText(message) && !message.contains("tool_calls")) return at + " has no content";
    if (message.contains("content") && message["content"].is_null()) return at + " is null";
    if (message["role"] == "system") {
      if (anthropic || i > 0) return at + " is a system message where none may stand";
    } else {
      talk.push_back(message);
    }
  }
  if (anthropic && !request.contains("max_tokens")) return "max_tokens is missing";
  return WrongOrder(talk);
}

ScriptedReply ScriptedReply::Stream(const std::string& content, int prompt_tokens,
                                    int completion_tokens, size_t delta_bytes) {
  ScriptedReply reply;
  auto add = [&reply](const json& event) {
    reply.pieces.push_back("data: " + event.dump() + "\n\n");
  };
  for (const std::string& delta : Deltas(content, delta_bytes)) {
    add({{"choices", {{{"index", 0}, {"delta", {{"content", delta}}}}}}});
  }
  add({{"choices", {{{"index", 0}, {"delta", json::object()}, {"finish_reason", "stop"}}}}});
  add({{"choices", json::array()},
       {"usage", {{"prompt_tokens", prompt_tokens}, {"completion_tokens", completion_tokens}}}});
  reply.pieces.push_back("data: [DONE]\n\n");
  return reply;
}

ScriptedReply ScriptedReply::AnthropicStream(const std::string& content, int input_tokens,
                                             int output_tokens, size_t delta_bytes) {
  ScriptedReply reply;
  auto add = [&reply](const json& event) {
    reply.pieces.push_back("event: " + event["type"].get<std::string>() +
                           "\ndata: " + event.dump() + "\n\n");
  };
  add({{"type", "message_start"},
       {"message",
        {{"model", "served"},
         {"content", json::array()},
         {"usage", {{"input_tokens", input_tokens}, {"output_tokens", 1}}}}}});
  add({{"type", "content_block_start"},
       {"index", 0},
       {"content_block", {{"type", "text"}, {"text", ""}}}});
  add({{"type", "ping"}});
  for (const std::string& delta : Deltas(content, delta_bytes)) {
    add({{"type", "content_block_delta"},
         {"index", 0},
         {"delta", {{"type", "text_delta"}, {"text", delta}}}});
  }
  add({{"type", "content_block_stop"}, {"index", 0}});
  add({{"type", "message_delta"},
       {"delta", {{"stop_reason", "end_turn"}}},
       {"usage", {{"output_tokens", output_tokens}}}});
  add({{"type", "message_stop"}});
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
  std::unique_ptr<httplib::Server> server;
  bool tls = false;
  int port = 0;
  std::thread thread;

  mutable std::mutex mutex;
  std::vector<json> requests;
  httplib::Headers last_headers;
  std::map<std::string, int> asked;

  void Answer(const httplib::Request& request, httplib::Response& response, bool anthropic) {
    json body = json::parse(request.body);
    {
      std::lock_guard lock(mutex);
      requests.push_back(body);
      last_headers = request.headers;
      ++asked[body["messages"].dump()];
    }
    if (std::string wrong = WrongShape(body, anthropic); !wrong.empty()) {
      response.status = 500;
      response.set_content(json({{"error", {{"message", wrong}}}}).dump(), "application/json");
      return;
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

namespace {

FakeChatServer::Handler InOrder(std::vector<ScriptedReply> replies) {
  return [replies = std::move(replies), next = size_t{0},
          mutex = std::make_shared<std::mutex>()](const json&) mutable {
    std::lock_guard lock(*mutex);
    if (next < replies.size()) return replies[next++];
    return ScriptedReply::Body(500, R"({"error": {"message": "nothing is scripted"}})");
  };
}

}  // namespace

FakeChatServer::FakeChatServer(std::unique_ptr<Impl> made, Handler handler)
    : impl_(std::move(made)) {
  Impl* impl = impl_.get();
  impl->handler = std::move(handler);
  impl->server->set_tcp_nodelay(true);
  // One thread for each of many conversations that wait at once.
  impl->server->new_task_queue = [] { return new httplib::ThreadPool(16); };
  for (bool anthropic : {false, true}) {
    impl->server->Post(anthropic ? "/v1/messages" : "/v1/chat/completions",
                       [=](const httplib::Request& request, httplib::Response& response) {
                         impl->Answer(request, response, anthropic);
                       });
  }
  impl->port = impl->server->bind_to_any_port("127.0.0.1");
  impl->thread = std::thread([impl] { impl->server->listen_after_bind(); });
}

FakeChatServer::FakeChatServer(Handler handler)
    : FakeChatServer(
          [] {
            auto impl = std::make_unique<Impl>();
            impl->server = std::make_unique<httplib::Server>();
            return impl;
          }(),
          std::move(handler)) {}

FakeChatServer::FakeChatServer(std::vector<ScriptedReply> replies)
    : FakeChatServer(InOrder(std::move(replies))) {}

FakeChatServer::FakeChatServer(Tls, std::vector<ScriptedReply> replies)
    : FakeChatServer(
          [] {
            auto impl = std::make_unique<Impl>();
            impl->server = std::make_unique<httplib::SSLServer>(UseTestCertificate);
            if (!impl->server->is_valid()) throw std::runtime_error("no TLS server");
            impl->tls = true;
            return impl;
          }(),
          InOrder(std::move(replies))) {}

FakeChatServer::~FakeChatServer() {
  impl_->server->stop();
  impl_->thread.join();
}

std::string FakeChatServer::url() const {
  return (impl_->tls ? "https://127.0.0.1:" : "http://127.0.0.1:") + std::to_string(impl_->port) +
         "/v1";
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
