// Where this installation's files are. A build directory and an unpacked bundle have the
// same layout:
//   ROOT/bin/                      programs
//   ROOT/share/kernelmosaic/NAME   harness, guidance, headers for candidates
#ifndef KMOSAIC_COMMON_BASE_INSTALL_H_
#define KMOSAIC_COMMON_BASE_INSTALL_H_

#include <string>
#include <string_view>

namespace kmosaic {

// KMOSAIC_HOME if it is set, else the parent of the running program's folder. Absolute.
std::string InstallRoot();

// ROOT/bin/NAME.
std::string ProgramPath(std::string_view name);

// ROOT/share/kernelmosaic/NAME.
std::string SharePath(std::string_view name);

}  // namespace kmosaic

#endif  // KMOSAIC_COMMON_BASE_INSTALL_H_
