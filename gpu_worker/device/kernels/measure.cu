// Our own kernels for measuring: they empty the cache and poison memory from inside the
// processes that are measured. Loaded through the driver (harness/device_kernels.py).

// Reads `count` 16-byte words and so takes the place of whatever L2 held. Nothing is left
// dirty that would be written back while a call is timed. `sink` is one word that is never
// written for a buffer of zeros.
extern "C" __global__ void kmosaic_evict(const uint4* words, unsigned long long count,
                                         unsigned* sink) {
  unsigned long long index = blockIdx.x * static_cast<unsigned long long>(blockDim.x) + threadIdx.x;
  unsigned long long step = gridDim.x * static_cast<unsigned long long>(blockDim.x);
  unsigned seen = 0;
  for (; index < count; index += step) {
    uint4 word = words[index];
    seen |= word.x | word.y | word.z | word.w;
  }
  if (seen != 0) *sink = seen;
}

// Fills `bytes` bytes at any address.
extern "C" __global__ void kmosaic_poison(unsigned char* data, unsigned long long bytes,
                                          unsigned char value) {
  unsigned long long index = blockIdx.x * static_cast<unsigned long long>(blockDim.x) + threadIdx.x;
  unsigned long long step = gridDim.x * static_cast<unsigned long long>(blockDim.x);
  for (; index < bytes; index += step) data[index] = value;
}
