// SPDX-License-Identifier: Apache-2.0
// Functions that Python calls. A line behind each says what it is to a caller; its signature is the compiler's:
//
//   EXPORT int64_t count(const int32_t *values, int64_t n) { ... }
//   EXPORT_SHORT(count)
//
// EXPORT_SHORT: takes microseconds. Python keeps its lock (the GIL), as changing threads costs more than that.
// EXPORT_LONG: may take longer, or waits. Python's other threads run meanwhile.
#pragma once
#include <cstdint>
#include <type_traits>

#define EXPORT extern "C" __attribute__((visibility("default")))

typedef struct _object PyObject;  // of Python; for functions that give one

namespace signature {

// The letter of a type, as in Python's module `struct`; P: an address, O: an object of Python, v: nothing.
template <class T>
constexpr char letter() {
  if constexpr (std::is_void_v<T>)
    return 'v';
  else if constexpr (std::is_same_v<T, PyObject *>)
    return 'O';
  else if constexpr (std::is_pointer_v<T>)
    return 'P';
  else if constexpr (std::is_same_v<T, float>)
    return 'f';
  else if constexpr (std::is_same_v<T, double>)
    return 'd';
  else {
    static_assert(std::is_integral_v<T> && !std::is_same_v<T, bool>, "Python can't give or take this type");
    constexpr int log2 = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
    return (std::is_signed_v<T> ? "bhiq" : "BHIQ")[log2];
  }
}

template <char kind, class Result, class... Of>
const char *of(Result (*)(Of...)) {
  static constexpr char text[] = {kind, letter<Result>(), letter<Of>()..., 0};
  return text;
}

}  // namespace signature

#define EXPORT_SHORT(name) \
  EXPORT const char *name##_signature() { return signature::of<'S'>(name); }
#define EXPORT_LONG(name) \
  EXPORT const char *name##_signature() { return signature::of<'L'>(name); }
