// SPDX-License-Identifier: Apache-2.0
// The polygons of chosen masks. in: ids of masks (k), polygons (p, 3) as (id, begin, end), vertices (v, c) of any type.
// out: the chosen polygons and their vertices, in the beginning of as many rows as there are room for, and how many
// they are (2). Vertices without room are counted only.
#pragma once
#include "core/tensor.h"

struct SelectMasksArgs {
  int32_t reindex;
};
