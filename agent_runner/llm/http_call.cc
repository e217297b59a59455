#include "agent_runner/llm/http_call.h"

#include <curl/curl.h>

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace kmosaic {
namespace {

constexpr absl::Duration kLongestPoll = absl::Seconds(1);

void StartLibrary() {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
}

// What the library's callbacks write to while a call runs.
struct Progress {
  const HttpCall* call = nullptr;
  CURL* easy = nullptr;
  HttpOutcome outcome;
  const Clock* clock = nullptr;
  bool first_byte = false;
  absl::Duration last_byte;
  bool ended_early = false;

  void Touch() {
    first_byte = true;
    last_byte = clock->Steady();
  }
};

size_t OnHeader(char* data, size_t size, size_t count, void* user) {
  auto& progress = *static_cast<Progress*>(user);
  progress.Touch();
  std::string line(data, size * count);
  size_t colon = line.find(':');
  if (colon == std::string::npos) return size * count;
  std::string name = absl::AsciiStrToLower(line.substr(0, colon));
  std::string value(absl::StripAsciiWhitespace(line.substr(colon + 1)));
  if (name == "retry-after") progress.outcome.retry_after = value;
  if (name == "x-request-id" || name == "request-id") progress.outcome.request_id = value;
  if (name == "content-type") progress.outcome.content_type = absl::AsciiStrToLower(value);
  return size * count;
}

size_t OnBody(char* data, size_t size, size_t count, void* user) {
  auto& progress = *static_cast<Progress*>(user);
  progress.Touch();
  long status = 0;
  curl_easy_getinfo(progress.easy, CURLINFO_RESPONSE_CODE, &status);
  bool more = progress.call->on_body(static_cast<int>(status), progress.outcome.content_type,
                                     std::string_view(data, size * count));
  if (more) return size * count;
  progress.ended_early = true;
  return 0;  // makes the library end the transfer
}

// The limit that is over, or empty; shortens `poll` to the next one.
std::string ExceededLimit(const Progress& progress, absl::Duration started, absl::Duration now,
                          absl::Duration* poll) {
  const HttpCall& call = *progress.call;
  auto over = [&](absl::Duration limit, absl::Duration since) {
    if (limit <= absl::ZeroDuration()) return false;
    *poll = std::min(*poll, std::max(limit - (now - since), absl::ZeroDuration()));
    return now - since >= limit;
  };
  if (over(call.total_timeout, started)) {
    return absl::StrCat("no complete answer within ", absl::FormatDuration(call.total_timeout));
  }
  if (!progress.first_byte && over(call.first_byte_timeout, started)) {
    return absl::StrCat("no answer within ", absl::FormatDuration(call.first_byte_timeout));
  }
  if (progress.first_byte && over(call.idle_timeout, progress.last_byte)) {
    return absl::StrCat("nothing came for ", absl::FormatDuration(call.idle_timeout),
                        " in the middle of an answer");
  }
  return "";
}

HttpOutcome::End EndOf(CURLcode code) {
  switch (code) {
    case CURLE_OK:
      return HttpOutcome::End::kDone;
    case CURLE_COULDNT_CONNECT:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
      return HttpOutcome::End::kConnect;
    case CURLE_OPERATION_TIMEDOUT:
      return HttpOutcome::End::kTimeout;
    default:
      return HttpOutcome::End::kBroken;
  }
}

}  // namespace

// A multi handle owns the connections of its easy handle.
struct HttpClient::Handle {
  CURLM* multi = curl_multi_init();
  CURL* easy = curl_easy_init();

  Handle() = default;
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() {
    curl_easy_cleanup(easy);
    curl_multi_cleanup(multi);
  }
};

HttpClient::HttpClient(const Clock& clock, Options options)
    : clock_(clock), options_(std::move(options)) {
  StartLibrary();
}

HttpClient::~HttpClient() = default;

std::unique_ptr<HttpClient::Handle> HttpClient::Take() {
  {
    std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      auto handle = std::move(idle_.back());
      idle_.pop_back();
      return handle;
    }
  }
  return std::make_unique<Handle>();
}

void HttpClient::Keep(std::unique_ptr<Handle> handle) {
  std::lock_guard lock(mutex_);
  idle_.push_back(std::move(handle));
}

HttpOutcome HttpClient::Post(const HttpCall& call, CancelToken& cancel) {
  std::unique_ptr<Handle> handle = Take();
  CURL* easy = handle->easy;
  Progress progress;
  progress.call = &call;
  progress.easy = easy;
  progress.clock = &clock_;

  curl_easy_reset(easy);
  curl_slist* headers = nullptr;
  for (const std::string& header : call.headers)
    headers = curl_slist_append(headers, header.c_str());
  headers = curl_slist_append(headers, "Expect:");  // no 100-continue
  char error_text[CURL_ERROR_SIZE] = "";
  curl_easy_setopt(easy, CURLOPT_URL, call.url.c_str());
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
  curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(call.body.size()));
  curl_easy_setopt(easy, CURLOPT_POSTFIELDS, call.body.data());
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_PROXY, options_.proxy.c_str());
  curl_easy_setopt(easy, CURLOPT_NOPROXY, options_.no_proxy.c_str());
  if (!options_.ca_file.empty()) curl_easy_setopt(easy, CURLOPT_CAINFO, options_.ca_file.c_str());
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
  curl_easy_setopt(easy, CURLOPT_TCP_NODELAY, 1L);
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
                   static_cast<long>(absl::ToInt64Milliseconds(call.connect_timeout)));
  curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, error_text);
  curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, OnHeader);
  curl_easy_setopt(easy, CURLOPT_HEADERDATA, &progress);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, OnBody);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, &progress);

  absl::Duration started = clock_.Steady();
  curl_multi_add_handle(handle->multi, easy);
  CURLcode code = CURLE_OK;
  std::string limit;
  bool cancelled = false;
  {
    CancelToken::Registration wake(cancel, [multi = handle->multi] { curl_multi_wakeup(multi); });
    while (true) {
      int running = 0;
      if (curl_multi_perform(handle->multi, &running) != CURLM_OK) {
        code = CURLE_FAILED_INIT;
        break;
      }
      int left = 0;
      if (CURLMsg* message = curl_multi_info_read(handle->multi, &left);
          message != nullptr && message->msg == CURLMSG_DONE) {
        code = message->data.result;
        break;
      }
      cancelled = cancel.cancelled();
      if (cancelled) break;
      absl::Duration poll = kLongestPoll;
      limit = ExceededLimit(progress, started, clock_.Steady(), &poll);
      if (!limit.empty()) break;
      curl_multi_poll(handle->multi, nullptr, 0,
                      static_cast<int>(absl::ToInt64Milliseconds(poll) + 1), nullptr);
    }
  }
  long status = 0;
  curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
  curl_multi_remove_handle(handle->multi, easy);
  curl_slist_free_all(headers);

  HttpOutcome outcome = std::move(progress.outcome);
  outcome.status = static_cast<int>(status);
  if (cancelled) {
    outcome.end = HttpOutcome::End::kCancelled;
    outcome.message = "called off";
  } else if (!limit.empty()) {
    outcome.end = HttpOutcome::End::kTimeout;
    outcome.message = limit;
  } else if (code != CURLE_OK && !progress.ended_early) {
    outcome.end = EndOf(code);
    outcome.message = error_text[0] != '\0' ? error_text : curl_easy_strerror(code);
  }
  curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, nullptr);
  // A connection in the middle of an answer is closed by the library when the handle
  // leaves; the rest may be used again.
  Keep(std::move(handle));
  return outcome;
}

}  // namespace kmosaic
