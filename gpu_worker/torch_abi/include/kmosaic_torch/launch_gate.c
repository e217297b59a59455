/* Linked into every library that is built of a solution for a GPU: counts the kernels that the
 * library launches, and can keep them from running. The linker sends the library's calls here
 * (--wrap, see plan.cc); what other libraries launch does not pass. A launch that is kept back
 * reports success.
 *
 * Only the library's own process is asked, so this holds a program to its word and is no wall.
 */
#include <string.h>

struct Dim3 { /* as CUDA's dim3: three ints, passed in registers */
  unsigned x, y, z;
};

static unsigned long long launches;
static unsigned long long untracked;
static int refused;
static int closed;

enum { kNotFound = 500 }; /* cudaErrorSymbolNotFound, CUDA_ERROR_NOT_FOUND */

#define EXPORTED __attribute__((visibility("default")))

/* Kernels and graphs launched since the library was loaded, kept back or not. */
EXPORTED unsigned long long kmosaic_launch_gate_launches(void) { return launches; }

/* How often the library looked up a launching function by its name: such calls do not pass. */
EXPORTED unsigned long long kmosaic_launch_gate_untracked(void) { return untracked; }

/* What CUDA answered to the last launch that it refused; 0 for none. */
EXPORTED int kmosaic_launch_gate_refused(void) { return refused; }

/* From now on no launch runs. */
EXPORTED void kmosaic_launch_gate_close(void) { closed = 1; }

#define LAUNCH(name, parameters, arguments)                   \
  extern int __real_##name parameters __attribute__((weak)); \
  int __wrap_##name parameters {                              \
    __atomic_add_fetch(&launches, 1, __ATOMIC_RELAXED);       \
    if (closed) return 0;                                     \
    if (__real_##name == NULL) return kNotFound;              \
    int result = __real_##name arguments;                     \
    if (result != 0) refused = result;                        \
    return result;                                            \
  }
/* The second form works on the thread's own default stream. */
#define LAUNCH_BOTH(name, parameters, arguments) \
  LAUNCH(name, parameters, arguments)            \
  LAUNCH(name##_ptsz, parameters, arguments)

#define RUNTIME (const void *f, struct Dim3 g, struct Dim3 b, void **a, size_t n, void *s)
LAUNCH_BOTH(cudaLaunchKernel, RUNTIME, (f, g, b, a, n, s))
LAUNCH_BOTH(__cudaLaunchKernel, RUNTIME, (f, g, b, a, n, s))
LAUNCH_BOTH(cudaLaunchCooperativeKernel, RUNTIME, (f, g, b, a, n, s))
LAUNCH_BOTH(cudaLaunchKernelExC, (const void *c, const void *f, void **a), (c, f, a))
LAUNCH_BOTH(cudaGraphLaunch, (void *g, void *s), (g, s))

#define GRID unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz
LAUNCH_BOTH(cuLaunchKernel, (void *f, GRID, unsigned n, void *s, void **a, void **e),
            (f, gx, gy, gz, bx, by, bz, n, s, a, e))
LAUNCH_BOTH(cuLaunchCooperativeKernel, (void *f, GRID, unsigned n, void *s, void **a),
            (f, gx, gy, gz, bx, by, bz, n, s, a))
LAUNCH_BOTH(cuLaunchKernelEx, (const void *c, void *f, void **a, void **e), (c, f, a, e))
LAUNCH_BOTH(cuGraphLaunch, (void *g, void *s), (g, s))

static void note(const char *name) {
  if (name != NULL && strstr(name, "Launch") != NULL) {
    __atomic_add_fetch(&untracked, 1, __ATOMIC_RELAXED);
  }
}

#define LOOKUP(result, missing, function, parameters, arguments)    \
  extern result __real_##function parameters __attribute__((weak)); \
  result __wrap_##function parameters {                             \
    note(name);                                                     \
    if (__real_##function == NULL) return missing;                  \
    return __real_##function arguments;                             \
  }

LOOKUP(void *, NULL, dlsym, (void *h, const char *name), (h, name))
LOOKUP(int, kNotFound, cudaGetDriverEntryPoint,
       (const char *name, void **p, unsigned long long f, void *r), (name, p, f, r))
LOOKUP(int, kNotFound, cudaGetDriverEntryPointByVersion,
       (const char *name, void **p, unsigned v, unsigned long long f, void *r), (name, p, v, f, r))
LOOKUP(int, kNotFound, cuGetProcAddress_v2,
       (const char *name, void **p, int v, unsigned long long f, void *r), (name, p, v, f, r))
