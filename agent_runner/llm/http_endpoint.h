// An LLM endpoint that is reached over HTTP.
#ifndef KMOSAIC_AGENT_RUNNER_LLM_HTTP_ENDPOINT_H_
#define KMOSAIC_AGENT_RUNNER_LLM_HTTP_ENDPOINT_H_

#include <memory>
#include <mutex>
#include <string>

#include "absl/base/thread_annotations.h"
#include "agent_runner/llm/api_keys.h"
#include "agent_runner/llm/chat_protocol.h"
#include "agent_runner/llm/http_call.h"
#include "agent_runner/llm/llm_endpoint.h"
#include "common/base/clock.h"

namespace kmosaic {

class HttpEndpoint : public LlmEndpoint {
 public:
  struct Options {
    HttpClient::Options http;
    // Folder of keys (ApiKeys).
    std::string api_key_dir;
    // Used where the endpoint states none. The first byte's is for streams: what is not
    // streamed has only the total.
    absl::Duration connect = absl::Seconds(10);
    absl::Duration first_byte = absl::Minutes(5);
    absl::Duration idle = absl::Minutes(2);
    absl::Duration total = absl::Minutes(10);
  };

  // `clock` must outlive the endpoint. A key that is named but not there is kAuth.
  HttpEndpoint(const v1::Endpoint& endpoint, std::unique_ptr<ChatProtocol> protocol,
               const Clock& clock, Options options);

  // A refusal of a parameter is answered with another dialect at once, and remembered
  // for later calls; such refusals are not paid for.
  LlmResult Complete(const LlmRequest& request, CancelToken& cancel) override;

 private:
  LlmResult CallOnce(const LlmRequest& request, const ChatDialect& dialect, CancelToken& cancel);
  HttpCall CallTo(const LlmRequest& request, const ChatDialect& dialect, const std::string& key,
                  const std::string& request_id) const;
  // What the recorded reply says besides the server's words.
  v1::ModelReply Finished(const ChatReply& chat, const LlmRequest& request,
                          const std::string& key) const;
  ChatDialect dialect();

  const v1::Endpoint endpoint_;
  const std::unique_ptr<ChatProtocol> protocol_;
  const Clock& clock_;
  const Options options_;
  const ApiKeys keys_;
  HttpClient http_;
  std::mutex mutex_;
  ChatDialect dialect_ ABSL_GUARDED_BY(mutex_);
};

// What these tokens cost at the endpoint's prices.
double CostOf(const v1::Endpoint& endpoint, const v1::Usage& usage);

}  // namespace kmosaic

#endif  // KMOSAIC_AGENT_RUNNER_LLM_HTTP_ENDPOINT_H_
