/* The C interface between an extension built with the light torch headers and the Python harness
 * that loads it (harness/binding.py mirrors it with ctypes; change both together and raise
 * KM_TORCH_ABI_VERSION). The extension never touches Python or libtorch: tensors are described by
 * plain structures, and allocation and uncommon operations are called back.
 *
 * Ownership. A tensor travels with an id that the harness gave out. Whoever receives a KmTensor
 * with a non-zero id owns one reference to it; the extension gives its references back with
 * KmHost.release. Everything else (strings, arrays) belongs to its producer: what the harness
 * passes stays valid until the call returns; what KmHost.call returns, until the next KmHost.call
 * of the thread; what a function returns, until kmosaic_torch_finish of the thread.
 *
 * Threads. Any; the harness holds no lock while an extension runs. */
#ifndef KMOSAIC_TORCH_ABI_H_
#define KMOSAIC_TORCH_ABI_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KM_TORCH_ABI_VERSION 1
#define KM_MAX_DIMENSIONS 16

enum KmKind {
  KM_ABSENT = 0, /* no value: a parameter without default */
  KM_NONE = 1,
  KM_BOOL = 2,          /* integer */
  KM_INT = 3,           /* integer */
  KM_FLOAT = 4,         /* real */
  KM_STRING = 5,        /* data: UTF-8, size bytes, 0-terminated */
  KM_TENSOR = 6,        /* data: KmTensor */
  KM_LIST = 7,          /* data: size KmValues */
  KM_TUPLE = 8,         /* data: size KmValues */
  KM_DTYPE = 9,         /* integer: c10::ScalarType */
  KM_DEVICE = 10,       /* integer: c10::DeviceType, detail: index (-1 for none) */
  KM_MEMORY_FORMAT = 11, /* integer: c10::MemoryFormat */
  KM_KEYWORD = 12,      /* data: the name; the next value of the array is its value */
  KM_SLICE = 13,        /* data: three KmValues (start, stop, step), each KM_INT or KM_NONE */
  KM_ELLIPSIS = 14,
  KM_OTHER = 15,        /* a Python object that no parameter takes */
};

struct KmValue {
  int32_t kind;
  int32_t detail;
  int64_t integer;
  double real;
  const void* data;
  int64_t size;
};

struct KmTensor {
  uint64_t id; /* 0: undefined */
  void* data;  /* of the first element */
  int32_t dtype;        /* c10::ScalarType */
  int32_t device_type;  /* c10::DeviceType */
  int32_t device_index; /* -1 for none */
  int32_t requires_grad;
  int64_t dimensions; /* at most KM_MAX_DIMENSIONS */
  int64_t sizes[KM_MAX_DIMENSIONS];
  int64_t strides[KM_MAX_DIMENSIONS]; /* in elements */
};

/* What a failed call was. */
enum KmStatus {
  KM_OK = 0,
  KM_BAD_ARGUMENTS = 1, /* no overload takes them: a TypeError with the signatures */
  KM_RUNTIME_ERROR = 2,
  KM_VALUE_ERROR = 3,
  KM_INDEX_ERROR = 4,
  KM_TYPE_ERROR = 5,
  KM_MEMORY_ERROR = 6,
  KM_NOT_IMPLEMENTED = 7,
  KM_PYTHON_ERROR = 8, /* the exception that KmHost.call raised; the harness still has it */
};

/* Given by the harness; must live as long as the process. */
struct KmHost {
  int32_t version;
  int32_t reserved;
  /* Runs a torch operation: "name" as a function (ATen's, with ATen's order of arguments),
   * ".name" as a method of the first argument. Returns KM_OK and fills result, or
   * KM_PYTHON_ERROR and puts the error's text into result (KM_STRING). */
  int32_t (*call)(const char* name, const struct KmValue* arguments, int64_t count,
                  struct KmValue* result);
  /* Gives one reference back. Does nothing when the interpreter is going down. */
  void (*release)(uint64_t id);
  /* The current stream (cudaStream_t) of a device. */
  void* (*stream)(int32_t device_index);
};

struct KmFunction {
  const char* name;
  const char* doc;
  const char* signatures; /* as pybind11 prints them, one overload a line */
  void* self;
};

struct KmModule {
  int32_t version;
  int32_t reserved;
  const char* doc;
  int64_t function_count;
  const struct KmFunction* functions;
};

/* Exported by every extension. */

/* Runs the module's definition. Null when versions differ, with *error telling so. */
const struct KmModule* kmosaic_torch_open(const struct KmHost* host, const char** error);
/* Calls a function. Keyword arguments come as KM_KEYWORD pairs behind the positional ones. */
int32_t kmosaic_torch_invoke(void* self, const struct KmValue* arguments, int64_t count,
                             struct KmValue* result);
/* The thread's last result has been taken over. */
void kmosaic_torch_finish(void);

#ifdef __cplusplus
}
#endif

#endif /* KMOSAIC_TORCH_ABI_H_ */
