// SPDX-License-Identifier: Apache-2.0
// Maps integers through a table.
#pragma once
#include "core/convert.h"

struct LookupTableArgs {
  const uint8_t *table;  // `size` values of the output's type, then the default value
  int32_t size;          // at most 65536
};

// Index of x in the table; `size`, the index of the default value, if out of range.
template <class In>
SHARED uint32_t table_index(In x, uint32_t size) {
  if constexpr (sizeof(In) == 8) {
    return (uint64_t)x < size ? (uint32_t)x : size;
  } else {
    const uint32_t i = (uint32_t)(int32_t)x;  // negative numbers become large ones
    return i < size ? i : size;
  }
}
