// SPDX-License-Identifier: Apache-2.0
// Pixels of masks given as polygons or runs, identical to pycocotools' result.
#pragma once
#include <cstdint>
#include <vector>

// Both write `value` into the masked pixels of `pixels`, `height` rows of `width`.

// A polygon of n vertices (x, y).
void paint_polygon(const float *vertices, int64_t n, int64_t height, int64_t width, int32_t value, int32_t *pixels,
                   std::vector<int64_t> &scratch);
// Runs of pixels, down the columns, alternately outside and inside. Fails if they exceed the image.
void paint_runs(const uint32_t *runs, int64_t n, int64_t height, int64_t width, int32_t value, int32_t *pixels);
