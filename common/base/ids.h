// Names for things: short, random, safe in file names and URLs.
#ifndef KMOSAIC_COMMON_BASE_IDS_H_
#define KMOSAIC_COMMON_BASE_IDS_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace kmosaic {

// PREFIX + '-' + 12 characters of [a-z2-7] (60 random bits), say "job-k3v7m2qhx4ab".
std::string RandomId(std::string_view prefix);

uint64_t RandomUint64();

// The name of this machine, or "localhost" where it has none.
std::string HostName();

}  // namespace kmosaic

#endif  // KMOSAIC_COMMON_BASE_IDS_H_
