// Stands for torch's header of this name.
#pragma once
#include "kmosaic_torch/cuda.h"
