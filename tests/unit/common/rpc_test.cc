#include <arpa/inet.h>
#include <grpcpp/grpcpp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <string>

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

TEST_CASE("a server that is slow to shake hands is waited for") {
  // Takes the connection and says nothing.
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  int listener = socket(AF_INET, SOCK_STREAM, 0);
  REQUIRE(bind(listener, reinterpret_cast<sockaddr*>(&address), length) == 0);
  REQUIRE(listen(listener, 1) == 0);
  REQUIRE(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length) == 0);
  auto channel = MakeChannel("127.0.0.1:" + std::to_string(ntohs(address.sin_port)));
  channel->GetState(/*try_to_connect=*/true);
  int connection = accept(listener, nullptr, nullptr);
  REQUIRE(connection >= 0);
  // The client keeps the attempt up, longer than its first pause between attempts.
  timeval patience{.tv_sec = 1, .tv_usec = 0};
  setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  char greeting[256];
  ssize_t got = 0;
  do {
    got = recv(connection, greeting, sizeof(greeting), 0);
  } while (got > 0);
  CHECK(got == -1);
  CHECK(errno == EAGAIN);
  close(connection);
  close(listener);
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
