// Declared in the emulated cub/cub.cuh.
#include <cub/cub.cuh>
