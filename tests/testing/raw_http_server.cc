#include "tests/testing/raw_http_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>
#include <utility>

namespace kmosaic {

RawHttpServer::Script RawHttpServer::Answer(const std::string& body) {
  return {"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: " +
              std::to_string(body.size()) + "\r\n\r\n" + body,
          false};
}

RawHttpServer::Script RawHttpServer::Close() { return {"", true}; }

RawHttpServer::RawHttpServer(std::vector<Script> scripts) : scripts_(std::move(scripts)) {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  if (bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      listen(listener_, 8) != 0 ||
      getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw std::runtime_error("cannot listen on loopback");
  }
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { Serve(); });
}

RawHttpServer::~RawHttpServer() {
  shutdown(listener_, SHUT_RDWR);
  if (int connection = open_connection_; connection >= 0) shutdown(connection, SHUT_RDWR);
  thread_.join();
  close(listener_);
}

std::string RawHttpServer::url() const { return "http://127.0.0.1:" + std::to_string(port_); }

std::string RawHttpServer::last_head() const {
  std::lock_guard lock(mutex_);
  return last_head_;
}

void RawHttpServer::WaitForClose() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return closed_; });
}

void RawHttpServer::Serve() {
  while (true) {
    int connection = accept(listener_, nullptr, nullptr);
    if (connection < 0) return;
    ++connections_;
    open_connection_ = connection;
    while (ServeConnection(connection)) {
    }
    open_connection_ = -1;
    close(connection);
  }
}

bool RawHttpServer::ServeConnection(int connection) {
  std::string received;
  size_t expected = std::string::npos;
  char buffer[4096];
  while (received.size() < expected) {
    ssize_t count = read(connection, buffer, sizeof(buffer));
    if (count <= 0) {
      std::lock_guard lock(mutex_);
      closed_ = true;
      changed_.notify_all();
      return false;
    }
    received.append(buffer, static_cast<size_t>(count));
    size_t head = received.find("\r\n\r\n");
    if (expected == std::string::npos && head != std::string::npos) {
      size_t length = received.find("Content-Length: ");
      size_t body = length == std::string::npos
                        ? 0
                        : static_cast<size_t>(std::atoi(received.c_str() + length + 16));
      expected = head + 4 + body;
    }
  }
  {
    std::lock_guard lock(mutex_);
    last_head_ = received.substr(0, received.find("\r\n\r\n"));
  }
  size_t number = static_cast<size_t>(requests_++);
  if (number >= scripts_.size() || scripts_[number].close) return false;
  const std::string& bytes = scripts_[number].bytes;
  return write(connection, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
}

}  // namespace kmosaic
