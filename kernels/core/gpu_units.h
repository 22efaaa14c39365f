// SPDX-License-Identifier: Apache-2.0
// Kernels that only move bytes use the largest unit that fits all places.
#pragma once
#include "core/gpu.h"

struct __attribute__((aligned(16))) Unit16 {
  uint32_t w[4];
};
struct __attribute__((aligned(8))) Unit8 {
  uint32_t w[2];
};

template <int BYTES>
struct UnitOf;
template <>
struct UnitOf<16> {
  typedef Unit16 type;
};
template <>
struct UnitOf<8> {
  typedef Unit8 type;
};
template <>
struct UnitOf<4> {
  typedef uint32_t type;
};
template <>
struct UnitOf<2> {
  typedef uint16_t type;
};
template <>
struct UnitOf<1> {
  typedef uint8_t type;
};

// Loads the unit at index i as a whole.
template <class U>
DEVICE U unit_at(const void *p, int64_t i) {
  return ((const U *)p)[i];
}

// Whether external memory begins at a multiple of the unit.
template <class U>
DEVICE bool is_aligned(const void *p) {
  return ((unsigned long long)p & (sizeof(U) - 1)) == 0;
}
