// An LLM endpoint for tests: a real HTTP server with scripted replies and faults, as strict
// about what it is sent as the strictest of servers, that counts what it was asked.
#ifndef KMOSAIC_TESTS_TESTING_FAKE_CHAT_SERVER_H_
#define KMOSAIC_TESTS_TESTING_FAKE_CHAT_SERVER_H_

#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace kmosaic {

struct ScriptedReply {
  int status = 200;
  std::string content_type = "text/event-stream";
  std::map<std::string, std::string> headers;
  // Written one after the other, each as a chunk of its own.
  std::vector<std::string> pieces;
  // The connection is closed after the pieces, without the end of the answer.
  bool break_off = false;
  // Called on the server's thread before the answer begins, and after the pieces.
  std::function<void()> before;
  std::function<void()> after_pieces;

  // A whole stream with usage and [DONE], cut into deltas of at most `delta_bytes` (on
  // character boundaries).
  static ScriptedReply Stream(const std::string& content, int prompt_tokens = 10,
                              int completion_tokens = 20, size_t delta_bytes = 7);
  // The same as Anthropic streams it: events with names, ended by message_stop.
  static ScriptedReply AnthropicStream(const std::string& content, int input_tokens = 10,
                                       int output_tokens = 20, size_t delta_bytes = 7);
  // A streamed answer of exactly these bytes.
  static ScriptedReply Raw(const std::string& body);
  // A body that is not streamed.
  static ScriptedReply Body(int status, const std::string& body,
                            const std::string& content_type = "application/json");
};

// What a strict server would refuse about a request ("message 2 has no content"); empty where
// nothing. `anthropic`: by the rules of Anthropic's messages instead of OpenAI's.
std::string WrongShape(const nlohmann::json& request, bool anthropic);

// Serves POST /v1/chat/completions and /v1/messages while it lives. A request of a wrong
// shape gets a 500, whatever is scripted, as from servers whose chat template raises.
// Thread-safe.
class FakeChatServer {
 public:
  using Handler = std::function<ScriptedReply(const nlohmann::json& request)>;

  explicit FakeChatServer(Handler handler);
  // Answers in this order; after the last one every request is a 500.
  explicit FakeChatServer(std::vector<ScriptedReply> replies);
  // Over TLS, with the certificate of test_certificates.h.
  struct Tls {};
  FakeChatServer(Tls, std::vector<ScriptedReply> replies);
  ~FakeChatServer();
  FakeChatServer(const FakeChatServer&) = delete;
  FakeChatServer& operator=(const FakeChatServer&) = delete;

  // Base URL with the version.
  std::string url() const;

  std::vector<nlohmann::json> requests() const;
  // Value of a header of the last request; empty where it had none.
  std::string last_header(const std::string& name) const;
  // How often each list of messages was asked, by its dump.
  std::map<std::string, int> asked() const;

 private:
  struct Impl;
  FakeChatServer(std::unique_ptr<Impl> impl, Handler handler);
  std::unique_ptr<Impl> impl_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_TESTS_TESTING_FAKE_CHAT_SERVER_H_
