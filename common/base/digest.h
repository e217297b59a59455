// SHA-256, HMAC and random bytes (OpenSSL).
#ifndef KMOSAIC_COMMON_BASE_DIGEST_H_
#define KMOSAIC_COMMON_BASE_DIGEST_H_

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace kmosaic {

// Lower-case hex, 64 characters.
std::string Sha256Hex(std::string_view bytes);

// 32 raw bytes.
std::string HmacSha256(std::string_view key, std::string_view message);

// Takes the same time wherever the two differ.
bool ConstantTimeEquals(std::string_view a, std::string_view b);

// From the operating system's generator; aborts when there is none.
std::string RandomBytes(size_t count);

// SHA-256 of a stream. Not thread-safe.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;
  void Update(std::string_view bytes);
  // Once, last.
  std::string FinishHex();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_COMMON_BASE_DIGEST_H_
