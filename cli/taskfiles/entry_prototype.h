// Checks the host entry of a `cuda` task before anything is compiled.
#ifndef KMOSAIC_CLI_TASKFILES_ENTRY_PROTOTYPE_H_
#define KMOSAIC_CLI_TASKFILES_ENTRY_PROTOTYPE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernelmosaic/v1/types.pb.h"

namespace kmosaic {

struct EntryParameter {
  std::string type;  // "const float*"
  std::string name;
};

struct EntryPrototype {
  std::string name;
  std::vector<EntryParameter> parameters;
};

// INVALID_ARGUMENT, saying what is wrong, unless it reads "void NAME(TYPE PARAMETER, ...)".
absl::StatusOr<EntryPrototype> ParseEntryPrototype(const std::string& text);

// What is wrong with an entry: a prototype that does not parse, a parameter without a
// binding (cudaStream_t needs none), a binding without a parameter, or one of an unknown
// form. Empty when it is good.
std::vector<std::string> CheckEntry(const kernelmosaic::v1::CudaEntry& entry);

}  // namespace kmosaic

#endif  // KMOSAIC_CLI_TASKFILES_ENTRY_PROTOTYPE_H_
