// A benchmark's times as people read them.
#ifndef KMOSAIC_CLI_OUTPUT_TIMES_H_
#define KMOSAIC_CLI_OUTPUT_TIMES_H_

#include <string>

#include "kernelmosaic/v1/types.pb.h"

namespace kmosaic {

// "median 10.0 us (10% 9.5, 90% 11.2, 60 samples), eager torch 20.0 us, torch.compile 15.0 us,
// floor 4.0 us (memory), 2.00x of eager torch"; without what was not measured.
std::string TimesText(const kernelmosaic::v1::BenchmarkReport& times);

}  // namespace kmosaic

#endif  // KMOSAIC_CLI_OUTPUT_TIMES_H_
