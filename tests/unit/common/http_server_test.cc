#include "common/http/http_server.h"

#include <curl/curl.h>

#include <atomic>
#include <catch2/catch.hpp>

namespace kmosaic {
namespace {

struct Answer {
  long status = 0;
  std::string body;
};

Answer Get(const std::string& url) {
  Answer answer;
  CURL* curl = curl_easy_init();
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &answer.body);
  curl_easy_setopt(
      curl, CURLOPT_WRITEFUNCTION, +[](char* data, size_t size, size_t count, std::string* body) {
        body->append(data, size * count);
        return size * count;
      });
  if (curl_easy_perform(curl) == CURLE_OK) {
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &answer.status);
  }
  curl_easy_cleanup(curl);
  return answer;
}

}  // namespace

TEST_CASE("metrics, health and added pages are served") {
  Metrics metrics("test");
  metrics.Counter("kmosaic_things_total", "Things.").Add({{"kind", "a"}}).Increment(2);
  std::atomic<bool> healthy{true};
  auto server = HttpServer::Start({.metrics = &metrics,
                                   .healthy = [&] { return healthy.load(); },
                                   .handlers = {{"/sd", [] {
                                                   return HttpReply{200, "application/json", "[]"};
                                                 }}}});
  REQUIRE(server.ok());
  std::string base = "http://" + (*server)->address();
  Answer answer = Get(base + "/metrics");
  CHECK(answer.status == 200);
  CHECK(answer.body.find("kmosaic_things_total{kind=\"a\"} 2") != std::string::npos);
  CHECK(answer.body.find("kmosaic_build_info{process=\"test\"") != std::string::npos);
  CHECK(Get(base + "/sd").body == "[]");
  CHECK(Get(base + "/healthz").status == 200);
  healthy = false;
  CHECK(Get(base + "/healthz").status == 503);
  CHECK(Get(base + "/nothing").status == 404);
}

TEST_CASE("a taken or malformed HTTP address is refused with its name") {
  Metrics metrics("test");
  auto first = HttpServer::Start({.metrics = &metrics});
  REQUIRE(first.ok());
  auto second = HttpServer::Start({.listen = (*first)->address(), .metrics = &metrics});
  REQUIRE(absl::IsUnavailable(second.status()));
  CHECK(second.status().message().find((*first)->address()) != std::string::npos);
  CHECK(absl::IsInvalidArgument(
      HttpServer::Start({.listen = "nowhere", .metrics = &metrics}).status()));
}

}  // namespace kmosaic
