// SPDX-License-Identifier: Apache-2.0
#include "resample/exact.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "resample/fixed_point.h"

namespace {

constexpr int kPillowBits = 22;
constexpr double kPi = 3.14159265358979323846;

double sinc(double x) { return x == 0 ? 1 : std::sin(x * kPi) / (x * kPi); }

// Keys' cubic with the slope `a` at 1.
double cubic(double x, double a) {
  x = std::fabs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

// Weights of an output, for the region's inputs from `first` on.
struct Weights {
  int64_t first;
  int n;
  double *w;
};

// Antialiasing: `filter` is stretched to cover the inputs of an output.
template <class Filter>
inline void stretched(const ResampleAxis &x, double center, Filter filter, Weights &to) {
  int64_t lo = (int64_t)(center - x.radius + 0.5), hi = (int64_t)(center + x.radius + 0.5);
  lo = std::min(std::max<int64_t>(lo, 0), x.extent - 1);
  hi = std::max(std::min(hi, x.extent), lo + 1);
  to.first = lo, to.n = (int)(hi - lo);
  const double unit = 1 / x.stretch;
  double sum = 0;
  for (int k = 0; k < to.n; k++) sum += to.w[k] = filter(((double)(k + lo) - center + 0.5) * unit);
  for (int k = 0; k < to.n && sum != 0; k++) to.w[k] /= sum;
}

// Without antialiasing: the two (cubic: four) neighbours of the coordinate.
void neighbours(const ResampleAxis &x, double center, Weights &to) {
  const bool is_cubic = x.filter == CUBIC;
  const double at = is_cubic ? center - 0.5 : std::max(center - 0.5, 0.0);
  const int64_t whole = (int64_t)std::floor(at), before = is_cubic ? 1 : 0;
  const double part = at - (double)whole;
  const int64_t lo = std::min(std::max<int64_t>(whole - before, 0), x.extent - 1),
                hi = std::max(std::min(whole + before + 2, x.extent), lo + 1);
  to.first = lo, to.n = (int)(hi - lo);
  std::fill(to.w, to.w + to.n, 0);
  for (int64_t i = -before; i < before + 2; i++) {
    const double distance = part - (double)i;
    const double w = is_cubic ? cubic(distance, -0.75) : 1 - std::fabs(distance);
    to.w[std::min(std::max(whole + i, lo), hi - 1) - lo] += w;
  }
}

// For the outputs begin, begin + 1, ...
template <class Filter>
void stretch_all(const ResampleAxis &x, int64_t begin, std::vector<Weights> &all, Filter filter) {
  for (size_t j = 0; j < all.size(); j++)
    stretched(x, x.center + ((double)(begin + (int64_t)j) + 0.5) * x.scale, filter, all[j]);
}

void find_weights(const ResampleAxis &x, int64_t begin, std::vector<Weights> &all) {
  if (!x.antialias) {
    for (size_t j = 0; j < all.size(); j++)
      neighbours(x, x.center + ((double)(begin + (int64_t)j) + 0.5) * x.scale, all[j]);
    return;
  }
  switch (x.filter) {
    case CUBIC:
      return stretch_all(x, begin, all, [](double v) { return cubic(v, -0.5); });
    case LANCZOS3:
      return stretch_all(x, begin, all, [](double v) { return v >= -3 && v < 3 ? sinc(v) * sinc(v / 3) : 0; });
    case BOX:
      return stretch_all(x, begin, all, [](double v) { return v > -0.5 && v <= 0.5 ? 1.0 : 0; });
    default:
      return stretch_all(x, begin, all, [](double v) { return std::fabs(v) < 1 ? 1 - std::fabs(v) : 0; });
  }
}

// Nearest neighbours: the pixels that outputs begin .. begin + n - 1, in the order of the region, copy.
std::vector<int64_t> nearest(const ResampleAxis &x, int64_t begin, int64_t n) {
  std::vector<int64_t> found(n);
  if (x.rule == PILLOW_RULE) {  // Pillow adds up the coordinate
    double at = x.center + x.scale * 0.5;
    for (int64_t j = 0; j < begin; j++) at += x.scale;
    for (int64_t j = 0; j < n; j++, at += x.scale) found[j] = (int64_t)at;
  } else {
    const float scale = (float)x.scale, shift = x.filter == NN_EXACT ? 0.5f : 0;
    for (int64_t j = 0; j < n; j++)
      found[j] = (int64_t)std::floor((float)x.center + ((float)(begin + j) + shift) * scale);
  }
  for (int64_t &i : found) i = std::min(std::max<int64_t>(i, 0), x.extent - 1);
  return found;
}

// Bits of PyTorch's weights: the most for which the largest weight is below 2^15.
int torch_bits(const std::vector<Weights> &all) {
  double most = 0;
  for (const Weights &one : all)
    for (int k = 0; k < one.n; k++) most = std::max(most, one.w[k]);
  int bits = 0;
  while (bits < kPillowBits && (int)(0.5 + most * (double)(1 << (bits + 1))) < 1 << 15) bits++;
  return bits;
}

CLONES void widen(int16_t *__restrict out, const uint8_t *__restrict in, int n) {
  for (int i = 0; i < n; i++) out[i] = in[i];
}
CLONES void narrow(uint8_t *__restrict out, const int16_t *__restrict in, int n) {
  for (int i = 0; i < n; i++) out[i] = (uint8_t)(in[i] < 0 ? 0 : in[i] > 255 ? 255 : in[i]);
}

inline uint8_t finish(int32_t sum, int bits) {
  sum >>= bits;
  return (uint8_t)(sum < 0 ? 0 : sum > 255 ? 255 : sum);
}

// With 32-bit weights.
CLONES void combine_rows(uint8_t *__restrict out, const uint8_t *in, int64_t pitch, const int32_t *w, int taps, int n,
                         int bits) {
  constexpr int kBlock = 256;
  int32_t sum[kBlock];
  for (int begin = 0; begin < n; begin += kBlock) {
    const int m = std::min(n - begin, kBlock);
    for (int i = 0; i < m; i++) sum[i] = 1 << (bits - 1);
    for (int t = 0; t < taps; t++) {
      const uint8_t *r = in + t * pitch + begin;
      const int32_t weight = w[t];
      if (weight == 0) continue;
      for (int i = 0; i < m; i++) sum[i] += r[i] * weight;
    }
    for (int i = 0; i < m; i++) out[begin + i] = finish(sum[i], bits);
  }
}

typedef int16_t Short4 __attribute__((vector_size(8)));
typedef int32_t Int4 __attribute__((vector_size(16)));

template <int C>
inline void pixels(uint8_t *out, const int16_t *row, const Taps &t) {
  const int32_t half = 1 << (t.exact_bits - 1);
  for (int j = 0; j < t.n; j++) {
    const int32_t *w = t.exact.data() + (int64_t)j * t.stride;
    const int16_t *p = row + (int64_t)(t.first[j] - t.lo) * C;
    Int4 sum = {half, half, half, half};
    for (int k = 0; k < t.k; k++) {
      Short4 x;
      __builtin_memcpy(&x, p + k * C, sizeof x);
      sum += __builtin_convertvector(x, Int4) * w[k];
    }
    for (int c = 0; c < C; c++) out[(int64_t)j * C + c] = finish(sum[c], t.exact_bits);
  }
}

CLONES void resample_row(uint8_t *out, const int16_t *row, const Taps &t, int channels) {
  if (channels == 3) return pixels<3>(out, row, t);
  if (channels == 4) return pixels<4>(out, row, t);
  const int32_t half = 1 << (t.exact_bits - 1);
  for (int j = 0; j < t.n; j++) {
    const int32_t *w = t.exact.data() + (int64_t)j * t.stride;
    const int16_t *p = row + (int64_t)(t.first[j] - t.lo) * channels;
    for (int c = 0; c < channels; c++) {
      int32_t sum = half;
      for (int k = 0; k < t.k; k++) sum += w[k] * p[(int64_t)k * channels + c];
      out[(int64_t)j * channels + c] = finish(sum, t.exact_bits);
    }
  }
}

}  // namespace

void build_exact(Taps &t) {
  const TapsKey &key = t.key;
  const ResampleAxis &x = key.axis;
  const bool copies = x.filter == NN || x.filter == NN_EXACT;
  t.n = (int)key.out_length;
  t.prepared_for = 0;
  t.first.resize(t.n);
  int64_t begin = x.mirrored ? x.out_size - key.out_origin - t.n : key.out_origin;
  // The whole axis, so that windows have the same pixels: the number of bits depends on the largest weight.
  const bool whole = x.rule == TORCH_RULE && !copies;
  thread_local std::vector<Weights> all;
  thread_local std::vector<double> store;
  const size_t most = copies ? 1 : x.antialias ? (size_t)(2 * std::ceil(x.radius)) + 2 : 4;
  all.resize(whole ? x.out_size : t.n);
  store.resize(all.size() * most);
  for (size_t j = 0; j < all.size(); j++) all[j].w = store.data() + j * most;
  if (copies) {
    const std::vector<int64_t> places = nearest(x, begin, t.n);
    for (int j = 0; j < t.n; j++) all[j].first = places[j], all[j].n = 1, all[j].w[0] = 1;
  } else {
    find_weights(x, whole ? 0 : begin, all);
  }
  if (!whole) begin = 0;
  const auto of = [&](int j) -> const Weights & { return all[begin + (x.mirrored ? t.n - 1 - j : j)]; };
  t.k = 1;
  for (int j = 0; j < t.n; j++) t.k = std::max(t.k, of(j).n);
  t.stride = (t.k + 1) & ~1;
  t.exact_bits = whole ? torch_bits(all) : kPillowBits;
  t.fixed_valid = whole && t.k <= kMostFixedTaps;
  t.weights.assign((size_t)t.n * t.stride, 0);
  t.exact.assign((size_t)t.n * t.stride, 0);
  t.fixed.assign(t.fixed_valid ? (size_t)t.n * t.stride : 0, 0);
  t.lo = (int)key.in_length, t.hi = 0;
  for (int j = 0; j < t.n; j++) {
    const Weights &one = of(j);
    const int64_t at = x.base + one.first - key.in_origin;
    if (at < 0 || at + one.n > key.in_length || t.k > key.in_length)
      fail("[internal error] resampling reads samples %lld to %lld, outside of the input's window", (long long)at,
           (long long)(at + one.n - 1));
    const int64_t from = std::min(at, key.in_length - t.k);
    for (int k = 0; k < one.n; k++) {
      const size_t to = (size_t)j * t.stride + (size_t)(at - from) + k;
      t.weights[to] = (float)one.w[k];
      const double scaled = one.w[k] * (double)(1 << t.exact_bits);
      t.exact[to] = (int32_t)(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
      if (t.fixed_valid) t.fixed[to] = (int16_t)t.exact[to];
    }
    t.first[j] = (int32_t)from;
    t.lo = std::min(t.lo, t.first[j]);
    t.hi = std::max(t.hi, t.first[j] + t.k);
  }
  if (store.size() > 1 << 17) store = {}, all = {};  // free the memory of unusually long axes
}

namespace {

void combine(uint8_t *out, const uint8_t *in, int64_t pitch, const Taps &t, int y, int n, int16_t *wide) {
  if (!t.fixed_valid) {
    const int32_t *weights = t.exact.data() + (int64_t)y * t.stride;
    const auto native = n >= 32 ? fixed_point().exact_rows : nullptr;
    (native ? native : combine_rows)(out, in, pitch, weights, t.k, n, t.exact_bits);
    return;
  }
  const uint8_t *rows[kMostFixedTaps];
  for (int k = 0; k < t.k; k++) rows[k] = in + k * pitch;
  fixed_point().vertical_signed(wide, rows, t.fixed.data() + (int64_t)y * t.stride, t.k, n, t.exact_bits);
  narrow(out, wide, n);
}

void along(uint8_t *out, const uint8_t *in, int n, Taps &t, int channels, int16_t *wide) {
  if (channels == 4 && !t.fixed_valid && fixed_point().exact_pixels) {
    memcpy(wide, in, n);
    memset((uint8_t *)wide + n, 0, kRowMargin);
    return fixed_point().exact_pixels(out, (const uint8_t *)wide, t);
  }
  widen(wide, in, n);
  memset(wide + n, 0, kRowMargin * sizeof *wide);
  if (t.fixed_valid)
    fixed_point().horizontal(out, wide, t, channels, (RowFormat)t.exact_bits);
  else
    resample_row(out, wide, t, channels);
}

CLONES void interleave(uint32_t *__restrict out, const uint8_t *__restrict a, const uint8_t *__restrict b,
                       const uint8_t *__restrict c, const uint8_t *__restrict d, int n) {
  for (int i = 0; i < n; i++) out[i] = a[i] | (uint32_t)b[i] << 8 | (uint32_t)c[i] << 16 | (uint32_t)d[i] << 24;
}
CLONES void take_apart(uint8_t *__restrict out, const uint32_t *__restrict in, int shift, int n) {
  for (int i = 0; i < n; i++) out[i] = (uint8_t)(in[i] >> shift);
}

// Resamples rows of one channel, four at a time as one row of four channels: its pixels are contiguous, while the taps
// of one channel would have to be gathered.
void along_in_fours(uint8_t *out, const uint8_t *in, int64_t pitch, int n_rows, int width, Taps &t, int16_t *wide,
                    Scratch &scratch) {
  uint32_t *four = scratch.array<uint32_t>(width, 2), *made = scratch.array<uint32_t>(t.n, 3);
  if (t.fixed_valid) fixed_point().prepare(t, 4);
  for (int y = 0; y < n_rows; y += 4) {
    const uint8_t *rows[4];
    for (int c = 0; c < 4; c++) rows[c] = in + std::min(y + c, n_rows - 1) * pitch;
    interleave(four, rows[0], rows[1], rows[2], rows[3], width);
    along((uint8_t *)made, (const uint8_t *)four, 4 * width, t, 4, wide);
    for (int c = 0; c < 4 && y + c < n_rows; c++) take_apart(out + (int64_t)(y + c) * t.n, made, 8 * c, t.n);
  }
}

// Pillow 13 resamples columns first if this drops more than twice as many rows as columns. PyTorch never does.
bool columns_first(const ResampleAxis &y, const ResampleAxis &x) {
  return y.rule == PILLOW_RULE && y.out_size < y.extent && y.extent - y.out_size > 2 * (x.extent - x.out_size);
}

}  // namespace

void exact_plane(uint8_t *out, const uint8_t *in, int64_t pitch, Taps &rows, Taps &columns, int channels,
                 Scratch &scratch) {
  const int width = (columns.hi - columns.lo) * channels, out_width = columns.n * channels;
  int16_t *wide = scratch.array<int16_t>(std::max(4 * width, out_width) + kRowMargin, 0);
  if (columns.fixed_valid && channels != 1) fixed_point().prepare(columns, channels);
  in += (int64_t)columns.lo * channels;
  if (columns_first(rows.key.axis, columns.key.axis)) {
    uint8_t *row = scratch.array<uint8_t>(width, 1);
    for (int y = 0; y < rows.n; y++, out += out_width) {
      combine(row, in + rows.first[y] * pitch, pitch, rows, y, width, wide);
      along(out, row, width, columns, channels, wide);
    }
    return;
  }
  uint8_t *across = scratch.array<uint8_t>((int64_t)(rows.hi - rows.lo) * out_width, 1);
  if (channels == 1)
    along_in_fours(across, in + rows.lo * pitch, pitch, rows.hi - rows.lo, width, columns, wide, scratch);
  else
    for (int y = rows.lo; y < rows.hi; y++)
      along(across + (int64_t)(y - rows.lo) * out_width, in + y * pitch, width, columns, channels, wide);
  for (int y = 0; y < rows.n; y++, out += out_width)
    combine(out, across + (int64_t)(rows.first[y] - rows.lo) * out_width, out_width, rows, y, out_width, wide);
}

// Resizes planes (n, height, width, channels) to `full` and writes a window: `size` from `at` on. Planes and rows of
// the input are `plane_step` and `pitch` bytes apart; the output is dense. Returns 1 on failure.
EXPORT int32_t resize_exactly(const uint8_t *in, int64_t n, int64_t plane_step, int64_t pitch, int64_t channels,
                              int64_t height, int64_t width, uint8_t *out, int64_t full_height, int64_t full_width,
                              int64_t at_y, int64_t at_x, int64_t size_y, int64_t size_x, int32_t rule, int32_t filter,
                              int32_t antialias) {
  thread_local Scratch scratch;
  try {
    ResampleArgs a{};
    a.roi_end[0] = (double)height, a.roi_end[1] = (double)width;
    a.in_size[0] = height, a.in_size[1] = width;
    a.out_size[0] = full_height, a.out_size[1] = full_width;
    a.min_filter = a.mag_filter = filter, a.antialias = antialias, a.rule = rule;
    Taps &rows = taps_for(1, resample_axis(a, 0), 0, height, at_y, size_y);
    Taps &columns = taps_for(2, resample_axis(a, 1), 0, width, at_x, size_x);
    for (int64_t i = 0; i < n; i++)
      exact_plane(out + i * size_y * size_x * channels, in + i * plane_step, pitch, rows, columns, (int)channels,
                  scratch);
  } catch (const std::exception &) {
    return 1;
  }
  scratch.trim(1 << 26);
  return 0;
}
EXPORT_LONG(resize_exactly)
