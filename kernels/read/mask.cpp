// SPDX-License-Identifier: Apache-2.0
#include "read/mask.h"

#include <algorithm>
#include <cmath>

#include "core/kernel.h"

namespace {

// pycocotools draws the outline of a polygon point by point on a grid 5 times as fine. Where it crosses the middle of a
// pixel column, it records the pixel of that column; there the inside begins or ends. Here only those crossings are
// computed, not the points between them.
constexpr double kScale = 5;
constexpr size_t kMostSteps = 1 << 24;

int64_t on_grid(float coordinate) {
  const double x = kScale * (double)coordinate + .5;
  if (!(std::fabs(x) < 2147483647.0)) fail("a polygon has the coordinate %g", (double)coordinate);
  return (int64_t)x;
}

// The pixel of a column at whose upper edge a crossing at height `v` of the fine grid changes sides.
int64_t pixel_of(int64_t v, int64_t height) {
  double y = ((double)v + .5) / kScale - .5;
  return (int64_t)std::ceil(std::min(std::max(y, 0.), (double)height));
}

struct Edge {
  int64_t xs, ys, xe, ye;

  // Calls step(c, v) for each column c < width whose middle, u = 5 c + 2, the edge crosses: between two neighbouring
  // points, x changes between u and u + 1, and the upper point is at v.
  template <class F>
  void each_step(int64_t width, F step) {
    const int64_t dx = std::abs(xe - xs), dy = std::abs(ye - ys);
    const bool flat = dx >= dy;
    if ((flat && xs > xe) || (!flat && ys > ye)) std::swap(xs, xe), std::swap(ys, ye);
    const double slope = flat ? dx ? (double)(ye - ys) / (double)dx : 0 : (double)(xe - xs) / (double)dy;
    const int64_t low = std::min(xs, xe), high = std::max(xs, xe);
    // The columns with their middle between the ends.
    int64_t c = low <= 2 ? 0 : (low + 2) / 5;
    for (; c < width && 5 * c + 2 < high; c++) {
      const int64_t u = 5 * c + 2;
      if (flat) {
        auto y = [&](int64_t t) { return (int64_t)((double)ys + slope * (double)t + .5); };
        step(c, std::min(y(u - xs), y(u - xs + 1)));
        continue;
      }
      // x changes by at most 1 from point to point; binary search for the one of dy steps that crosses from u to u + 1.
      auto x = [&](int64_t t) { return (int64_t)((double)xs + slope * (double)t + .5); };
      const bool rising = xe > xs;
      int64_t first = 0, last = dy;  // x(first) is before the crossing, x(last) after it
      if (rising ? x(first) > u || x(last) <= u : x(first) <= u || x(last) > u) continue;
      while (last - first > 1) {
        const int64_t middle = first + (last - first) / 2;
        ((rising ? x(middle) <= u : x(middle) > u) ? first : last) = middle;
      }
      step(c, first + ys);
    }
  }
};

// Paints pixels [begin, end), counted down the columns.
void paint(int64_t begin, int64_t end, int64_t height, int64_t width, int32_t value, int32_t *pixels) {
  while (begin < end) {
    const int64_t column = begin / height, row = begin % height, n = std::min(end - begin, height - row);
    int32_t *at = pixels + row * width + column;
    for (int64_t i = 0; i < n; i++, at += width) *at = value;
    begin += n;
  }
}

}  // namespace

void paint_polygon(const float *vertices, int64_t n, int64_t height, int64_t width, int32_t value, int32_t *pixels,
                   std::vector<int64_t> &scratch) {
  scratch.clear();
  for (int64_t i = 0; i < n; i++) {
    const float *a = vertices + 2 * i, *b = vertices + 2 * (i + 1 < n ? i + 1 : 0);
    Edge edge{on_grid(a[0]), on_grid(a[1]), on_grid(b[0]), on_grid(b[1])};
    edge.each_step(width, [&](int64_t c, int64_t v) {
      if (scratch.size() == kMostSteps)
        fail("a polygon crosses the columns of its image more than %zu times", kMostSteps);
      scratch.push_back(c * height + pixel_of(v, height));
    });
  }
  std::sort(scratch.begin(), scratch.end());
  scratch.push_back(height * width);  // end of the inside if the number of crossings is odd
  for (size_t i = 0; i + 1 < scratch.size(); i += 2)
    paint(scratch[i], std::min(scratch[i + 1], height * width), height, width, value, pixels);
}

void paint_runs(const uint32_t *runs, int64_t n, int64_t height, int64_t width, int32_t value, int32_t *pixels) {
  int64_t at = 0;
  for (int64_t i = 0; i < n; i++) {
    if (runs[i] > height * width - at) fail("a mask has more pixels than its image");
    if (i % 2) paint(at, at + runs[i], height, width, value, pixels);
    at += runs[i];
  }
}
