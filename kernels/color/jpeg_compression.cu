// SPDX-License-Identifier: Apache-2.0
// form: own
// Two launches: jpeg_squeeze takes macroblocks of 16 x 16 pixels to YCbCr with chroma of half the resolution, through
// the DCT and the quantisation and back, to planes in the scratch memory; jpeg_expand makes pixels of the planes, as
// interpolated chroma needs neighbours. Each step rounds as libjpeg does; what a file would lose no more is left out.
#include "color/gpu_jpeg_blocks.h"
#include "core/gpu_runs.h"

constexpr int kMacroblocks = 16, kBlocksEach = 6;  // that a block of threads takes at a time; 4 of luma, 2 of chroma
constexpr int kBlockBytes = 80;                    // of samples; with this stride threads don't meet in a bank

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

// Along an axis: the macroblocks that a window of the image needs, with a sample of chroma around it.
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

// 8 x 2 pixels of two rows, beyond the right border those of the border. All threads of a warp take the same way,
// however their rows are aligned.
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

// What 8 x 2 pixels of a macroblock are in YCbCr, to their places in its 6 blocks of samples.
DEVICE void jpeg_colors(uint8_t *luma, uint8_t *chroma, const JpegSample &s, int y, int x) {
  uint32_t pixels[2][6];
  jpeg_pixel_pairs(pixels, s, jpeg_least(y, s.y.size - 1), jpeg_least(y + 1, s.y.size - 1), x);
  uint32_t p[2][8];
  jpeg_spread(p[0], pixels[0]), jpeg_spread(p[1], pixels[1]);
#pragma unroll
  for (int r = 0; r < 2; r++) *(uint2 *)(luma + 8 * r) = jpeg_luma_of(p[r]);
  // Below the image luma repeats its last row, chroma its own, which is a mean of two.
  if (y >= s.y.size) {
    const int above = 2 * (s.y.chroma - 1);
    jpeg_pixel_pairs(pixels, s, above, jpeg_least(above + 1, s.y.size - 1), x);
    jpeg_spread(p[0], pixels[0]), jpeg_spread(p[1], pixels[1]);
  }
  *(uint32_t *)chroma = jpeg_chroma_of<false>(p[0], p[1]);
  *(uint32_t *)(chroma + kMacroblocks * kBlockBytes) = jpeg_chroma_of<true>(p[0], p[1]);
}

// A thread for each block of samples of kMacroblocks: 2 rows of blocks of luma, then the blue ones, then the red ones.
constexpr int kSqueezeThreads = kMacroblocks * kBlocksEach;
DEVICE void jpeg_squeeze(const Launch &l) {
  constexpr int kAcross = 2 * kMacroblocks;  // blocks of luma side by side
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
                   (const uint4 *)(samples + t * kBlockBytes), quantizers[plane > 0]);
      }
    }
  }
}

// Four samples of a row of chroma, and those beside them.
struct JpegChroma {
  uint32_t four, before, behind;
  // `last` is the last column that counts.
  DEVICE JpegChroma(const uint8_t *row, int x, int last) {
    if (x + 3 <= last) {
      four = load((const uint32_t *)(row + x));
    } else {
      four = 0;
#pragma unroll
      for (int k = 0; k < 4; k++) four |= (uint32_t)load(row + jpeg_least(x + k, last)) << 8 * k;
    }
    before = load(row + jpeg_most(x - 1, 0)), behind = load(row + jpeg_least(x + 4, last));
  }
};

// Chroma of 8 pixels as pairs of 16 bits: of pixels 0 and 4, 1 and 5, 2 and 6, 3 and 7. Each is 3/4 of the nearer and
// 1/4 of the farther sample along both axes, rounded down and up by turns; of narrow images samples are repeated.
DEVICE void jpeg_interpolate(uint32_t (&c)[4], const JpegChroma &near, const JpegChroma &far, bool narrow) {
  constexpr uint32_t kBytes = 0x00ff00ff;
  const uint32_t near_even = near.four & kBytes, near_odd = near.four >> 8 & kBytes;
  if (narrow) {
    c[0] = c[1] = near_even, c[2] = c[3] = near_odd;
    return;
  }
  const uint32_t even = 3 * near_even + (far.four & kBytes), odd = 3 * near_odd + (far.four >> 8 & kBytes);
  const uint32_t before = 3 * near.before + far.before, behind = 3 * near.behind + far.behind;
  c[0] = (3 * even + (before | odd << 16) + 0x00080008) >> 4 & kBytes;
  c[1] = (3 * even + odd + 0x00070007) >> 4 & kBytes;
  c[2] = (3 * odd + even + 0x00080008) >> 4 & kBytes;
  c[3] = (3 * odd + (even >> 16 | behind << 16) + 0x00070007) >> 4 & kBytes;
}

// 8 pixels from luma and chroma, as in decode/jpeg_pixels.h.
DEVICE void jpeg_rgb_words(uint32_t (&w)[6], uint2 luma, const uint32_t (&blue)[4], const uint32_t (&red)[4]) {
  int32_t rgb[24];
#pragma unroll
  for (int k = 0; k < 8; k++) {
    const int shift = k / 4 * 16;
    const int32_t cb = (int32_t)(blue[k % 4] >> shift & 255), cr = (int32_t)(red[k % 4] >> shift & 255);
    const int32_t y = (int32_t)((k < 4 ? luma.x : luma.y) >> k % 4 * 8 & 255) << 16;
    rgb[3 * k] = (y + 91881 * cr + ((1 << 15) - 128 * 91881)) >> 16;                             // 1.40200
    rgb[3 * k + 1] = (y - 22554 * cb - 46802 * cr + ((1 << 15) + 128 * (22554 + 46802))) >> 16;  // 0.34414, 0.71414
    rgb[3 * k + 2] = (y + 116130 * cb + ((1 << 15) - 128 * 116130)) >> 16;                       // 1.77200
  }
#pragma unroll
  for (int k = 0; k < 6; k++) w[k] = jpeg_word(rgb[4 * k], rgb[4 * k + 1], rgb[4 * k + 2], rgb[4 * k + 3]);
}

// 8 pixels of a row, of which those from column x on, before `width`, exist. Where the lanes `before` and `behind` have
// those beside them, each lane writes whole words, the first of them with the last bytes of the lane before.
DEVICE void jpeg_store(uint8_t *row, const uint32_t (&w)[6], int x, int width, bool valid, bool before, bool behind) {
  const uint32_t last = __shfl_up_sync(0xffffffffu, w[5], 1);
  if (!valid) return;
  uint8_t *to = row + 3 * x;
  if (x < 0) {  // the first pixels of a window
#pragma unroll
    for (int k = 0; k < 24; k++)
      if (x + k / 3 >= 0 && x + k / 3 < width) to[k] = (uint8_t)(w[k / 4] >> k % 4 * 8);
    return;
  }
  const int ahead = (int)((unsigned long long)to & 3), end = ahead + 3 * jpeg_least(width - x, 8);
  uint32_t *words = (uint32_t *)(to - ahead), shifted[7];
  shifted[0] = __funnelshift_l(last, w[0], 8 * ahead);
#pragma unroll
  for (int k = 1; k < 6; k++) shifted[k] = __funnelshift_l(w[k - 1], w[k], 8 * ahead);
  shifted[6] = __funnelshift_l(w[5], 0, 8 * ahead);
  const bool whole = ahead == 0 || before;  // the first word
  if (whole && end >= 4) words[0] = shifted[0];
#pragma unroll
  for (int k = 1; k < 6; k++)
    if (4 * k + 4 <= end) words[k] = shifted[k];
  if (!whole) {
#pragma unroll
    for (int j = 1; j < 4; j++)
      if (j >= ahead && j < end) ((uint8_t *)words)[j] = (uint8_t)(shifted[0] >> 8 * j);
  }
  if (behind || (end & 3) == 0 || (end < 4 && !whole)) return;
  uint32_t rest = shifted[0];
#pragma unroll
  for (int k = 1; k < 7; k++)
    if (end / 4 == k) rest = shifted[k];
#pragma unroll
  for (int j = 0; j < 3; j++)
    if (j < (end & 3)) ((uint8_t *)words)[end / 4 * 4 + j] = (uint8_t)(rest >> 8 * j);
}

// Threads take 8 x 2 pixels, those of a warp side by side.
DEVICE void jpeg_expand(const Launch &l) {
  const int lane = threadIdx.x % 32;
  FOR_SAMPLES(i, l) {
    const JpegSample s(l, i);
    if (s.empty) continue;
    const int left = s.x.begin >> 3, across = ((s.x.begin + s.x.window - 1) >> 3) - left + 1;
    const int top = s.y.begin >> 1, down = ((s.y.begin + s.y.window - 1) >> 1) - top + 1, n = down * across;
    const uint8_t *luma = s.plane(0), *blue = s.plane(1), *red = s.plane(2);
    const int last = jpeg_least(s.x.chroma, (s.x.first + s.x.count) * 8) - 1 - s.x.first * 8;
    const bool narrow = s.x.chroma <= 2;
    for (int begin = blockIdx.x * blockDim.x + threadIdx.x - lane; begin < n; begin += gridDim.x * blockDim.x) {
      const bool valid = begin + lane < n;
      const int item = valid ? begin + lane : n - 1;
      const int pair = (uint32_t)item / (uint32_t)across, part = item - pair * across, j = top + pair;
      const int x = (left + part) * 8 - s.x.first * 16,
                rows[3] = {jpeg_most(j - 1, 0), j, jpeg_least(j + 1, s.y.chroma - 1)};
      const uint8_t *from = luma + (int64_t)(2 * j - s.y.first * 16) * s.stride(0) + x;
      const int64_t below = s.stride(0);
      uint32_t c[2][2][4];  // of blue and red, for both rows
#pragma unroll
      for (int k = 0; k < 2; k++) {
        const uint8_t *plane = (k ? red : blue) - (int64_t)s.y.first * 8 * s.stride(1);
        const JpegChroma above(plane + (int64_t)rows[0] * s.stride(1), x / 2, last);
        const JpegChroma here(plane + (int64_t)rows[1] * s.stride(1), x / 2, last);
        const JpegChroma under(plane + (int64_t)rows[2] * s.stride(1), x / 2, last);
        jpeg_interpolate(c[k][0], here, above, narrow);
        jpeg_interpolate(c[k][1], here, under, narrow);
      }
#pragma unroll
      for (int r = 0; r < 2; r++) {
        const int row = 2 * j + r - s.y.begin, column = (left + part) * 8 - s.x.begin;
        uint32_t w[6];
        jpeg_rgb_words(w, __ldg((const uint2 *)(from + r * below)), c[0][r], c[1][r]);
        const bool beside = lane < 31 && part + 1 < across && column + 16 <= s.x.window;
        jpeg_store(s.out + (int64_t)row * s.x.window * 3, w, column, s.x.window,
                   valid && row >= 0 && row<s.y.window, lane> 0 && part > 0, beside);
      }
    }
  }
}
