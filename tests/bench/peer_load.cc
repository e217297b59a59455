// The same lifecycles on other queues, over their own protocols and plain sockets: one task
// is put, taken and acknowledged by each client, round after round. Prints one line of JSON.
//
//   peer_load --peer redis --port 6379 --clients 64
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/config/options.h"
#include "tests/bench/load_numbers.h"

namespace kmosaic {
namespace {

struct Flags {
  std::string peer;
  int64_t port = 0;
  int64_t server_pid = 0;
  int64_t clients = 1;
  int64_t payload = 120;
  int64_t seconds = 5;
};

[[noreturn]] void Die(const std::string& what) {
  fprintf(stderr, "peer_load: %s\n", what.c_str());
  std::exit(1);
}

// A blocking connection; whatever goes wrong ends the program.
class Socket {
 public:
  explicit Socket(int port) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) Die("connect");
    int on = 1;
    setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  ~Socket() { close(fd_); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  void Send(const std::string& bytes) {
    for (size_t sent = 0; sent < bytes.size();) {
      ssize_t now = send(fd_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (now <= 0) Die("send");
      sent += static_cast<size_t>(now);
    }
  }

  // Without CR LF.
  std::string Line() {
    size_t end = 0;
    while ((end = buffer_.find("\r\n")) == std::string::npos) Fill();
    std::string line = buffer_.substr(0, end);
    buffer_.erase(0, end + 2);
    return line;
  }

  // `count` bytes and the CR LF behind them.
  std::string Body(size_t count) {
    while (buffer_.size() < count + 2) Fill();
    std::string body = buffer_.substr(0, count);
    buffer_.erase(0, count + 2);
    return body;
  }

 private:
  void Fill() {
    char chunk[16384];
    ssize_t got = recv(fd_, chunk, sizeof chunk, 0);
    if (got <= 0) Die("the server closed the connection");
    buffer_.append(chunk, static_cast<size_t>(got));
  }

  const int fd_;
  std::string buffer_;
};

class Peer {
 public:
  virtual ~Peer() = default;
  virtual void Put(const std::string& payload) = 0;
  virtual void Take() = 0;
  virtual void Acknowledge() = 0;
};

// A list of waiting tasks, and one list for each client of what it works at, so that a dead
// client's task can be found.
class Redis : public Peer {
 public:
  Redis(int port, int client) : socket_(port), working_(absl::StrCat("working-", client)) {}

  void Put(const std::string& payload) override {
    Command({"RPUSH", "ready", payload});
    Expect(':');
  }
  void Take() override {
    Command({"LMOVE", "ready", working_, "LEFT", "RIGHT"});
    std::string line = socket_.Line();
    if (line.empty() || line[0] != '$' || line == "$-1") Die("LMOVE: " + line);
    taken_ = socket_.Body(static_cast<size_t>(std::atol(line.c_str() + 1)));
  }
  void Acknowledge() override {
    Command({"LREM", working_, "1", taken_});
    Expect(':');
  }

 private:
  void Command(const std::vector<std::string>& words) {
    std::string bytes = absl::StrCat("*", words.size(), "\r\n");
    for (const std::string& word : words) {
      absl::StrAppend(&bytes, "$", word.size(), "\r\n", word, "\r\n");
    }
    socket_.Send(bytes);
  }
  void Expect(char kind) {
    std::string line = socket_.Line();
    if (line.empty() || line[0] != kind) Die("redis: " + line);
  }

  Socket socket_;
  const std::string working_;
  std::string taken_;
};

class Beanstalkd : public Peer {
 public:
  explicit Beanstalkd(int port) : socket_(port) {}

  void Put(const std::string& payload) override {
    socket_.Send(absl::StrCat("put 0 0 60 ", payload.size(), "\r\n", payload, "\r\n"));
    std::string line = socket_.Line();
    if (line.rfind("INSERTED", 0) != 0) Die("put: " + line);
  }
  void Take() override {
    socket_.Send("reserve\r\n");
    std::string line = socket_.Line();
    unsigned long long id = 0;
    size_t bytes = 0;
    if (std::sscanf(line.c_str(), "RESERVED %llu %zu", &id, &bytes) != 2) Die("reserve: " + line);
    socket_.Body(bytes);
    id_ = id;
  }
  void Acknowledge() override {
    socket_.Send(absl::StrCat("delete ", id_, "\r\n"));
    std::string line = socket_.Line();
    if (line != "DELETED") Die("delete: " + line);
  }

 private:
  Socket socket_;
  unsigned long long id_ = 0;
};

std::unique_ptr<Peer> Connect(const Flags& flags, int client) {
  int port = static_cast<int>(flags.port);
  if (flags.peer == "redis") return std::make_unique<Redis>(port, client);
  if (flags.peer == "beanstalkd") return std::make_unique<Beanstalkd>(port);
  Die("--peer has to be redis or beanstalkd");
}

void Run(const Flags& flags) {
  std::mutex mutex;
  Latencies takes;
  uint64_t lifecycles = 0;
  double server_before = CpuSeconds(static_cast<pid_t>(flags.server_pid));
  double client_before = CpuSeconds(getpid());
  absl::Time begin = absl::Now();
  absl::Time end = begin + absl::Seconds(flags.seconds);
  auto work = [&](int number) {
    std::unique_ptr<Peer> peer = Connect(flags, number);
    // Differs between clients, as LREM looks for the value.
    std::string payload = absl::StrCat(number, ":");
    payload.resize(std::max(payload.size(), static_cast<size_t>(flags.payload)), 'x');
    Latencies own;
    uint64_t done = 0;
    for (; absl::Now() < end; ++done) {
      peer->Put(payload);
      absl::Time before = absl::Now();
      peer->Take();
      own.Add(absl::Now() - before);
      peer->Acknowledge();
    }
    std::lock_guard lock(mutex);
    takes.AddAll(own);
    lifecycles += done;
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < flags.clients; ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();
  double seconds = absl::ToDoubleSeconds(absl::Now() - begin);
  double server = CpuSeconds(static_cast<pid_t>(flags.server_pid)) - server_before;
  double client = CpuSeconds(getpid()) - client_before;
  nlohmann::json report = {{"peer", flags.peer},
                           {"clients", flags.clients},
                           {"payload_bytes", flags.payload},
                           {"lifecycles_per_second", static_cast<double>(lifecycles) / seconds},
                           {"lease_p50_ms", takes.Quantile(0.5) * 1e3},
                           {"lease_p99_ms", takes.Quantile(0.99) * 1e3},
                           {"server_cores", server / seconds},
                           {"client_cores", client / seconds}};
  printf("%s\n", report.dump().c_str());
}

}  // namespace
}  // namespace kmosaic

int main(int argc, char** argv) {
  kmosaic::Flags flags;
  kmosaic::Options options("peer_load", "Drives another queue with simulated clients.");
  options.Add("peer", &flags.peer, "redis or beanstalkd");
  options.Add("port", &flags.port, "port of its server on this machine");
  options.Add("server-pid", &flags.server_pid, "its process, for its CPU time");
  options.Add("clients", &flags.clients, "clients, each with its own connection and thread");
  options.Add("payload", &flags.payload, "bytes of a task");
  options.Add("seconds", &flags.seconds, "duration of the load");
  if (std::optional<int> code = options.Parse(argc, argv)) return *code;
  kmosaic::Run(flags);
  return 0;
}
