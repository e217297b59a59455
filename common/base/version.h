#ifndef KMOSAIC_COMMON_BASE_VERSION_H_
#define KMOSAIC_COMMON_BASE_VERSION_H_

namespace kmosaic {

// The same number as project(VERSION) in CMakeLists.txt; a test compares the two.
inline constexpr char kVersion[] = "0.1.0";

}  // namespace kmosaic

#endif  // KMOSAIC_COMMON_BASE_VERSION_H_
