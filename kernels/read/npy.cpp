// SPDX-License-Identifier: Apache-2.0
#include "read/npy.h"

#include <algorithm>
#include <cmath>

#include "read/npy_header.h"
#include "read/parser.h"

namespace {

enum Outside { kError, kPad, kTrim };

struct Window {
  int64_t begin[kMaxDims], size[kMaxDims];  // per axis
};

int64_t rounded(double x) {
  if (!(std::fabs(x) < 4e18)) fail("the region of interest reaches beyond all arrays");
  return std::llround(x);
}

// Relative values are multiplied by the extent as float32, as in fn.slice. `row` is the row of the values.
Window window_of(const NpyHeader &h, const NpyArgs &a, int64_t row) {
  Window w;
  for (int d = 0; d < h.ndim; d++) w.begin[d] = 0, w.size[d] = h.shape[d];
  const int n_start = a.start_is ? a.start_count[row] : 0, n_end = a.end_is ? a.end_count[row] : 0;
  if (!n_start && !n_end) return w;
  const int start_is = n_start ? a.start_is : 0, end_is = n_end ? a.end_is : 0;
  const int32_t *start_at = a.start_at + row * kMaxDims, *end_at = a.end_at + row * kMaxDims;
  const float *start = a.start + row * kMaxDims, *end_by = a.end + row * kMaxDims;
  const int n = a.n_axes ? a.n_axes : std::max(n_start, n_end);
  for (int count : {n_start, n_end})
    if (count > 1 && count != n)
      fail("the region of interest has %d values for its start, %d for its end or shape, and %d axes", n_start, n_end,
           n);
  if (!a.n_axes && n != h.ndim && n != 1)
    fail("the region of interest has values for %d axes, the array has %d; roi_axes says which ones are meant", n,
         h.ndim);
  const int n_axes = a.n_axes ? n : h.ndim;
  bool seen[kMaxDims] = {};
  for (int i = 0; i < n_axes; i++) {
    const int s = n_start == 1 ? 0 : i, e = n_end == 1 ? 0 : i;
    int axis = a.n_axes ? a.axes[i] : i;
    if (axis < -h.ndim || axis >= h.ndim) fail("roi_axes has axis %d, the array has %d", axis, h.ndim);
    if (axis < 0) axis += h.ndim;
    if (seen[axis]) fail("roi_axes has axis %d twice", axis);
    seen[axis] = true;
    const int64_t extent = h.shape[axis];
    const float size = (float)extent;
    const double begin = start_is == 1 ? start_at[s] : start_is == 2 ? start[s] * size : 0;
    double end = (double)extent;
    if (end_is == 1)
      end = end_at[e];
    else if (end_is == 2)
      end = end_by[e] * size;
    else if (end_is == 3)
      end = begin + end_at[e];
    else if (end_is == 4)
      end = start_is == 2 ? std::max(((double)start[s] + end_by[e]) * (double)extent, begin)
                          : begin + (double)(end_by[e] * size);
    const int64_t first = rounded(begin), last = rounded(end);
    if (last < first)
      fail("the region of interest ends before it begins, along axis %d: from %lld to %lld", axis, (long long)first,
           (long long)last);
    w.begin[axis] = first, w.size[axis] = last - first;
    if (a.outside == kTrim) {
      w.begin[axis] = std::min(std::max<int64_t>(first, 0), extent);
      w.size[axis] = std::min(std::max<int64_t>(last, 0), extent) - w.begin[axis];
    } else if (a.outside == kError && (first < 0 || last > extent)) {
      fail(
          "the region of interest reaches from %lld to %lld along axis %d, the array only from 0 to %lld; "
          "out_of_bounds_policy 'pad' or 'trim_to_shape' accepts that",
          (long long)first, (long long)last, axis, (long long)extent);
    }
  }
  return w;
}

// Copies elements of `item` bytes to their positions; strides are in bytes.
template <class T>
void copy(char *to, const int64_t *to_stride, const char *from, const int64_t *from_stride, const int64_t *shape,
          int ndim) {
  if (ndim == 0) {
    memcpy(to, from, sizeof(T));
    return;
  }
  if (ndim > 2) {
    for (int64_t i = 0; i < shape[0]; i++)
      copy<T>(to + i * to_stride[0], to_stride + 1, from + i * from_stride[0], from_stride + 1, shape + 1, ndim - 1);
    return;
  }
  const int64_t rows = ndim == 2 ? shape[0] : 1, columns = shape[ndim - 1];
  const int64_t tr = ndim == 2 ? to_stride[0] : 0, fr = ndim == 2 ? from_stride[0] : 0;
  const int64_t tc = to_stride[ndim - 1], fc = from_stride[ndim - 1];
  if (tc == (int64_t)sizeof(T) && fc == (int64_t)sizeof(T)) {
    for (int64_t r = 0; r < rows; r++) memcpy(to + r * tr, from + r * fr, columns * sizeof(T));
    return;
  }
  constexpr int64_t kTile = 32;  // one of the two is accessed across its rows
  for (int64_t r0 = 0; r0 < rows; r0 += kTile)
    for (int64_t c0 = 0; c0 < columns; c0 += kTile)
      for (int64_t r = r0; r < std::min(rows, r0 + kTile); r++)
        for (int64_t c = c0; c < std::min(columns, c0 + kTile); c++)
          memcpy(to + r * tr + c * tc, from + r * fr + c * fc, sizeof(T));
}

void copy(int64_t item, char *to, const int64_t *to_stride, const char *from, const int64_t *from_stride,
          const int64_t *shape, int ndim) {
  if (item == 1)
    copy<uint8_t>(to, to_stride, from, from_stride, shape, ndim);
  else if (item == 2)
    copy<uint16_t>(to, to_stride, from, from_stride, shape, ndim);
  else if (item == 4)
    copy<uint32_t>(to, to_stride, from, from_stride, shape, ndim);
  else
    copy<uint64_t>(to, to_stride, from, from_stride, shape, ndim);
}

void fill(Tensor &out, int64_t n, float value) {
  for_any_dtype(out.dtype, [&](auto t) {
    using T = decltype(t);
    std::fill_n(out.as<T>(), n, saturate<T>(value));
  });
}

// The bytes of the file from `begin` on: in place if already read, else read now.
const char *bytes_at(Sample &sample, int64_t begin, int64_t n) {
  const Part part = sample.parts[0];
  if (begin + n <= part.size) return part.data + begin;
  char *read = (char *)sample.take(std::max<int64_t>(n, 1));
  if (n) sample.read(0, begin, n, read);
  return read;
}

// Output 0 is an unchanged part of the file, which is not read if `stays`.
void give_part(Sample &sample, const NpyArgs &a, int64_t begin, int64_t bytes) {
  if (a.stays)
    *sample.out(1).as<int64_t>() = begin;
  else
    sample.give_elements(0, bytes_at(sample, begin, bytes), bytes);
}

void parse(Sample &sample, const NpyArgs &a) {
  if (a.stays) *sample.out(1).as<int64_t>() = -1;
  const Part part = sample.parts[0];
  int64_t text_begin;
  const int64_t begin = npy_header_size(part.data, part.size, text_begin);
  const int64_t length = a.has_window ? sample.object_length(0) : part.size;
  if (begin > length)
    fail("the .npy file has %lld bytes, and its header alone %lld", (long long)length, (long long)begin);
  const NpyHeader h = npy_header(bytes_at(sample, 0, begin) + text_begin, begin - text_begin);
  if (h.bytes > length - begin)
    fail("the header promises an array of %lld bytes, behind it the file has %lld", (long long)h.bytes,
         (long long)(length - begin));
  const Window w = window_of(h, a, a.n_rows == 1 ? 0 : sample.row);
  const int64_t item = item_size(h.dtype);

  Tensor &out = sample.out(0);
  out.dtype = h.dtype, out.ndim = h.ndim;
  // The part of the window inside the array.
  int64_t inside[kMaxDims], size[kMaxDims], n = 1;
  bool empty = false, is_whole = true, is_inside = true;
  for (int d = 0; d < h.ndim; d++) {
    out.shape[d] = w.size[d];
    if (__builtin_mul_overflow(n, w.size[d], &n)) fail("the region of interest is too large");
    inside[d] = std::min(std::max<int64_t>(w.begin[d], 0), h.shape[d]);
    size[d] = std::max<int64_t>(0, std::min(w.begin[d] + w.size[d], h.shape[d]) - inside[d]);
    empty = empty || !size[d];
    is_whole = is_whole && w.begin[d] == 0 && w.size[d] == h.shape[d];
    is_inside = is_inside && w.begin[d] == inside[d] && w.size[d] == size[d];
  }
  int64_t bytes;
  if (__builtin_mul_overflow(n, item, &bytes)) fail("the region of interest is too large");
  if (is_whole && (!h.columns_first || h.ndim < 2)) return give_part(sample, a, begin, bytes);

  if (empty) {  // nothing is inside
    out.data = sample.take(std::max<int64_t>(bytes, 1));
    return fill(out, n, a.fill_value);
  }
  // Strides of the array in the file and of the output.
  int64_t in_file[kMaxDims], in_out[kMaxDims], at = item, at_out = item;
  for (int k = 0; k < h.ndim; k++) {
    const int d = h.columns_first ? k : h.ndim - 1 - k, e = h.ndim - 1 - k;
    in_file[d] = at, at *= h.shape[d];
    in_out[e] = at_out, at_out *= w.size[e];
  }
  int64_t first = 0, last = item, to = 0, elements = 1;
  for (int d = 0; d < h.ndim; d++) {
    first += inside[d] * in_file[d];
    last += (inside[d] + size[d] - 1) * in_file[d];
    to += (inside[d] - w.begin[d]) * in_out[d];
    elements *= size[d];
  }
  if (is_inside && elements * item == last - first && !h.columns_first)
    return give_part(sample, a, begin + first, bytes);
  const char *from = bytes_at(sample, begin + first, last - first);
  char *data = (char *)sample.take(bytes);
  out.data = data;
  if (!is_inside) fill(out, n, a.fill_value);
  copy(item, data + to, in_out, from, in_file, size, h.ndim);
}

}  // namespace

EXPORT_PARSER(npy, NpyArgs, parse)
