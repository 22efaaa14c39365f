// SPDX-License-Identifier: Apache-2.0
// Rows of pixels from the planes of the usual JPEG files: YCbCr whose colour components are as large as the image, or
// half as wide, or half as wide and high; stored as they lie; as RGB or BGR of bytes.
#pragma once
#include "core/gpu.h"
#include "decode/decode.h"
#include "decode/jpeg_coefficients.h"
#include "decode/jpeg_pixels.h"

// A component's plane: the stored part of it, and how it is upsampled.
struct Plane {
  const uint8_t *data;
  int first_y, first_x, height, width, stride, x_factor, y_factor;

  __device__ void of(const JpegRecord &r, const uint8_t *planes, int c) {
    first_y = 8 * r.first_y[c], first_x = 8 * r.first_x[c];
    height = r.height[c], width = r.width[c], stride = 8 * r.wide[c];
    x_factor = r.max_h / r.h[c], y_factor = r.max_v / r.v[c];
    data = planes + 64ll * r.first_block[c];
  }
  __device__ const uint8_t *row(int y) const { return data + (int64_t)(y - first_y) * stride - first_x; }
};

// A byte of `word` with its sign.
template <int BYTE>
__device__ int32_t signed_byte(uint32_t word) {
#ifdef __CUDA_ARCH__
  int32_t x;
  asm("prmt.b32 %0, %1, 0, %2;"
      : "=r"(x)
      : "r"(word), "n"(BYTE | (8 | BYTE) << 4 | (8 | BYTE) << 8 | (8 | BYTE) << 12));
  return x;
#else
  return (int8_t)(word >> 8 * BYTE);
#endif
}

// x, but no less than 0 and no more than `most`.
__device__ inline int32_t limited(int32_t x, int32_t most) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  int32_t y;
  asm("min.s32.relu %0, %1, %2;" : "=r"(y) : "r"(x), "r"(most));
  return y;
#else
  return max(min(x, most), 0);
#endif
}

// Eight neighbouring samples of a row at the image's resolution, less 128: halves of words, the samples 0 and 2, 1 and
// 3, 4 and 6, 5 and 7, of which the lower bytes count. `x` is a multiple of 8 and lies in a stored block. Sums of
// halves stay in their halves.
template <int X, int Y>
__device__ void upsampled(const Plane &p, int y, int x, uint32_t (&halves)[4]) {
  constexpr uint32_t kBytes = 0x00ff00ffu, kMiddle = 0x00800080u, kOnes = 0x00010001u;
  if constexpr (X == 1) {
    const uint2 word = *(const uint2 *)(p.row(y) + x);
    halves[0] = (word.x & kBytes) ^ kMiddle, halves[1] = (word.x >> 8 & kBytes) ^ kMiddle;
    halves[2] = (word.y & kBytes) ^ kMiddle, halves[3] = (word.y >> 8 & kBytes) ^ kMiddle;
  } else {
    // Of the column before these four, these, and the one behind, which are not looked at beyond what is stored.
    const int i = x >> 1, last = min(p.width, p.first_x + p.stride) - 1;
    const int before = max(i - 1, p.first_x), behind = min(i + 4, last);
    uint32_t left, inner[2], right;
    const auto read = [&](const uint8_t *row, uint32_t &a, uint32_t(&b)[2], uint32_t &c) {
      uint32_t word = *(const uint32_t *)(row + i);
      if (i + 3 > last) {  // the last one is repeated
        const int there = last - i + 1;
        word = there == 1   ? (word & 255) * 0x01010101u
               : there == 2 ? __byte_perm(word, 0, 0x1110)
                            : __byte_perm(word, 0, 0x2210);
      }
      a = row[before], c = row[behind];
      b[0] = __byte_perm(word, 0, 0x4140), b[1] = __byte_perm(word, 0, 0x4342);
    };
    uint32_t rounding, odd_less, shift;
    if constexpr (Y == 1) {
      read(p.row(y), left, inner, right);
      rounding = kOnes, odd_less = 0u - kOnes, shift = 2;
    } else {
      const int j = y >> 1, far = y & 1 ? min(j + 1, p.height - 1) : max(j - 1, 0);
      uint32_t far_left, far_inner[2], far_right;
      read(p.row(j), left, inner, right);
      read(p.row(far), far_left, far_inner, far_right);
      left = 3 * left + far_left, right = 3 * right + far_right;
      inner[0] = 3 * inner[0] + far_inner[0], inner[1] = 3 * inner[1] + far_inner[1];
      rounding = 8 * kOnes, odd_less = kOnes, shift = 4;
    }
    const uint32_t middle = __byte_perm(inner[0], inner[1], 0x5432);
    const uint32_t others[4] = {__byte_perm(inner[0], left, 0x1054), middle, middle,
                                __byte_perm(inner[1], right, 0x5432)};
#pragma unroll
    for (int k = 0; k < 4; k++) {
      const uint32_t sum = 3 * inner[k / 2] + rounding + others[k] - (k & 1 ? odd_less : 0);
      halves[k] = (sum >> shift & kBytes) ^ kMiddle;
    }
  }
}

constexpr int kRowWarps = 8, kRowRun = 8;               // warps of a block; pixels of a lane
constexpr int kRowStrip = 32 * kRowRun;                 // pixels of a warp,
constexpr int kRowSegment = 2 * kRowStrip;              // and those that it writes at once
constexpr int kRowWords = 3 * kRowSegment / 4 + 4 + 4;  // in shared memory; they begin anywhere in 16 bytes

// How the outer two channels and the inner one follow from both colour differences, in 16-bit fixed point.
struct OuterColours {
  int32_t first, last, inner_first, inner_last;
};

// The words of eight pixels: luma, and the colour differences that the first and the last channel have.
__device__ inline void colour_words(uint32_t (&words)[6], uint2 luma, const uint32_t (&u)[4], const uint32_t (&v)[4],
                                    const OuterColours &k) {
  constexpr int32_t kMost = 0xffffff;
#pragma unroll
  for (int half = 0; half < 2; half++) {
    const uint32_t y = half ? luma.y : luma.x;
    int32_t x[12];  // the byte above 16 bits is the channel
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const uint32_t us = u[2 * half + (i & 1)], vs = v[2 * half + (i & 1)];
      const int32_t a = i < 2 ? signed_byte<0>(us) : signed_byte<2>(us),
                    b = i < 2 ? signed_byte<0>(vs) : signed_byte<2>(vs);
      const int32_t middle = (int32_t)__byte_perm(y, 0x8000, 0x4054 | i << 8);  // and one half
      x[3 * i] = limited(middle + k.first * a, kMost);
      x[3 * i + 1] = limited(middle + k.inner_first * a + k.inner_last * b, kMost);
      x[3 * i + 2] = limited(middle + k.last * b, kMost);
    }
#pragma unroll
    for (int i = 0; i < 3; i++)
      words[3 * half + i] =
          __byte_perm(__byte_perm(x[4 * i], x[4 * i + 1], 0x62), __byte_perm(x[4 * i + 2], x[4 * i + 3], 0x62), 0x5410);
  }
}

// A warp takes a row. Grid: x any number. 32 * kRowWarps threads; `staged` is shared memory.
template <int X, int Y>
__device__ void write_rows(const Tensor &out, const JpegPixelsArgs &a, const Plane (&planes)[3], bool is_bgr,
                           uint32_t *staged) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  uint32_t *const mine = staged + warp * kRowWords;
  const int height = (int)out.shape[0], width = (int)out.shape[1], begin = (int)a.x, end = begin + width;
  const OuterColours k =
      is_bgr ? OuterColours{116130, 91881, -22554, -46802} : OuterColours{91881, 116130, -46802, -22554};
  const Plane &first = planes[is_bgr ? 1 : 2], &last = planes[is_bgr ? 2 : 1];
  for (int row = blockIdx.x * kRowWarps + warp; row < height; row += gridDim.x * kRowWarps) {
    const int y = row + (int)a.y;
    uint8_t *const line = out.as<uint8_t>() + (int64_t)row * width * 3;
    for (int segment = begin & ~(kRowRun - 1); segment < end; segment += kRowSegment) {
      // The pixel `segment` is there if it is not before the window.
      uint8_t *const place = line + 3 * (int64_t)(segment - begin);
      const int shift = (int)((uint64_t)place & 15), bits = 8 * (shift & 3);
      const int behind = min(segment + kRowSegment, end);
      uint32_t carried = 0;
#pragma unroll 1
      for (int strip = segment; strip < behind; strip += kRowStrip) {
        const int at = strip + lane * kRowRun, x = min(at, (end - 1) & ~(kRowRun - 1));
        uint32_t u[4], v[4], words[6];
        const uint2 luma = *(const uint2 *)(planes[0].row(y) + x);
        upsampled<X, Y>(first, y, x, u);
        upsampled<X, Y>(last, y, x, v);
        colour_words(words, luma, u, v, k);
        uint32_t before = __shfl_up_sync(~0u, words[5], 1);
        if (lane == 0) before = carried;
        carried = __shfl_sync(~0u, words[5], 31);
        if (at >= behind) continue;
        uint32_t *const to = mine + (3 * (at - segment) + shift) / 4;
#pragma unroll
        for (int i = 0; i < 6; i++) to[i] = __funnelshift_l(i ? words[i ? i - 1 : 0] : before, words[i], bits);
        if (bits && at + kRowRun >= behind) to[6] = __funnelshift_l(words[5], 0, bits);
      }
      __syncwarp();
      // Of bytes from that place on, less `shift`, which is a multiple of 16.
      const int from = 3 * (max(segment, begin) - segment) + shift, to = 3 * (behind - segment) + shift;
      const int low = min((from + 15) & ~15, to), high = max(to & ~15, low);
      uint8_t *const aligned = place - shift;
      for (int i = low / 16 + lane; i < high / 16; i += 32) ((uint4 *)aligned)[i] = ((const uint4 *)mine)[i];
      const uint8_t *const bytes = (const uint8_t *)mine;
      if (from + lane < low) aligned[from + lane] = bytes[from + lane];
      if (high + lane < to) aligned[high + lane] = bytes[high + lane];
      __syncwarp();
    }
  }
}

// Whether the picture is of the usual kind, and written then.
__device__ inline bool write_usual(const Tensor &out, const JpegPixelsArgs &a, const JpegRecord &r,
                                   const uint8_t *planes) {
  if (r.n_components != 3 || r.colour != JPEG_YCC || a.orientation > 1) return false;
  if (a.output_type != RGB && a.output_type != BGR) return false;
  Plane p[3];
#pragma unroll
  for (int c = 0; c < 3; c++) p[c].of(r, planes, c);
  if (p[0].x_factor != 1 || p[0].y_factor != 1) return false;
  if (p[1].x_factor != p[2].x_factor || p[1].y_factor != p[2].y_factor || p[1].width != p[2].width) return false;
  const bool is_bgr = a.output_type == BGR;
  __shared__ __align__(16) uint32_t staged[kRowWarps * kRowWords];
  if (p[1].x_factor == 1 && p[1].y_factor == 1)
    write_rows<1, 1>(out, a, p, is_bgr, staged);
  else if (p[1].x_factor == 2 && p[1].y_factor == 1 && p[1].width > 2)
    write_rows<2, 1>(out, a, p, is_bgr, staged);
  else if (p[1].x_factor == 2 && p[1].y_factor == 2 && p[1].width > 2)
    write_rows<2, 2>(out, a, p, is_bgr, staged);
  else
    return false;
  return true;
}
