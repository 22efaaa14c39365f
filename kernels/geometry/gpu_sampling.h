// SPDX-License-Identifier: Apache-2.0
// Reads pixels at any position of an image, on the GPU.
#pragma once
#include "core/gpu_gather.h"
#include "geometry/sampling.h"

// Pixels that a lane loads before it waits.
constexpr int kNearestAtOnce = 4, kLinearAtOnce = 2;

// An image in a tensor of kind K.
template <class K>
struct Image {
  typedef typename K::T T;
  static constexpr int C = K::C;
  static constexpr bool kTogether = K::kUnit && K::kInterleaved;  // the channels of a pixel are adjacent
  static constexpr bool kBytes = kTogether && C == 3 && sizeof(T) == 1;
  const T *data;
  int64_t channel;       // strides in elements: of channels,
  int32_t across, down;  // of columns, of rows
  int32_t width, height;
  int32_t inner_width, inner_height;  // size of the area whose pixels have neighbours to the right and below
  bool is_aligned;                    // pixels are aligned to their size
  // X, Y: coordinates of the tensor.
  template <int X, int Y>
  DEVICE void begin(const Place<K> &place, const Tensor &row) {
    data = place.data, channel = kTogether ? 1 : K::kUnit ? place.channel : 0;
    across = kTogether ? C : (int32_t)place.step[X], down = (int32_t)place.step[Y];
    width = (int32_t)K::extent(row, X), height = (int32_t)K::extent(row, Y);
    inner_width = width > 0 && height > 0 ? width - 1 : 0, inner_height = height > 0 ? height - 1 : 0;
    is_aligned = ((unsigned long long)data & (C * sizeof(T) - 1)) == 0;
  }
  // Address of a pixel. Requires has(x, y).
  DEVICE const T *at(int32_t x, int32_t y) const {
    return data + (uint64_t)(uint32_t)y * (uint32_t)down + (uint64_t)(uint32_t)x * (uint32_t)across;
  }
  DEVICE bool has(int32_t x, int32_t y) const {
    return (uint32_t)x < (uint32_t)width && (uint32_t)y < (uint32_t)height;
  }
  DEVICE void load_pixel(T (&pixel)[C], const T *p) const {
    if constexpr (kTogether && (C == 2 || C == 4) && C * sizeof(T) <= 16) {
      if (is_aligned) {
        T x[C] __attribute__((aligned(16)));
        load_aligned(x, p);
#pragma unroll
        for (int c = 0; c < C; c++) pixel[c] = x[c];
        return;
      }
    }
#pragma unroll
    for (int c = 0; c < C; c++) pixel[c] = load(p + c * channel);
  }
};

// N (1 or 2) neighbouring pixels of a row. `ask` starts the loads; `get` and `mix` wait for them.
template <class K, int N, bool BYTES = Image<K>::kBytes>
struct Pixels {
  typedef typename K::T T;
  T pixel[N][K::C];
  DEVICE void ask(const Image<K> &image, const T *p, bool exist) {
#pragma unroll
    for (int i = 0; i < N; i++)
      if (exist) image.load_pixel(pixel[i], p + i * image.across);
  }
  // The first pixel, or `outside` if it does not exist.
  template <class Out>
  DEVICE void get(Out (&x)[K::C], bool exists, const Out (&outside)[K::C]) const {
#pragma unroll
    for (int c = 0; c < K::C; c++) x[c] = exists ? saturate<Out>(pixel[0][c]) : outside[c];
  }
  // Interpolates between both pixels; q: weight of the second.
  DEVICE void mix(float (&mixed)[K::C], float q) const {
#pragma unroll
    for (int c = 0; c < K::C; c++) mixed[c] = warp_mix_x((float)pixel[0][c], (float)pixel[N - 1][c], q);
  }
};
// For pixels of three bytes, which lie in two or three words.
template <class K, int N>
struct Pixels<K, N, true> {
  typedef typename K::T T;
  uint32_t words[N + 1];
  unsigned ahead;  // offset of the first pixel in bits
  DEVICE void ask(const Image<K> &, const T *p, bool exist) {
    const unsigned bytes = (unsigned)(unsigned long long)p & 3;
    const uint32_t *word = (const uint32_t *)((unsigned long long)p & ~3ull);
    ahead = 8 * bytes;
    // Words that are not read are not used.
#pragma unroll
    for (int i = 0; i < N; i++)
      if (exist) words[i] = __ldg(word + i);
    if (exist && bytes + 3 * N > 4 * N) words[N] = __ldg(word + N);
  }
  template <class Out>
  DEVICE void get(Out (&x)[K::C], bool exists, const Out (&outside)[K::C]) const {
    const uint32_t pixel = __funnelshift_r(words[0], words[1], ahead);
    if constexpr (DTypeOf<T>::value == DTypeOf<Out>::value) {  // stays in one word
      uint32_t other = 0;
#pragma unroll
      for (int c = 0; c < K::C; c++) other |= (uint32_t)(uint8_t)outside[c] << 8 * c;
      const uint32_t found = exists ? pixel : other;
#pragma unroll
      for (int c = 0; c < K::C; c++) x[c] = (Out)(found >> 8 * c);
    } else {
#pragma unroll
      for (int c = 0; c < K::C; c++) x[c] = exists ? saturate<Out>((T)(pixel >> 8 * c)) : outside[c];
    }
  }
  // A byte in the mantissa of 2^23 makes the float 2^23 + byte.
  DEVICE void mix(float (&mixed)[K::C], float q) const {
    constexpr float kBias = 8388608.0f;
    const uint32_t low = __funnelshift_r(words[0], words[1], ahead);
    const uint32_t high = __funnelshift_r(words[1], words[N], ahead);
#pragma unroll
    for (int c = 0; c < K::C; c++) {
      const float a = __uint_as_float(__byte_perm(low, 0x4B000000u, 0x7440 | c));
      const float b = __uint_as_float(c == 0 ? __byte_perm(low, 0x4B000000u, 0x7443)
                                             : __byte_perm(high, 0x4B000000u, 0x7440 | (c - 1)));
      mixed[c] = warp_mix_x(a - kBias, b - kBias, q);
    }
  }
};

// The pixel (x, y), or the border's value.
template <int BORDER, class Value, int C, class K>
DEVICE void read_pixel(Value (&pixel)[C], const Image<K> &image, int32_t x, int32_t y, const Value (&fill)[C]) {
  if (!image.has(x, y)) {
    if (BORDER == kBorderConstant || image.width == 0 || image.height == 0) {
#pragma unroll
      for (int c = 0; c < C; c++) pixel[c] = fill[c];
      return;
    }
    x = border_index(x, image.width, BORDER), y = border_index(y, image.height, BORDER);
  }
  typename K::T found[C];
  image.load_pixel(found, image.at(x, y));
#pragma unroll
  for (int c = 0; c < C; c++) pixel[c] = saturate<Value>(found[c]);
}

// Filters several neighbours along each axis. The loops are not unrolled, as the code for borders is long.
template <int INTERP, int BORDER, int C, class K>
DEVICE void filter_taps(float (&pixel)[C], const Image<K> &image, int32_t x, int32_t y, float qx, float qy,
                        const float (&fill)[C]) {
  constexpr int TAPS = Taps<INTERP>::kCount;
  float wx[TAPS], wy[TAPS];
  Taps<INTERP>::weights(qx, wx);
  Taps<INTERP>::weights(qy, wy);
#pragma unroll
  for (int c = 0; c < C; c++) pixel[c] = 0;
#pragma unroll 1
  for (int j = 0; j < TAPS; j++) {
    float row[C] = {};
#pragma unroll 1
    for (int i = 0; i < TAPS; i++) {
      float tap[C];
      read_pixel<BORDER>(tap, image, x + 1 - TAPS / 2 + i, y + 1 - TAPS / 2 + j, fill);
#pragma unroll
      for (int c = 0; c < C; c++) row[c] += wx[i] * tap[c];
    }
#pragma unroll
    for (int c = 0; c < C; c++) pixel[c] += wy[j] * row[c];
  }
}

// Linear interpolation if a neighbour is outside.
template <int BORDER, int C, class K>
DEVICE void linear_taps(float (&pixel)[C], const Image<K> &image, int32_t x, int32_t y, float qx, float qy,
                        const float (&fill)[C]) {
  float row[2][C] = {};
#pragma unroll 1
  for (int j = 0; j < 2; j++) {
    float left[C], right[C];
    read_pixel<BORDER>(left, image, x, y + j, fill);
    read_pixel<BORDER>(right, image, x + 1, y + j, fill);
#pragma unroll
    for (int c = 0; c < C; c++) {
      row[0][c] = row[1][c];
      row[1][c] = warp_mix_x(left[c], right[c], qx);
    }
  }
#pragma unroll
  for (int c = 0; c < C; c++) pixel[c] = warp_mix(row[0][c], row[1][c], qy);
}

// As saturate. Requires x in [0, 255].
DEVICE uint8_t rounded_byte(float x) {
#ifdef __CUDA_ARCH__
  return (uint8_t)__float_as_uint(__fadd_rz(x + 0.49999997f, 8388608.0f));
#else
  return saturate<uint8_t>(x);
#endif
}

// The value between pixel (x, y) and the next ones, whose weights are (qx, qy); for kNearest, the pixel (x, y). INTERP:
// an Interpolation. `begin` starts the loads inside the image, `end` waits for them.
template <int INTERP, int BORDER, class K>
struct Sample {
  typedef typename K::T T;
  static constexpr int C = K::C, kRows = INTERP == kNearest ? 1 : INTERP == kLinear ? 2 : 0;
  int32_t x, y;
  float qx, qy;
  bool is_inside;  // whether all needed pixels are
  Pixels<K, kRows == 1 ? 1 : 2> rows[kRows ? kRows : 1];

  DEVICE void begin(const Image<K> &image, int32_t at_x, int32_t at_y, float share_x, float share_y) {
    x = at_x, y = at_y, qx = share_x, qy = share_y, is_inside = false;
    if constexpr (INTERP == kNearest) {
      if (BORDER != kBorderConstant && !image.has(x, y) && image.width > 0 && image.height > 0)
        x = border_index(x, image.width, BORDER), y = border_index(y, image.height, BORDER);
      is_inside = image.has(x, y);
    } else if constexpr (INTERP == kLinear) {
      is_inside = (uint32_t)x < (uint32_t)image.inner_width && (uint32_t)y < (uint32_t)image.inner_height;
    }
    if constexpr (kRows > 0) {
      const T *p = image.at(x, y);
#pragma unroll
      for (int j = 0; j < kRows; j++) rows[j].ask(image, p + j * image.down, is_inside);
    }
  }
  // `outside`: value if the nearest neighbour is outside; `fill`: value of neighbours outside in interpolation.
  template <class Out>
  DEVICE void end(Out (&pixel)[C], const Image<K> &image, const Out (&outside)[C], const T (&fill)[C]) const {
    if constexpr (INTERP == kNearest) {
      rows[0].get(pixel, is_inside, outside);
    } else {
      float value[C], filling[C];
#pragma unroll
      for (int c = 0; c < C; c++) filling[c] = (float)fill[c];
      if (INTERP == kLinear && is_inside) {
        float above[C], below[C];
        rows[0].mix(above, qx);
        rows[kRows - 1].mix(below, qx);
#pragma unroll
        for (int c = 0; c < C; c++) value[c] = warp_mix(above[c], below[c], qy);
        if constexpr (DTypeOf<T>::value == UINT8 && DTypeOf<Out>::value == UINT8) {
#pragma unroll
          for (int c = 0; c < C; c++) pixel[c] = rounded_byte(value[c]);
          return;
        }
      } else if constexpr (INTERP == kLinear) {
        if (BORDER == kBorderConstant && (x < -1 || y < -1 || x >= image.width || y >= image.height)) {
#pragma unroll
          for (int c = 0; c < C; c++) value[c] = filling[c];
        } else {
          linear_taps<BORDER>(value, image, x, y, qx, qy, filling);
        }
      } else {
        filter_taps<INTERP, BORDER>(value, image, x, y, qx, qy, filling);
      }
#pragma unroll
      for (int c = 0; c < C; c++) pixel[c] = saturate<Out>(value[c]);
    }
  }
};
