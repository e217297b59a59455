// Declared in the emulated cooperative_groups.h.
#include <cooperative_groups.h>
