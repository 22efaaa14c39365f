// SPDX-License-Identifier: Apache-2.0
// Planning functions that column programs call (src/penstock/core/program.py).
#pragma once
#include <type_traits>
#include <utility>

#include "core/kernel.h"

// One instruction of a program: a function, its arguments, and the result it must return.
struct Instruction {
  int64_t (*function)(const int64_t *arguments);
  const int64_t *arguments;
  int64_t result;
};

namespace instruction {

template <class T>
T unpacked(int64_t value) {
  if constexpr (std::is_pointer_v<T>)
    return (T)value;
  else
    return static_cast<T>(value);
}

template <class R, class... A, size_t... I>
int64_t call(R (*function)(A...), const int64_t *a, std::index_sequence<I...>) {
  if constexpr (std::is_void_v<R>) {
    function(unpacked<A>(a[I])...);
    return 0;
  } else {
    return (int64_t)function(unpacked<A>(a[I])...);
  }
}

template <class R, class... A>
int64_t call(R (*function)(A...), const int64_t *a) {
  return call(function, a, std::index_sequence_for<A...>());
}

}  // namespace instruction

// Exports `name` once more as `name_instruction`, which takes its arguments from an array.
#define EXPORT_INSTRUCTION(name) \
  EXPORT int64_t name##_instruction(const int64_t *arguments) { return instruction::call(name, arguments); }
