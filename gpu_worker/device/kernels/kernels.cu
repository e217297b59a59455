// All of the worker's own kernels, in one image.
#include "compare.cu"
#include "measure.cu"
