// Sources that differ in nothing that could matter.
#ifndef KMOSAIC_AGENT_RUNNER_AGENT_NORMALISED_SOURCE_H_
#define KMOSAIC_AGENT_RUNNER_AGENT_NORMALISED_SOURCE_H_

#include <string>

#include "common/base/enum_names.h"

namespace kmosaic {

// The source without comments, blank lines, white space at the ends of lines and, in C++,
// runs of white space. In a Python file the texts in triple quotes that hold CUDA are
// treated as C++; other strings stay as they are. Two versions with the same normalised
// source get the same verdict, so one evaluation serves both. Never compiled.
std::string NormalisedSource(const v1::Solution& solution);

// SHA-256 of it, hex.
std::string NormalisedDigest(const v1::Solution& solution);

}  // namespace kmosaic

#endif  // KMOSAIC_AGENT_RUNNER_AGENT_NORMALISED_SOURCE_H_
