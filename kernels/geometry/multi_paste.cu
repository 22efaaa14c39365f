// SPDX-License-Identifier: Apache-2.0
// form: own
#include "core/gpu_runs.h"
#include "geometry/multi_paste.h"

// A region of a sample, in rows of the canvas and elements of its rows.
struct PasteRegion {
  int32_t top, bottom, left, right;
  int64_t source, pitch, in_y, in_x;  // its image and its position there
  DEVICE PasteRegion(const MultiPasteArgs &a, int r, int32_t channels) {
    const int64_t *p = a.places + 6 * r;
    top = (int32_t)load(p + 4), bottom = top + (int32_t)load(p + 2);
    left = (int32_t)load(p + 5) * channels, right = left + (int32_t)load(p + 3) * channels;
    source = load(a.sources + r), pitch = load(a.widths + r) * channels;
    in_y = load(p), in_x = load(p + 1) * channels;
  }
  DEVICE bool has(int32_t row, int32_t from, int32_t to) const {
    return row >= top && row < bottom && from < right && to > left;
  }
  DEVICE bool covers(int32_t row, int32_t from, int32_t to) const {
    return row >= top && row < bottom && from >= left && to <= right;
  }
};

// Sets elements [begin, end) of x to those of a row of the canvas from column `column` on.
template <class In, class Out, int E>
DEVICE void paste_row(Out (&x)[E], const MultiPasteArgs &a, int32_t channels, int32_t row, int32_t column, int begin,
                      int end) {
  const int32_t to = column + end - begin;
  int first = a.regions - 1;  // regions below one that covers all elements are skipped
  for (; first >= 0; first--)
    if (PasteRegion(a, first, channels).covers(row, column, to)) break;
  if (first < 0) {
    first = 0;
#pragma unroll
    for (int e = 0; e < E; e++)
      if (e >= begin && e < end) x[e] = Out(0);
  }
#pragma unroll 1
  for (int r = first; r < a.regions; r++) {
    const PasteRegion region(a, r, channels);
    if (!region.has(row, column, to)) continue;
    const int32_t zero = column - begin;  // the column of x[0]
    const int lo = region.left - zero > begin ? region.left - zero : begin;
    const int hi = region.right - zero < end ? region.right - zero : end;
    const In *p =
        (const In *)region.source + (region.in_y + row - region.top) * region.pitch + region.in_x + zero - region.left;
    In y[E] __attribute__((aligned(16)));
    load_run(y, p, lo, hi);
#pragma unroll
    for (int e = 0; e < E; e++)
      if (e >= lo && e < hi) x[e] = saturate<Out>(y[e]);
  }
}

// Threads make runs of the canvas that are aligned to 16 bytes and may span rows.
template <class In, class Out, int THREADS>
DEVICE void paste_runs(const Launch &l) {
  constexpr int E = 16 / sizeof(Out);
  FOR_SAMPLES(sample, l) {
    const MultiPasteArgs a = ((const MultiPasteArgs *)l.args[0])[sample];
    const Tensor to = l.tensors[0][sample];
    const int32_t n = (int32_t)volume_of(to), channels = (int32_t)to.shape[2], width = (int32_t)to.shape[1] * channels;
    Out *out = to.template as<Out>();
    const int32_t lead = (int32_t)((unsigned long long)out / sizeof(Out) & (E - 1)), n_runs = (n + lead + E - 1) / E;
    if (n == 0) continue;
    for (int32_t i = blockIdx.x * THREADS + threadIdx.x; i < n_runs; i += gridDim.x * THREADS) {
      const int32_t e = i * E - lead;
      const int first = e < 0 ? -e : 0, behind = n - e < E ? n - e : E;
      int32_t row = (uint32_t)(e + first) / (uint32_t)width, column = e + first - row * width;
      Out x[E] __attribute__((aligned(16)));
      if (first == 0 && behind == E && column + E <= width) {
        paste_row<In>(x, a, channels, row, column, 0, E);
        *(uint4 *)(out + e) = *(const uint4 *)x;
        continue;
      }
#pragma unroll 1
      for (int begin = first, end; begin < behind; begin = end, column = 0, row++) {
        end = begin + (width - column < behind - begin ? width - column : behind - begin);
        paste_row<In>(x, a, channels, row, column, begin, end);
      }
      store_run(out + e, x, first, behind);
    }
  }
}
