// libstdc++ of g++ 11 and later exports this; an interpreter's older libstdc++ does not, and the
// runtime is loaded into whatever interpreter there is. Hidden, so it serves this library alone.
#include <cstdlib>
#include <new>

namespace std {
[[noreturn]] void __throw_bad_array_new_length();
void __throw_bad_array_new_length() { abort(); }
}  // namespace std
