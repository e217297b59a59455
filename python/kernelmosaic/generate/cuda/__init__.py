"""CUDA source text: kernels with their host functions, in several styles each."""
