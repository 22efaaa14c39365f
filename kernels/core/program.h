// SPDX-License-Identifier: Apache-2.0
// Planning functions that column programs call (src/penstock/core/program.py).
#pragma once
#include <type_traits>
#include <utility>

#include "core/kernel.h"

// Always, and must give its result; the same, but only if an input's shapes have changed; always, and returns whether
// the shapes of an input have changed.
enum When : int64_t { kAlways, kIfShapesChanged, kInput };

// One instruction of a program: a function, its arguments, the result it must give, and when it runs.
struct Instruction {
  int64_t (*function)(const int64_t *arguments);
  const int64_t *arguments;
  int64_t result;
  When when;
};

// Calls a function with arguments from an array.
template <class R, class... A, size_t... I>
int64_t call_instruction(R (*function)(A...), const int64_t *from, std::index_sequence<I...>) {
  if constexpr (std::is_void_v<R>)
    return function((A)from[I]...), 0;
  else
    return (int64_t)function((A)from[I]...);
}

template <class R, class... A>
int64_t call_instruction(R (*function)(A...), const int64_t *from) {
  return call_instruction(function, from, std::index_sequence_for<A...>());
}

// Exports `name` once more as `name_instruction`, which takes its arguments from an array.
#define EXPORT_INSTRUCTION(name) \
  EXPORT int64_t name##_instruction(const int64_t *arguments) { return call_instruction(name, arguments); }
