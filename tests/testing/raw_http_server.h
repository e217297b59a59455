// A server of scripted bytes, for faults that no HTTP library makes on purpose.
#ifndef KMOSAIC_TESTS_TESTING_RAW_HTTP_SERVER_H_
#define KMOSAIC_TESTS_TESTING_RAW_HTTP_SERVER_H_

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace kmosaic {

// One connection at a time, one request after the other; each request gets the next
// script. Serves while it lives.
class RawHttpServer {
 public:
  struct Script {
    std::string bytes;
    bool close = false;
  };
  // A 200 with this JSON body on a connection that stays open.
  static Script Answer(const std::string& body);
  // Closes the connection without a byte.
  static Script Close();

  explicit RawHttpServer(std::vector<Script> scripts);
  ~RawHttpServer();
  RawHttpServer(const RawHttpServer&) = delete;
  RawHttpServer& operator=(const RawHttpServer&) = delete;

  std::string url() const;
  int connections() const { return connections_; }
  int requests() const { return requests_; }
  // Request line and headers of the last request.
  std::string last_head() const;
  // Waits until the client has closed a connection.
  void WaitForClose();

 private:
  void Serve();
  bool ServeConnection(int connection);

  const std::vector<Script> scripts_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<int> connections_ = 0;
  std::atomic<int> requests_ = 0;
  std::atomic<int> open_connection_ = -1;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::string last_head_;
  bool closed_ = false;
  std::thread thread_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_TESTS_TESTING_RAW_HTTP_SERVER_H_
