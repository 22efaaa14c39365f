// SPDX-License-Identifier: Apache-2.0
// Writes rows of pixels from the planes of the usual JPEG files: YCbCr with colour components as large as the image,
// half as wide, or half as wide and high; without rotation; as 8-bit RGB or BGR.
#pragma once
#include "core/gpu.h"
#include "decode/decode.h"
#include "decode/jpeg_coefficients.h"
#include "decode/jpeg_pixels.h"

// The stored part of a component's plane, and its upsampling factors.
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

// A signed byte of `word`.
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

// x clamped to 0..most.
__device__ inline int32_t limited(int32_t x, int32_t most) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  int32_t y;
  asm("min.s32.relu %0, %1, %2;" : "=r"(y) : "r"(x), "r"(most));
  return y;
#else
  return max(min(x, most), 0);
#endif
}

// Four neighbouring columns of a colour component that is half as wide as the image; `there` of them are stored.
// `before` and `behind` are the columns next to them, clamped to the stored ones.
struct Columns {
  int first, before, behind, there;

  // `x` is a multiple of 8 and lies in a stored block.
  __device__ void of(const Plane &p, int x) {
    const int last = min(p.width, p.first_x + p.stride) - 1;
    first = x >> 1, before = max(first - 1, p.first_x), behind = min(first + 4, last), there = last - first + 1;
  }
  // Reads samples 0 and 1, then 2 and 3, as halves of words, and in the lower halves the one before and the one behind.
  __device__ void read(const uint8_t *row, uint32_t (&samples)[4]) const {
    uint32_t word = *(const uint32_t *)(row + first);
    if (there < 4)  // the last one is repeated
      word = there == 1   ? (word & 255) * 0x01010101u
             : there == 2 ? __byte_perm(word, 0, 0x1110)
                          : __byte_perm(word, 0, 0x2210);
    samples[0] = __byte_perm(word, 0, 0x4140), samples[1] = __byte_perm(word, 0, 0x4342);
    samples[2] = row[before], samples[3] = row[behind];
  }
};

// Eight neighbouring samples at the image's resolution, minus 128, as pairs in halves of words whose lower bytes
// count: the samples 0 and 2, 1 and 3, 4 and 6, 5 and 7. Sums of halves stay in their halves.
constexpr uint32_t kBytes = 0x00ff00ffu, kMiddle = 0x00800080u, kOnes = 0x00010001u;

// From samples at full resolution.
__device__ inline void as_stored(uint2 word, uint32_t (&halves)[4]) {
  halves[0] = (word.x & kBytes) ^ kMiddle, halves[1] = (word.x >> 8 & kBytes) ^ kMiddle;
  halves[2] = (word.y & kBytes) ^ kMiddle, halves[3] = (word.y >> 8 & kBytes) ^ kMiddle;
}
// From the result of Columns::read for the nearer stored row and, if Y is 2, for the farther one.
template <int Y>
__device__ void upsampled(const uint32_t (&near)[4], const uint32_t (&far)[4], uint32_t (&halves)[4]) {
  uint32_t s[4];
#pragma unroll
  for (int k = 0; k < 4; k++) s[k] = Y == 1 ? near[k] : 3 * near[k] + far[k];
  constexpr uint32_t rounding = Y == 1 ? kOnes : 8 * kOnes, odd_less = Y == 1 ? 0u - kOnes : kOnes;
  const uint32_t middle = __byte_perm(s[0], s[1], 0x5432);
  const uint32_t others[4] = {__byte_perm(s[0], s[2], 0x1054), middle, middle, __byte_perm(s[1], s[3], 0x5432)};
#pragma unroll
  for (int k = 0; k < 4; k++) {
    const uint32_t sum = 3 * s[k / 2] + rounding + others[k] - (k & 1 ? odd_less : 0);
    halves[k] = (sum >> (Y == 1 ? 2 : 4) & kBytes) ^ kMiddle;
  }
}

constexpr int kRowWarps = 8, kRowRun = 8;             // warps per block; pixels per lane
constexpr int kRowStrip = 32 * kRowRun;               // pixels per warp
constexpr int kMostRowBlocks = 1 << 24;               // blocks of 64 bytes, addressed with 31 bits
constexpr int kRowWords = 3 * kRowStrip / 4 + 4 + 4;  // in shared memory; pixels may begin anywhere in 16 bytes

// Factors of the colour differences for the outer two channels and the inner one, in 16-bit fixed point.
struct OuterColours {
  int32_t first, last, inner_first, inner_last;
};

// The words of eight pixels: from luma, and the colour differences of the first and the last channel.
__device__ inline void colour_words(uint32_t (&words)[6], uint2 luma, const uint32_t (&u)[4], const uint32_t (&v)[4],
                                    const OuterColours &k) {
  constexpr int32_t kMost = 0xffffff;
#pragma unroll
  for (int half = 0; half < 2; half++) {
    const uint32_t y = half ? luma.y : luma.x;
    int32_t x[12];  // the channel is the byte above the lower 16 bits
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const uint32_t us = u[2 * half + (i & 1)], vs = v[2 * half + (i & 1)];
      const int32_t a = i < 2 ? signed_byte<0>(us) : signed_byte<2>(us),
                    b = i < 2 ? signed_byte<0>(vs) : signed_byte<2>(vs);
      const int32_t middle = (int32_t)__byte_perm(y, 0x8000, 0x4054 | i << 8);  // plus one half
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

// A warp writes pixels [begin, end) of a strip of a row: eight pixels per lane from the pixel `segment` on, whose
// address is (or would be) `place`.
__device__ inline void write_strip(const uint32_t (&words)[6], uint8_t *place, int segment, int begin, int end,
                                   uint32_t *staged) {
  const int lane = threadIdx.x % 32, at = segment + lane * kRowRun, behind = min(segment + kRowStrip, end);
  const int shift = (int)((uint64_t)place & 15), bits = 8 * (shift & 3);
  const uint32_t before = __shfl_up_sync(~0u, words[5], 1);
  if (at < behind) {
    uint32_t *const to = staged + (3 * (at - segment) + shift) / 4;
#pragma unroll
    for (int i = 0; i < 6; i++) to[i] = __funnelshift_l(i ? words[i ? i - 1 : 0] : lane ? before : 0, words[i], bits);
    if (bits && at + kRowRun >= behind) to[6] = __funnelshift_l(words[5], 0, bits);
  }
  __syncwarp();
  // Byte offsets from place - shift, which is a multiple of 16.
  const int from = 3 * (max(segment, begin) - segment) + shift, to = 3 * (behind - segment) + shift;
  const int low = min((from + 15) & ~15, to), high = max(to & ~15, low);
  uint8_t *const aligned = place - shift;
  for (int i = low / 16 + lane; i < high / 16; i += 32) ((uint4 *)aligned)[i] = ((const uint4 *)staged)[i];
  const uint8_t *const bytes = (const uint8_t *)staged;
  if (from + lane < low) aligned[from + lane] = bytes[from + lane];
  if (high + lane < to) aligned[high + lane] = bytes[high + lane];
  __syncwarp();
}

// A warp takes a row, or the two rows between the same stored rows of the colour components. These have the same
// layout; the third is `to_other` behind the second. Grid: any x. 32 * kRowWarps threads; `staged` is shared memory.
template <int X, int Y>
__device__ void write_rows(const Tensor &out, const JpegPixelsArgs &a, const Plane &luma, const Plane &chroma,
                           int to_other, bool is_bgr, uint32_t *staged) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int height = (int)out.shape[0], width = (int)out.shape[1], begin = (int)a.x, end = begin + width;
  const int top = (int)a.y;
  const OuterColours k =
      is_bgr ? OuterColours{116130, 91881, -22554, -46802} : OuterColours{91881, 116130, -46802, -22554};
  uint32_t *const mine = staged + warp * kRowWords;
  // The (possibly virtual) address of pixel 0, 0 of the image; for the colours, of the first and the last channel.
  const uint8_t *const light = luma.data - luma.first_y * luma.stride - luma.first_x;
  const uint8_t *const colour = chroma.data - chroma.first_y * chroma.stride - chroma.first_x;
  const int first_at = is_bgr ? 0 : to_other, last_at = to_other - first_at;
  const int last_pair = Y == 1 ? top + height - 1 : (top + height) >> 1;
  int pair = (Y == 1 ? top : (top + 1) >> 1) + blockIdx.x * kRowWarps + warp;
  for (; pair <= last_pair; pair += gridDim.x * kRowWarps) {
    // The colour rows above and below rows 2 * pair - 1 and 2 * pair.
    const int above = (Y == 1 ? pair : max(pair - 1, 0)) * chroma.stride,
              below = Y == 1 ? 0 : min(pair, chroma.height - 1) * chroma.stride;
    for (int segment = begin & ~(kRowRun - 1); segment < end; segment += kRowStrip) {
      const int x = min(segment + lane * kRowRun, (end - 1) & ~(kRowRun - 1));
      uint32_t u[2][4], v[2][4];  // of the rows above and below
      uint2 first, last;
      if constexpr (X == 1) {
        first = *(const uint2 *)(colour + (above + first_at + x)),
        last = *(const uint2 *)(colour + (above + last_at + x));
      } else {
        Columns columns;
        columns.of(chroma, x);
        columns.read(colour + (above + first_at), u[0]), columns.read(colour + (above + last_at), v[0]);
        if constexpr (Y == 2)
          columns.read(colour + (below + first_at), u[1]), columns.read(colour + (below + last_at), v[1]);
      }
#pragma unroll
      for (int r = 0; r < Y; r++) {
        const int y = Y == 1 ? pair : 2 * pair - 1 + r, row = y - top;
        if (row < 0 || row >= height) continue;
        const uint2 brightness = *(const uint2 *)(light + (y * luma.stride + x));
        uint32_t a[4], b[4], words[6];
        if constexpr (X == 1)
          as_stored(first, a), as_stored(last, b);
        else
          upsampled<Y>(u[r], u[Y - 1 - r], a), upsampled<Y>(v[r], v[Y - 1 - r], b);
        colour_words(words, brightness, a, b, k);
        uint8_t *const place = out.as<uint8_t>() + 3 * ((int64_t)row * width + segment - begin);
        write_strip(words, place, segment, begin, end, mine);
      }
    }
  }
}

// Writes the picture if it is of the usual kind; returns whether it is.
__device__ inline bool write_usual(const Tensor &out, const JpegPixelsArgs &a, const JpegRecord &r,
                                   const uint8_t *planes) {
  if (r.n_components != 3 || r.colour != JPEG_YCC || a.orientation > 1) return false;
  if (a.output_type != RGB && a.output_type != BGR) return false;
  if (r.n_blocks > kMostRowBlocks) return false;
  Plane p[3];
#pragma unroll
  for (int c = 0; c < 3; c++) p[c].of(r, planes, c);
  if (p[0].x_factor != 1 || p[0].y_factor != 1) return false;
  const Plane &u = p[1], &v = p[2];
  if (u.x_factor != v.x_factor || u.y_factor != v.y_factor || u.width != v.width || u.height != v.height) return false;
  if (u.first_x != v.first_x || u.first_y != v.first_y || u.stride != v.stride) return false;
  const bool is_bgr = a.output_type == BGR;
  const int to_other = (int)(v.data - u.data);
  __shared__ __align__(16) uint32_t staged[kRowWarps * kRowWords];
  if (u.x_factor == 1 && u.y_factor == 1)
    write_rows<1, 1>(out, a, p[0], u, to_other, is_bgr, staged);
  else if (u.x_factor == 2 && u.y_factor == 1 && u.width > 2)
    write_rows<2, 1>(out, a, p[0], u, to_other, is_bgr, staged);
  else if (u.x_factor == 2 && u.y_factor == 2 && u.width > 2)
    write_rows<2, 2>(out, a, p[0], u, to_other, is_bgr, staged);
  else
    return false;
  return true;
}
