// SPDX-License-Identifier: Apache-2.0
// Computes the pixels of one frame as colors.cpp does on the CPU.
#include "core/gpu.h"
#include "video/frame_pixels.h"

using namespace ycbcr;

// A chroma sample between two rows: 4 times its value, minus the middle.
template <class T>
DEVICE int16_t blended(const FramePixels &f, const T *near, const T *far, int near_weight, int column) {
  const int at = max(0, min(column, f.chroma_width - 1)) * f.step;
  return (int16_t)((near[at] >> f.drop) * near_weight + (far[at] >> f.drop) * (4 - near_weight) - (4 << (f.bits - 1)));
}

template <class T>
DEVICE int16_t chroma_at(const FramePixels &f, const T *plane, int y, int x) {
  int near = y >> f.row_shift, far = near, near_weight = 4;
  if (f.row_shift) {
    const bool is_odd = y & 1;
    if (f.siting == TOP_LEFT)
      far = near + is_odd, near_weight = is_odd ? 2 : 4;
    else
      far = is_odd ? near + 1 : near - 1, near_weight = 3;
  }
  const auto row = [&](int i) {
    return (const T *)((const char *)plane + max(0, min(i, f.chroma_height - 1)) * f.line);
  };
  const auto at = [&](int column) { return blended(f, row(near), row(far), near_weight, column); };
  const int16_t scale = (int16_t)(1 << (12 - f.bits));
  const int column = x >> f.column_shift;
  if (!f.column_shift) return (int16_t)(2 * at(column) * scale);
  if (f.siting == CENTRE) {
    const int beside = x & 1 ? column + 1 : column - 1;
    return (int16_t)(half_of((int16_t)(3 * at(column) + at(beside) + 1)) * scale);
  }
  return (int16_t)(x & 1 ? (at(column) + at(column + 1)) * scale : 2 * at(column) * scale);
}

template <class T>
DEVICE void frame_pixel(const FramePixels &f, int y, int x, uint8_t *out) {
  if (!f.planes[0]) {
    for (int c = 0; c < 3; c++) out[c] = f.fill[c];
    return;
  }
  const int luma = ((const T *)(f.planes[0] + y * f.line))[x] >> f.drop;
  const int16_t u = chroma_at(f, (const T *)f.planes[1], y, x), v = chroma_at(f, (const T *)f.planes[2], y, x);
  if (f.as_ycbcr) {
    const int down = f.bits - 8, rounded = (luma + (1 << down >> 1)) >> down;
    out[0] = (uint8_t)min(rounded, 255), out[1] = chroma_byte(u), out[2] = chroma_byte(v);
    return;
  }
  const int16_t light = times((int16_t)((int16_t)(luma - f.k.black) * (int16_t)(1 << (15 - f.bits))), f.k.y);
  out[0] = limit((int16_t)(light + times(v, f.k.rv)));
  out[1] = limit((int16_t)(light + times(u, f.k.gu) + times(v, f.k.gv)));
  out[2] = limit((int16_t)(light + times(u, f.k.bu)));
}

constexpr int kPixels = 4;  // per thread: three words, if aligned

template <class T>
DEVICE void frame_pixels(const FramePixels &f) {
  const int first = (blockIdx.x * blockDim.x + threadIdx.x) * kPixels;
  for (int row = blockIdx.y; row < f.height; row += gridDim.y) {
    const int n = min(kPixels, f.width - first);
    if (n <= 0) return;
    uint8_t *out = f.out + ((int64_t)row * f.width + first) * 3;
    uint8_t pixels[3 * kPixels];
#pragma unroll
    for (int i = 0; i < kPixels; i++)
      if (i < n) frame_pixel<T>(f, f.y + row, f.x + first + i, pixels + 3 * i);
    if (n == kPixels && (uint64_t)out % 4 == 0) {
#pragma unroll
      for (int i = 0; i < 3; i++) {
        const uint8_t *p = pixels + 4 * i;
        ((uint32_t *)out)[i] = p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
      }
    } else {
#pragma unroll
      for (int i = 0; i < 3 * kPixels; i++)
        if (i < 3 * n) out[i] = pixels[i];
    }
  }
}

// Grid: x is columns / 4, y rows.
extern "C" __global__ void __launch_bounds__(128) frame_pixels_8(FramePixels f) { frame_pixels<uint8_t>(f); }
extern "C" __global__ void __launch_bounds__(128) frame_pixels_16(FramePixels f) { frame_pixels<uint16_t>(f); }
