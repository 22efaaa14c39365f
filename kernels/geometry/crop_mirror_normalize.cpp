// SPDX-License-Identifier: Apache-2.0
#include "geometry/crop_mirror_normalize.h"

#include <algorithm>
#include <cstring>

#include "core/kernel.h"
#include "geometry/fill.h"
#include "geometry/normalize_rows.h"
#include "geometry/reverse_pixels.h"
#include "geometry/truncated.h"

namespace {

// Traverses the output axis by axis; the row loops handle the innermost axes.
struct Walk {
  Fill fill;  // knows the output's shape
  int ndim, channels;
  int64_t begin[kMaxDims];  // [begin, end) of the output comes from the input, the rest is filled
  int64_t end[kMaxDims];
  int64_t in_step[kMaxDims];  // elements of the input per index of the output
  int64_t in_size, out_size;  // bytes of an element
  const float *mean, *scale;
  float *row;  // one row of values
  void (*read)(float *out, const void *in, int64_t n, int64_t stride, int channels);
  void (*write)(void *out, const float *in, int64_t n, float mean, float scale);
  void (*write_pixels)(void *out, const float *in, int64_t n, int channels, int padded, const float *mean,
                       const float *scale, const void *fill, float *room);
  // From uint8 pixels of three channels to three planes; else null.
  void (*split3_row)(void *out, const uint8_t *in, int64_t n, int64_t plane, const float *mean, const float *scale);
  char *turned;  // room for a reversed row of the input

  void visit(char *out, const char *in, int d, int c) const {
    const int64_t b = begin[d], e = end[d];
    fill.range(out, d, 0, b, c);
    fill.range(out, d, e, fill.extent[d], c);
    if (e <= b) return;
    char *o = out + b * fill.step[d] * out_size;
    const char *x = in + b * in_step[d] * in_size;
    if (split3_row && d == ndim - 3) {
      split3(out, in);
    } else if (d == ndim - 2 && channels == ndim - 1 && in_step[channels] == 1) {
      const int n_channels = (int)end[channels];
      read(row, unmirrored(x, e - b, d, n_channels), e - b, std::max<int64_t>(in_step[d], n_channels), n_channels);
      write_pixels(o, row, e - b, n_channels, (int)fill.extent[channels], mean, scale, fill.values,
                   row + (e - b) * n_channels);
    } else if (d == ndim - 1 && d != channels) {
      read(row, x, e - b, in_step[d], 1);
      write(o, row, e - b, mean[c], scale[c]);
    } else if (d == ndim - 1) {
      read(row, x, e - b, in_step[d], 1);
      for (int64_t i = b; i < e; i++) write(out + i * out_size, row + i - b, 1, mean[i], scale[i]);
    } else {
      for (int64_t i = b; i < e; i++, o += fill.step[d] * out_size, x += in_step[d] * in_size)
        visit(o, x, d + 1, d == channels ? (int)i : c);
    }
  }
  // Whether the last three axes convert interleaved pixels of three channels to planes: one pass over the input is
  // enough, instead of three.
  bool is_split3() const {
    const int c = ndim - 3;
    return c >= 0 && c == channels && begin[c] == 0 && end[c] == 3 && in_step[c] == 1 && std::abs(in_step[c + 2]) == 3;
  }
  void split3(char *out, const char *in) const {
    const int h = ndim - 2, w = ndim - 1;
    const int64_t left = begin[w], right = end[w];
    for (int c = 0; c < 3; c++) {
      char *plane = out + c * fill.step[channels] * out_size;
      fill.range(plane, h, 0, begin[h], c);
      fill.range(plane, h, end[h], fill.extent[h], c);
      if (left == 0 && right == fill.extent[w]) continue;
      for (int64_t y = begin[h]; y < end[h]; y++) {
        fill.range(plane + y * fill.step[h] * out_size, w, 0, left, c);
        fill.range(plane + y * fill.step[h] * out_size, w, right, fill.extent[w], c);
      }
    }
    for (int64_t y = begin[h]; y < end[h] && right > left; y++) {
      const char *x = unmirrored(in + y * in_step[h] + left * in_step[w], right - left, w, 3);
      split3_row(out + (y * fill.step[h] + left) * out_size, (const uint8_t *)x, right - left, fill.step[channels],
                 mean, scale);
    }
  }
  // n pixels of `values` elements from x on, in the output's order: reversed if axis d is mirrored.
  const char *unmirrored(const char *x, int64_t n, int d, int values) const {
    if (in_step[d] != -values) return x;
    reverse_pixels(turned, x + (n - 1) * in_step[d] * in_size, n, values * in_size);
    return turned;
  }
};

}  // namespace

static void run(const Tensor *out, const Tensor *in, const CropMirrorNormalizeArgs &a, Scratch &scratch) {
  const int n = out->ndim;
  Walk w;
  w.ndim = n, w.channels = a.channels;
  w.fill.of(out, a.channels);
  w.in_size = item_size(in->dtype), w.out_size = item_size(out->dtype);
  w.mean = a.mean, w.scale = a.scale;
  int64_t in_step[kMaxDims], step = 1, longest = 1;
  for (int d = n - 1; d >= 0; d--) in_step[d] = step, step *= in->shape[d];
  const char *x = in->as<char>();
  for (int d = n - 1; d >= 0; d--) {
    const int64_t extent = out->shape[d], of_input = in->shape[a.axis[d]], first = a.first[d];
    const bool mirrored = d == a.mirrored;
    w.in_step[d] = mirrored ? -in_step[a.axis[d]] : in_step[a.axis[d]];
    x += first * in_step[a.axis[d]] * w.in_size;
    const int64_t begin = mirrored ? first - of_input + 1 : -first, end = mirrored ? first + 1 : of_input - first;
    w.begin[d] = std::min(std::max<int64_t>(begin, 0), extent);
    w.end[d] = std::max(std::min(end, extent), w.begin[d]);
    longest = std::max(longest, extent);
  }
  if (out->volume() == 0) return;
  const int64_t n_fill = w.fill.count();
  w.fill.values = scratch.array<char>(n_fill * w.out_size, 0);
  w.row = scratch.array<float>(longest * n_fill * 2, 1);
  for_types<uint8_t, int8_t, half, float>(out->dtype, [&](auto o) {
    typedef decltype(o) Out;
    for (int64_t c = 0; c < n_fill; c++) ((Out *)w.fill.values)[c] = truncated<Out>(a.fill[c]);
    w.write = write_planar<Out>;
    w.write_pixels = write_pixels<Out>;
    w.split3_row = split3_row<Out>;
  });
  for_types<uint8_t, uint16_t, int16_t, int32_t, half, float>(in->dtype,
                                                              [&](auto i) { w.read = read_row<decltype(i)>; });
  w.turned = scratch.array<char>(longest * n_fill * w.in_size, 2);
  if (in->dtype != UINT8 || !w.is_split3()) w.split3_row = nullptr;
  w.visit(out->as<char>(), x, 0, 0);
}

EXPORT_KERNEL(crop_mirror_normalize, CropMirrorNormalizeArgs, run)
