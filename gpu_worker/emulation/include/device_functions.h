// Everything that the toolkit's header of this name declares is in the emulated cuda_runtime.h.
#include <cuda_runtime.h>
