// SPDX-License-Identifier: Apache-2.0
// The polygons of chosen masks. in: ids of masks (k), polygons (p, 3) as (id, begin, end), vertices (v, c) of any type.
// out: how many polygons and vertices are chosen (2), or, with `fill`, these.
#pragma once
#include "core/tensor.h"

struct SelectMasksArgs {
  int32_t fill, reindex;
};
