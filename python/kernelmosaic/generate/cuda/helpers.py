"""Device functions that several kernels share."""

from __future__ import annotations

_COMBINE = {"sum": "a + b", "max": "fmaxf(a, b)", "min": "fminf(a, b)"}
_NEUTRAL = {"sum": "0.0f", "max": "-INFINITY", "min": "INFINITY"}


def combined(operation: str, a: str, b: str) -> str:
    return {"sum": f"{a} + {b}", "max": f"fmaxf({a}, {b})", "min": f"fminf({a}, {b})"}[operation]


def neutral(operation: str) -> str:
    return _NEUTRAL[operation]


def helper(name: str) -> str:
    """Text of `block_sum`, `warp_max` and the like."""
    kind, operation = name.split("_")
    if kind == "warp":
        return f"""__device__ __forceinline__ float {name}(float a) {{
    for (int offset = 16; offset > 0; offset /= 2) {{
        const float b = __shfl_xor_sync(0xffffffffu, a, offset);
        a = {_COMBINE[operation]};
    }}
    return a;
}}
"""
    return f"""__device__ float {name}(float value, float* shared) {{
    shared[threadIdx.x] = value;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {{
        if (threadIdx.x < half) {{
            const float a = shared[threadIdx.x];
            const float b = shared[threadIdx.x + half];
            shared[threadIdx.x] = {_COMBINE[operation]};
        }}
        __syncthreads();
    }}
    const float result = shared[0];
    __syncthreads();
    return result;
}}
"""
