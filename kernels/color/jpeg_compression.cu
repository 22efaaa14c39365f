// SPDX-License-Identifier: Apache-2.0
// form: own
// Two launches. jpeg_squeeze converts macroblocks of 16 x 16 pixels to YCbCr with chroma at half resolution, applies
// DCT, quantisation and inverse DCT, and writes planes to scratch memory. jpeg_expand makes pixels from the planes, as
// chroma interpolation needs neighbours. Each step rounds as libjpeg does; lossless steps are omitted.
#include "color/gpu_jpeg_blocks.h"
#include "color/gpu_jpeg_pixels.h"
#include "color/jpeg_compression.h"
#include "core/gpu_runs.h"
#include "decode/jpeg_pixels.h"

constexpr int kMacroblocks = 16, kBlocksEach = 6;  // per block of threads at a time; 4 of luma, 2 of chroma
constexpr int kBlockBytes = 80;                    // bytes per block of samples; this stride avoids bank conflicts

// ITU-T T.81, tables K.1 and K.2.
__constant__ uint8_t kQuantizers[2][64] = {
    {16, 11,  10,  16, 24, 40, 51, 61, 12,  12,  14,  19,  26, 58, 60, 55,  14,  13,  16,  24, 40, 57,
     69, 56,  14,  17, 22, 29, 51, 87, 80,  62,  18,  22,  37, 56, 68, 109, 103, 77,  24,  35, 55, 64,
     81, 104, 113, 92, 49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98,  112, 100, 103, 99},
    {17, 18, 24, 47, 99, 99, 99, 99, 18, 21, 26, 66, 99, 99, 99, 99, 24, 26, 56, 99, 99, 99,
     99, 99, 47, 66, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
     99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99}};

DEVICE int jpeg_least(int a, int b) { return a < b ? a : b; }
DEVICE int jpeg_most(int a, int b) { return a > b ? a : b; }

// Along an axis: the macroblocks for a window of the image and one more sample of chroma around it.
struct JpegSpan {
  int size, chroma, begin, window, first, count;
  DEVICE JpegSpan(int64_t full, int origin, int64_t stored)
      : size((int)full), chroma((size + 1) / 2), begin(origin), window((int)stored) {
    first = jpeg_most((begin >> 1) - 1, 0) >> 3;
    count = (jpeg_least(((begin + window - 1) >> 1) + 1, chroma - 1) >> 3) - first + 1;
  }
};

struct JpegSample {
  const JpegCompressionArgs &a;
  JpegSpan y, x;
  const uint8_t *in;
  uint8_t *out, *planes;
  bool empty;
  DEVICE JpegSample(const Launch &l, int s)
      : a(((const JpegCompressionArgs *)l.args[0])[s]),
        y(l.tensors[1][s].shape[0], a.y, l.tensors[0][s].shape[0]),
        x(l.tensors[1][s].shape[1], a.x, l.tensors[0][s].shape[1]),
        in(l.tensors[1][s].as<uint8_t>()),
        out(l.tensors[0][s].as<uint8_t>()),
        planes((uint8_t *)l.scratch + a.planes[0]),
        empty(y.window == 0 || x.window == 0) {}
  DEVICE int stride(int plane) const { return x.count * (plane ? 8 : 16); }
  DEVICE uint8_t *plane(int plane) const { return planes + (int64_t)(plane ? 3 + plane : 0) * 64 * y.count * x.count; }
};

// 8 pixels of each of two rows; beyond the right border, its pixel is repeated. All threads of a warp take the same
// branch, however their rows are aligned.
DEVICE void jpeg_pixel_pairs(uint32_t (&pixels)[2][6], const JpegSample &s, int above, int below, int left) {
  const uint8_t *rows[2] = {s.in + (int64_t)above * s.x.size * 3, s.in + (int64_t)below * s.x.size * 3};
  if (left + 8 <= s.x.size) {
    uint32_t w[2][7];
#pragma unroll
    for (int r = 0; r < 2; r++) {
      const unsigned long long address = (unsigned long long)(rows[r] + left * 3);
      const uint32_t *words = (const uint32_t *)(address & ~3ull);
#pragma unroll
      for (int k = 0; k < 6; k++) w[r][k] = load(words + k);
      w[r][6] = address & 3 ? load(words + 6) : 0;
    }
#pragma unroll
    for (int r = 0; r < 2; r++) {
      const int ahead = (int)((unsigned long long)(rows[r] + left * 3) & 3) * 8;
#pragma unroll
      for (int k = 0; k < 6; k++) pixels[r][k] = __funnelshift_r(w[r][k], w[r][k + 1], ahead);
    }
    return;
  }
#pragma unroll
  for (int r = 0; r < 2; r++)
#pragma unroll
    for (int k = 0; k < 6; k++) {
      pixels[r][k] = 0;
#pragma unroll
      for (int j = 0; j < 4; j++) {
        const int byte = 4 * k + j;
        pixels[r][k] |= (uint32_t)load(rows[r] + jpeg_least(left + byte / 3, s.x.size - 1) * 3 + byte % 3) << 8 * j;
      }
    }
}

// Converts 8 x 2 pixels of a macroblock to YCbCr and stores them in its 6 blocks of samples.
DEVICE void jpeg_colors(uint8_t *luma, uint8_t *chroma, const JpegSample &s, int y, int x) {
  uint32_t pixels[2][6];
  jpeg_pixel_pairs(pixels, s, jpeg_least(y, s.y.size - 1), jpeg_least(y + 1, s.y.size - 1), x);
  uint32_t p[2][8];
  jpeg_spread(p[0], pixels[0]), jpeg_spread(p[1], pixels[1]);
#pragma unroll
  for (int r = 0; r < 2; r++) *(uint2 *)(luma + 8 * r) = jpeg_luma_of(p[r]);
  // Below the image, luma repeats its last row. Chroma repeats its own last row, a mean of two.
  if (y >= s.y.size) {
    const int above = 2 * (s.y.chroma - 1);
    jpeg_pixel_pairs(pixels, s, above, jpeg_least(above + 1, s.y.size - 1), x);
    jpeg_spread(p[0], pixels[0]), jpeg_spread(p[1], pixels[1]);
  }
  *(uint32_t *)chroma = jpeg_chroma_of<false>(p[0], p[1]);
  *(uint32_t *)(chroma + kMacroblocks * kBlockBytes) = jpeg_chroma_of<true>(p[0], p[1]);
}

// One thread per block of samples of kMacroblocks: 2 rows of luma blocks, then the blue ones, then the red ones.
constexpr int kSqueezeThreads = kMacroblocks * kBlocksEach;
DEVICE void jpeg_squeeze(const Launch &l) {
  constexpr int kAcross = 2 * kMacroblocks;  // blocks of luma per row
  __shared__ __align__(16) uint8_t samples[kSqueezeThreads * kBlockBytes];
  __shared__ __align__(16) JpegQuantizer quantizers[2][64];
  __shared__ int2 places[kMacroblocks];
  const int t = threadIdx.x;
  FOR_SAMPLES(i, l) {
    const JpegSample s(l, i);
    const int n = s.empty ? 0 : s.y.count * s.x.count;
    if ((int)blockIdx.x * kMacroblocks >= n) continue;
    __syncthreads();
#pragma unroll 1
    for (int k = t; k < 128; k += kSqueezeThreads)
      quantizers[k / 64][k % 64] = jpeg_quantizer_of(jpeg_quantizer((&kQuantizers[0][0])[k], s.a.quality));
    for (int first = blockIdx.x * kMacroblocks; first < n; first += gridDim.x * kMacroblocks) {
      __syncthreads();
      if (t < kMacroblocks) {
        const int down = (uint32_t)(first + t) / (uint32_t)s.x.count;
        places[t] = make_int2(first + t - down * s.x.count, down);
      }
      __syncthreads();
#pragma unroll 1
      for (int part = t; part < kMacroblocks * 16; part += kSqueezeThreads) {
        const int macroblock = part / 16, row = part % 16 / 2 * 2, right = part % 2;
        if (first + macroblock >= n) break;
        const int2 place = places[macroblock];
        jpeg_colors(samples + (row / 8 * kAcross + 2 * macroblock + right) * kBlockBytes + row % 8 * 8,
                    samples + (2 * kAcross + macroblock) * kBlockBytes + row / 2 * 8 + right * 4, s,
                    (s.y.first + place.y) * 16 + row, (s.x.first + place.x) * 16 + right * 8);
      }
      __syncthreads();
      const int plane = t < 2 * kAcross ? 0 : t < 2 * kAcross + kMacroblocks ? 1 : 2;
      const int macroblock = plane ? t % kMacroblocks : t % kAcross / 2, side = plane ? 8 : 16;
      if (first + macroblock < n) {
        const int2 place = places[macroblock];
        const int y = place.y * side + (plane ? 0 : t / kAcross * 8), x = place.x * side + (plane ? 0 : t % 2 * 8);
        jpeg_block(s.plane(plane) + (int64_t)y * s.stride(plane) + x, s.stride(plane),
                   (const uint4 *)(samples + t * kBlockBytes), quantizers[plane > 0], plane == 0);
      }
    }
  }
}

// For images so narrow that chroma is repeated, not interpolated.
DEVICE void jpeg_expand_narrow(const JpegSample &s) {
  for (int k = blockIdx.x * blockDim.x + threadIdx.x; k < s.y.window * s.x.window; k += gridDim.x * blockDim.x) {
    const int row = k / s.x.window, y = s.y.begin + row - s.y.first * 16, x = s.x.begin + k - row * s.x.window;
    const int64_t at = (int64_t)(y / 2) * s.stride(1) + x / 2;
    const uint8_t luma = s.plane(0)[(int64_t)y * s.stride(0) + (x & 1) + (x & 2) * 2];  // in the order of jpeg_block
    jpeg_rgb(s.out + (int64_t)k * 3, luma, s.plane(1)[at], s.plane(2)[at]);
  }
}

// A thread makes 8 x 4 pixels; threads of a warp lie side by side.
DEVICE void jpeg_expand(const Launch &l) {
  constexpr int kPairs = 2;  // of rows per thread
  const int lane = threadIdx.x % 32;
  FOR_SAMPLES(i, l) {
    const JpegSample s(l, i);
    if (s.empty) continue;
    if (s.x.chroma <= 2) {
      jpeg_expand_narrow(s);
      continue;
    }
    const int left = s.x.begin >> 3, across = ((s.x.begin + s.x.window - 1) >> 3) - left + 1;
    const int top = s.y.begin >> 1, bottom = (s.y.begin + s.y.window - 1) >> 1;
    const int n = (bottom - top + kPairs) / kPairs * across;
    // The last row of chroma in the planes, and the last column, relative to the planes' first.
    const int last_row = jpeg_least(s.y.chroma, (s.y.first + s.y.count) * 8) - 1;
    const int last = jpeg_least(s.x.chroma, (s.x.first + s.x.count) * 8) - 1 - s.x.first * 8;
    const int below[2] = {s.stride(0), s.stride(1)};
    // Row 0 of the image, which may lie before the planes' first.
    const uint8_t *luma = s.plane(0) - (int64_t)s.y.first * 16 * below[0];
    const uint8_t *blue = s.plane(1) - (int64_t)s.y.first * 8 * below[1];
    const int64_t red = s.plane(2) - s.plane(1);
    for (int begin = blockIdx.x * blockDim.x + threadIdx.x - lane; begin < n; begin += gridDim.x * blockDim.x) {
      const bool valid = begin + lane < n;
      const int item = valid ? begin + lane : n - 1;
      const int group = (uint32_t)item / (uint32_t)across, part = item - group * across;
      const int x = (left + part) * 8 - s.x.first * 16, column = (left + part) * 8 - s.x.begin;
      const bool before = lane > 0 && part > 0, behind = lane < 31 && part + 1 < across && column + 16 <= s.x.window;
      const uint8_t *chroma = blue + x / 2;
      const JpegColumns columns(x / 2, last);
      int j = top + group * kPairs;
      JpegChroma above[2], here[2];
#pragma unroll
      for (int k = 0; k < 2; k++) {
        above[k].read(chroma + (int64_t)jpeg_most(j - 1, 0) * below[1] + k * red, columns);
        here[k].read(chroma + (int64_t)j * below[1] + k * red, columns);
      }
#pragma unroll
      for (int pair = 0; pair < kPairs; pair++, j++) {
        if (pair && !__any_sync(0xffffffffu, j <= bottom)) break;
        const int from = jpeg_least(j, bottom);
        uint32_t c[2][2][4];  // of blue and red, for both rows
#pragma unroll
        for (int k = 0; k < 2; k++) {
          JpegChroma under;
          under.read(chroma + (int64_t)jpeg_least(j + 1, last_row) * below[1] + k * red, columns);
          jpeg_interpolate(c[k][0], here[k], above[k]);
          jpeg_interpolate(c[k][1], here[k], under);
          above[k] = here[k], here[k] = under;
        }
#pragma unroll
        for (int r = 0; r < 2; r++) {
          const int row = 2 * j + r - s.y.begin;
          uint32_t w[6];
          jpeg_rgb_words(w, __ldg((const uint2 *)(luma + (int64_t)(2 * from + r) * below[0] + x)), c[0][r], c[1][r]);
          jpeg_store(s.out + (int64_t)row * s.x.window * 3, w, column, s.x.window,
                     valid && row >= 0 && row < s.y.window, before, behind);
        }
      }
    }
  }
}
