// SPDX-License-Identifier: Apache-2.0
// Pixels of masks that are polygons or runs, exactly those that pycocotools finds.
#pragma once
#include <cstdint>
#include <vector>

// Both write `value` where the mask is, into `pixels` of `height` rows of `width`.

// A polygon of n vertices (x, y).
void paint_polygon(const float *vertices, int64_t n, int64_t height, int64_t width, int32_t value, int32_t *pixels,
                   std::vector<int64_t> &scratch);
// Runs of pixels, down the columns, by turns outside and inside. Fails if they go on past the last one.
void paint_runs(const uint32_t *runs, int64_t n, int64_t height, int64_t width, int32_t value, int32_t *pixels);
