// What an instrumented build calls before each load and store. The compiler's sanitizer is used
// for its call sites alone; no shadow memory exists.
#include <stddef.h>
#include <stdint.h>

#include "kmosaic_emulation/runtime_api.h"

extern "C" {

#define KMOSAIC_COUNT(size)                                              \
  void __asan_load##size##_noabort(uintptr_t address) {                  \
    kmosaic_emu_access(reinterpret_cast<const void*>(address), size, 0); \
  }                                                                      \
  void __asan_store##size##_noabort(uintptr_t address) {                 \
    kmosaic_emu_access(reinterpret_cast<const void*>(address), size, 1); \
  }
KMOSAIC_COUNT(1)
KMOSAIC_COUNT(2)
KMOSAIC_COUNT(4)
KMOSAIC_COUNT(8)
KMOSAIC_COUNT(16)
#undef KMOSAIC_COUNT

void __asan_loadN_noabort(uintptr_t address, size_t bytes) {
  kmosaic_emu_access(reinterpret_cast<const void*>(address), bytes, 0);
}
void __asan_storeN_noabort(uintptr_t address, size_t bytes) {
  kmosaic_emu_access(reinterpret_cast<const void*>(address), bytes, 1);
}
void __asan_handle_no_return(void) {}
// Called round static constructors, which module definitions have.
void __asan_before_dynamic_init(const char*) {}
void __asan_after_dynamic_init(void) {}

}  // extern "C"
