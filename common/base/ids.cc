#include "common/base/ids.h"

#include <unistd.h>

#include <cstring>

#include "common/base/digest.h"

namespace kmosaic {

std::string RandomId(std::string_view prefix) {
  static constexpr char kAlphabet[] = "abcdefghijklmnopqrstuvwxyz234567";
  std::string id(prefix);
  id += '-';
  for (unsigned char byte : RandomBytes(12)) id += kAlphabet[byte & 31];
  return id;
}

uint64_t RandomUint64() {
  uint64_t value = 0;
  std::memcpy(&value, RandomBytes(sizeof value).data(), sizeof value);
  return value;
}

std::string HostName() {
  char name[256] = {};
  if (gethostname(name, sizeof name - 1) != 0 || name[0] == '\0') return "localhost";
  return name;
}

}  // namespace kmosaic
