#include <grpcpp/grpcpp.h>

#include <catch2/catch.hpp>

#include "common/base/status.h"
#include "common/rpc/channel.h"
#include "common/rpc/grant.h"
#include "common/rpc/server.h"
#include "kernelmosaic/v1/admin.grpc.pb.h"
#include "testing/temp_dir.h"

namespace kmosaic {
namespace {

class OneServer : public v1::AdminService::Service {
 public:
  grpc::Status GetServer(grpc::ServerContext*, const v1::GetServerRequest*,
                         v1::Server* reply) override {
    reply->set_version("v");
    return grpc::Status::OK;
  }
};

absl::StatusOr<std::string> Ask(const std::string& target) {
  auto stub = v1::AdminService::NewStub(MakeChannel(target));
  grpc::ClientContext context;
  SetDeadline(context, absl::Seconds(20));
  v1::Server reply;
  absl::Status status = FromGrpc(stub->GetServer(&context, {}, &reply));
  if (!status.ok()) return status;
  return reply.version();
}

}  // namespace

TEST_CASE("a server on port 0 is reached at its target") {
  OneServer service;
  auto server = RpcServer::Start({.listen = "127.0.0.1:0", .services = {&service}});
  REQUIRE(server.ok());
  CHECK(Ask((*server)->target()).value() == "v");
}

TEST_CASE("a server on a Unix socket is reached at its target") {
  TempDir dir;
  OneServer service;
  auto server = RpcServer::Start({.listen = "unix:" + dir.path() + "/s", .services = {&service}});
  REQUIRE(server.ok());
  CHECK(Ask((*server)->target()).value() == "v");
}

TEST_CASE("a taken port is an error that names the address") {
  OneServer service;
  auto first = RpcServer::Start({.listen = "127.0.0.1:0", .services = {&service}});
  REQUIRE(first.ok());
  OneServer other;
  auto second = RpcServer::Start({.listen = (*first)->target(), .services = {&other}});
  REQUIRE(absl::IsUnavailable(second.status()));
  CHECK(second.status().message().find((*first)->target()) != std::string::npos);
}

TEST_CASE("statuses keep code and message across gRPC") {
  absl::Status status = absl::FailedPreconditionError("stale token");
  CHECK(FromGrpc(ToGrpc(status)) == status);
  CHECK(FromGrpc(ToGrpc(absl::OkStatus())).ok());
  CHECK(Annotate(status, "lease").message() == "lease: stale token");
}

TEST_CASE("back-off is jittered below a capped, doubling limit") {
  for (int i = 0; i < 200; ++i) {
    REQUIRE(Backoff(0, absl::Seconds(1), absl::Seconds(30)) <= absl::Seconds(1));
    REQUIRE(Backoff(3, absl::Seconds(1), absl::Seconds(30)) <= absl::Seconds(8));
    REQUIRE(Backoff(1000, absl::Seconds(1), absl::Seconds(30)) <= absl::Seconds(30));
    REQUIRE(Backoff(1000, absl::Seconds(1), absl::Seconds(30)) >= absl::ZeroDuration());
  }
}

TEST_CASE("a grant is believed only from its signer and in its time") {
  absl::Time now = absl::FromUnixSeconds(1'700'000'000);
  Grant grant{
      .slot = "s1", .worker = "w1", .role = v1::ROLE_VERIFY, .expires = now + absl::Minutes(5)};
  std::string text = SignGrant(grant, "key");
  auto read = VerifyGrant(text, "key", now);
  REQUIRE(read.ok());
  CHECK(read->slot == "s1");
  CHECK(read->worker == "w1");
  CHECK(read->role == v1::ROLE_VERIFY);
  CHECK(absl::IsPermissionDenied(VerifyGrant(text, "other key", now).status()));
  CHECK(absl::IsPermissionDenied(VerifyGrant(text, "key", now + absl::Minutes(7)).status()));
  CHECK(absl::IsPermissionDenied(VerifyGrant("", "key", now).status()));
  CHECK(absl::IsPermissionDenied(VerifyGrant("x.y", "key", now).status()));
  for (size_t i = 0; i < text.size(); ++i) {
    std::string changed = text;
    changed[i] = changed[i] == 'A' ? 'B' : 'A';
    if (changed != text) REQUIRE_FALSE(VerifyGrant(changed, "key", now).ok());
  }
}

}  // namespace kmosaic
