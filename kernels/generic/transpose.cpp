// SPDX-License-Identifier: Apache-2.0
// Axes that stay adjacent are merged, and a short innermost run becomes one element of up to 16 bytes. The rest is done
// as transpositions of the axes that are innermost in the output and in the input.
#include "generic/transpose.h"

#include <algorithm>
#include <cstring>

#include "core/kernel.h"

namespace {

template <int kBytes>
struct Element {
  uint8_t bytes[kBytes];
};
template <int kBytes>
struct ElementOf {
  typedef Element<kBytes> type;
};
template <>
struct ElementOf<1> {
  typedef uint8_t type;
};
template <>
struct ElementOf<2> {
  typedef uint16_t type;
};
template <>
struct ElementOf<4> {
  typedef uint32_t type;
};
template <>
struct ElementOf<8> {
  typedef uint64_t type;
};

template <class T, int kCount>
inline void split(T *__restrict out, const T *__restrict in, int64_t n, int64_t out_step) {
  for (int c = 0; c < kCount; c++)
    for (int64_t i = 0; i < n; i++) out[c * out_step + i] = in[i * kCount + c];
}

template <class T, int kCount>
inline void join(T *__restrict out, const T *__restrict in, int64_t n, int64_t in_step) {
  for (int64_t i = 0; i < n; i++)
    for (int c = 0; c < kCount; c++) out[i * kCount + c] = in[c * in_step + i];
}

// out[j * out_step + i] = in[i * in_step + j] for i < n, j < m.
template <int kBytes>
CLONES void swap_axes(void *to, const void *from, int64_t n, int64_t m, int64_t in_step, int64_t out_step) {
  typedef typename ElementOf<kBytes>::type T;
  T *__restrict out = static_cast<T *>(to);
  const T *__restrict in = static_cast<const T *>(from);
  if (in_step == m) {  // deinterleaves planes
    switch (m) {
      case 2:
        return split<T, 2>(out, in, n, out_step);
      case 3:
        return split<T, 3>(out, in, n, out_step);
      case 4:
        return split<T, 4>(out, in, n, out_step);
    }
  }
  if (out_step == n) {  // interleaves planes
    switch (n) {
      case 2:
        return join<T, 2>(out, in, m, in_step);
      case 3:
        return join<T, 3>(out, in, m, in_step);
      case 4:
        return join<T, 4>(out, in, m, in_step);
    }
  }
  constexpr int64_t kTile = 32;
  for (int64_t j0 = 0; j0 < m; j0 += kTile)
    for (int64_t i0 = 0; i0 < n; i0 += kTile) {
      const int64_t j1 = std::min(j0 + kTile, m), i1 = std::min(i0 + kTile, n);
      for (int64_t j = j0; j < j1; j++)
        for (int64_t i = i0; i < i1; i++) out[j * out_step + i] = in[i * in_step + j];
    }
}

struct Walk {
  int ndim = 0;
  int64_t extent[kMaxDims], in_step[kMaxDims], out_step[kMaxDims];  // of the output's axes; in elements
  int64_t bytes;                                                    // of an element
  int nearest;                                                      // the axis that is innermost in the input
  void (*swap)(void *, const void *, int64_t, int64_t, int64_t, int64_t);

  void visit(char *out, const char *in, int d) const {
    const int last = ndim - 1;
    if (d == nearest && d < last) return visit(out, in, d + 1);
    if (d == last) {
      if (nearest == last)
        std::memcpy(out, in, extent[last] * bytes);
      else
        swap(out, in, extent[last], extent[nearest], in_step[last], out_step[nearest]);
      return;
    }
    for (int64_t i = 0; i < extent[d]; i++) visit(out + i * out_step[d] * bytes, in + i * in_step[d] * bytes, d + 1);
  }
};

}  // namespace

static void run(const Tensor *out, const Tensor *in, const TransposeArgs &a, Scratch &) {
  if (out->volume() == 0) return;
  Walk w;
  w.bytes = item_size(in->dtype);
  int64_t in_step[kMaxDims], step = 1, offset = 0;
  for (int d = in->ndim - 1; d >= 0; d--) {
    in_step[d] = step;
    offset += a.start[d] * step;
    step *= in->shape[d];
  }
  const char *from = in->as<char>() + offset * w.bytes;
  for (int d = 0; d < out->ndim; d++) {
    const int64_t n = out->shape[d], s = in_step[a.perm[d]];
    if (n == 1) continue;
    if (w.ndim && w.in_step[w.ndim - 1] == s * n) {  // continues the stride of the axis before
      w.extent[w.ndim - 1] *= n, w.in_step[w.ndim - 1] = s;
      continue;
    }
    w.extent[w.ndim] = n, w.in_step[w.ndim++] = s;
  }
  // A short contiguous run becomes one element.
  if (w.ndim > 1 && w.in_step[w.ndim - 1] == 1) {
    const int64_t run = w.extent[w.ndim - 1], size = run * w.bytes;
    bool whole =
        size <= 16 && (size == 2 || size == 3 || size == 4 || size == 6 || size == 8 || size == 12 || size == 16);
    for (int d = 0; d < w.ndim - 1; d++) whole = whole && w.in_step[d] % run == 0;
    if (whole) {
      w.ndim--;
      w.bytes = size;
      for (int d = 0; d < w.ndim; d++) w.in_step[d] /= run;
    }
  }
  if (w.ndim == 0) w.extent[0] = 1, w.in_step[0] = 1, w.ndim = 1;
  step = 1;
  w.nearest = w.ndim - 1;
  for (int d = w.ndim - 1; d >= 0; d--) {
    w.out_step[d] = step, step *= w.extent[d];
    if (w.in_step[d] == 1) w.nearest = d;
  }
  if (w.in_step[w.nearest] != 1) {  // no axis has stride 1 in the input (a window): add an axis of one element
    w.extent[w.ndim] = 1, w.in_step[w.ndim] = 1, w.out_step[w.ndim] = 1;
    w.nearest = w.ndim++;
  }
  switch (w.bytes) {
    case 1:
      w.swap = swap_axes<1>;
      break;
    case 2:
      w.swap = swap_axes<2>;
      break;
    case 3:
      w.swap = swap_axes<3>;
      break;
    case 4:
      w.swap = swap_axes<4>;
      break;
    case 6:
      w.swap = swap_axes<6>;
      break;
    case 8:
      w.swap = swap_axes<8>;
      break;
    case 12:
      w.swap = swap_axes<12>;
      break;
    default:
      w.swap = swap_axes<16>;
  }
  w.visit(out->as<char>(), from, 0);
}

EXPORT_KERNEL(transpose, TransposeArgs, run)
