// SPDX-License-Identifier: Apache-2.0
// Functions that Python calls. A macro after each tells how long it takes; the signature is deduced by the compiler:
//
//   EXPORT int64_t count(const int32_t *values, int64_t n) { ... }
//   EXPORT_SHORT(count)
//
// EXPORT_SHORT: takes microseconds. Python keeps the GIL, as switching threads costs more than that.
// EXPORT_LONG: may take longer, or waits. Python releases the GIL.
#pragma once
#include <cstdint>
#include <type_traits>

#define EXPORT extern "C" __attribute__((visibility("default")))

typedef struct _object PyObject;  // Python's; for functions that return one

namespace signature {

// The format character of a type, as in Python's module `struct`; P: address, O: Python object, v: void.
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
