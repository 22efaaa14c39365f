// SPDX-License-Identifier: Apache-2.0
// Two launches per batch: jpeg_blocks makes the components' planes, jpeg_pixels the pixels. Tensors: pixels (HWC, of
// type OUT), and the pictures' packed coefficients unless they are in the scratch. Scratch: the planes.
#include "core/gpu.h"
#include "decode/colours.h"
#include "decode/decode.h"
#include "decode/gpu_jpeg_rows.h"
#include "decode/inverse_dct.h"
#include "decode/jpeg_coefficients.h"
#include "decode/jpeg_pixels.h"

constexpr int kWarps = 8;                       // per block of threads
constexpr int kRow = 9, kTile = 72;             // of 8 x 8; these strides avoid bank conflicts
constexpr int kCoefficients = (128 + 16) / 16;  // of a block, in units of 16 bytes

// A stored block: the index of its first AC word, (number of AC words) << 16 | (DC coefficient), its component, and the
// offset of its pixels in the planes, in 8 bytes.
struct StoredBlock {
  uint32_t first, known, to;
  int c;

  __device__ void of(const JpegRecord &r, int number, const uint32_t *places, const uint16_t *words) {
    c = 0;
    while (c + 1 < r.n_components && number >= r.first_block[c + 1]) c++;
    const int inside = number - r.first_block[c], by = inside / r.wide[c], bx = inside - by * r.wide[c];
    to = 8u * r.first_block[c] + 8u * by * r.wide[c] + bx;
    if (r.mcu_blocks == 0) {
      const uint32_t place = places[number];
      first = (place >> kJpegCountBits) + 1;
      known = (place & ((1 << kJpegCountBits) - 1)) << 16 | words[first - 1];
      return;
    }
    const int y = r.first_y[c] + by, x = r.first_x[c] + bx, v = r.v[c], h = r.h[c];
    int at = (y / v * r.mcus_per_row + x / h) * r.mcu_blocks + y % v * h + x % h;
    for (int before = 0; before < c; before++) at += r.h[before] * r.v[before];
    const uint2 both = reinterpret_cast<const uint2 *>(places)[at];
    first = both.x, known = both.y;
  }
};

// Writes a coefficient to `to`, unless the word is its second one; `next` is the following word.
__device__ inline void put_coefficient(uint32_t word, uint32_t next, int16_t *to) {
  const uint32_t at = word >> kJpegPlaceBits;
  if (at != 0)
    to[at] = next >> kJpegPlaceBits ? (int16_t)((int32_t)(word << 22) >> 22)
                                    : (int16_t)(word & 1023 | next << kJpegPlaceBits);
}

// Writes a block's coefficients to `to`, which is zero; 8 lanes share a block. Most blocks have at most kAtOnce per
// lane.
__device__ inline void unpack(const uint16_t *words, uint32_t known, int lane, int16_t *to) {
  constexpr int kAtOnce = 3;
  const int n = (int)(known >> 16);
  if (lane == 0) to[0] = (int16_t)known;
  uint32_t word[kAtOnce], next[kAtOnce];
#pragma unroll
  for (int k = 0; k < kAtOnce; k++) {
    const int i = 8 * k + lane;
    word[k] = i < n ? words[i] : 0, next[k] = i + 1 < n ? words[i + 1] : ~0u;
  }
#pragma unroll
  for (int k = 0; k < kAtOnce; k++) put_coefficient(word[k], next[k], to);
  for (int i = 8 * kAtOnce + lane; i < n; i += 8) put_coefficient(words[i], i + 1 < n ? words[i + 1] : ~0u, to);
}

// A warp takes 32 blocks, 8 lanes each. Grid: any x, y the samples. 32 * kWarps threads.
extern "C" __global__ void __launch_bounds__(32 * kWarps) jpeg_blocks(Launch l) {
  __shared__ int32_t tiles[kWarps * 4 * kTile];
  __shared__ uint4 coefficients[kWarps * 4 * kCoefficients];
  __shared__ __align__(16) uint16_t columns[3 * 64];  // of the quantization, one component after another
  const JpegPixelsArgs &a = static_cast<const JpegPixelsArgs *>(l.args[0])[blockIdx.y];
  const JpegRecord &r = *reinterpret_cast<const JpegRecord *>(a.record);
  const int n_blocks = r.n_blocks;
  if (n_blocks == 0) return;  // another decoder's
  const uint32_t *places = reinterpret_cast<const uint32_t *>(static_cast<const uint8_t *>(l.scratch) + a.places);
  if (r.mcu_blocks == 0) places = l.tensors[1][blockIdx.y].as<const uint32_t>();
  const uint16_t *words = reinterpret_cast<const uint16_t *>(places + r.n_places);
  uint2 *const planes = reinterpret_cast<uint2 *>(static_cast<uint8_t *>(l.scratch) + a.planes);
  const int thread = threadIdx.x % 32, warp = threadIdx.x / 32, lane = thread % 8, slot = thread / 8;
  int32_t *const tile = tiles + (warp * 4 + slot) * kTile;
  uint4 *const zeros = coefficients + (warp * 4 + slot) * kCoefficients;
  int16_t *const block = reinterpret_cast<int16_t *>(zeros);
  for (int i = threadIdx.x; i < 3 * 64; i += 32 * kWarps)
    columns[i] = r.quantization[i & ~63 | (i & 7) << 3 | i >> 3 & 7];
  const int wide[3] = {r.wide[0], r.wide[1], r.wide[2]};
  __syncthreads();

  for (int first = (blockIdx.x * kWarps + warp) * 32; first < n_blocks; first += gridDim.x * kWarps * 32) {
    StoredBlock all;
    all.of(r, min(first + thread, n_blocks - 1), places, words);
    const int n = min(n_blocks - first, 32);
    for (int begin = 0; begin < n; begin += 4) {
      const int from = begin + slot;
      const uint32_t at = __shfl_sync(~0u, all.first, from), known = __shfl_sync(~0u, all.known, from),
                     to = __shfl_sync(~0u, all.to, from);
      const int c = __shfl_sync(~0u, all.c, from);
      zeros[lane] = make_uint4(0, 0, 0, 0);
      __syncwarp();
      unpack(words + at, known, lane, block);
      __syncwarp();
      const uint4 q = *reinterpret_cast<const uint4 *>(columns + 64 * c + 8 * lane);
      const uint32_t two[4] = {q.x, q.y, q.z, q.w};
      int32_t v[8];
#pragma unroll
      for (int k = 0; k < 8; k++)
        v[k] = block[8 * k + lane] * (int32_t)(k & 1 ? two[k / 2] >> 16 : two[k / 2] & 0xffff);
      inverse_dct_column(v);
#pragma unroll
      for (int k = 0; k < 8; k++) tile[k * kRow + lane] = v[k];
      __syncwarp();
#pragma unroll
      for (int k = 0; k < 8; k++) v[k] = tile[lane * kRow + k];
      inverse_dct_row(v);
      if (from < n) {
        uint32_t low = 0, high = 0;
#pragma unroll
        for (int k = 0; k < 4; k++) {
          low |= (uint32_t)limited(v[k] + 128, 255) << 8 * k;
          high |= (uint32_t)limited(v[k + 4] + 128, 255) << 8 * k;
        }
        planes[to + (uint32_t)lane * (c == 0 ? wide[0] : c == 1 ? wide[1] : wide[2])] = make_uint2(low, high);
      }
    }
  }
}

// A component's plane, read sample by sample.
struct AnyPlane : Plane {
  // Coordinates are clamped to the plane.
  __device__ int at(int y, int x) const {
    y = y < 0 ? 0 : y < height ? y : height - 1;
    x = x < 0 ? 0 : x < width ? x : width - 1;
    return data[(y - first_y) * stride + (x - first_x)];
  }
  // The sample at a pixel of the image. A factor of 2 is interpolated linearly, 3/4 of the nearer and 1/4 of the
  // farther neighbour, rounding alternately down and up; other factors, and very narrow planes, repeat samples.
  __device__ int pixel(int y, int x) const {
    if (x_factor == 1 && y_factor == 1) return at(y, x);
    const int down = y & 1, right = x & 1;
    if (x_factor == 2 && y_factor <= 2 && width > 2) {
      const int i = x >> 1, other = right ? i + 1 : i - 1;
      if (y_factor == 1) return (3 * at(y, i) + at(y, other) + 1 + right) >> 2;
      const int j = y >> 1, far = down ? j + 1 : j - 1;
      return (3 * (3 * at(j, i) + at(far, i)) + 3 * at(j, other) + at(far, other) + 8 - right) >> 4;
    }
    if (x_factor == 1 && y_factor == 2) {
      const int j = y >> 1;
      return (3 * at(j, x) + at(down ? j + 1 : j - 1, x) + 1 + down) >> 2;
    }
    return at(y / y_factor, x / x_factor);
  }
};

template <class Out>
__device__ Out stretched(uint8_t v) {
  if constexpr (DTypeOf<Out>::value == UINT8) return v;
  constexpr float factor = Full<Out>::value / Full<uint8_t>::value;
  return saturate<Out>((float)v * factor);
}

// Writes one pixel in the output's colours.
template <int kChannels>
__device__ void colour_pixel(uint8_t *out, const AnyPlane *p, int colour, int output_type, int y, int x) {
  const int first = p[0].pixel(y, x);
  if (kChannels == 1) {
    out[0] = (uint8_t)first;
    if (colour == JPEG_RGB) {
      const uint8_t rgb[3] = {(uint8_t)first, (uint8_t)p[1].pixel(y, x), (uint8_t)p[2].pixel(y, x)};
      out[0] = jpeg_gray(rgb);
    }
    return;
  }
  uint8_t rgb[3] = {(uint8_t)first, (uint8_t)first, (uint8_t)first};
  if (colour != JPEG_GRAY) {
    const int second = p[1].pixel(y, x), third = p[2].pixel(y, x);
    if (colour == JPEG_YCC)
      jpeg_rgb(rgb, first, second, third);
    else
      rgb[1] = (uint8_t)second, rgb[2] = (uint8_t)third;
  }
  if (output_type == YCBCR) {
    ycbcr<uint8_t>(out, rgb[0], rgb[1], rgb[2]);
  } else {
    const bool swap = output_type == BGR;
    out[0] = rgb[swap ? 2 : 0], out[1] = rgb[1], out[2] = rgb[swap ? 0 : 2];
  }
}

constexpr int kRun = 4;  // neighbouring pixels of a thread

template <int kChannels>
__device__ void write_pixels(const Launch &l) {
  const Tensor &out = l.tensors[0][blockIdx.y];
  const JpegPixelsArgs &a = static_cast<const JpegPixelsArgs *>(l.args[0])[blockIdx.y];
  const JpegRecord &r = *reinterpret_cast<const JpegRecord *>(a.record);
  AnyPlane planes[3];
#pragma unroll
  for (int c = 0; c < 3; c++)
    if (c < r.n_components) planes[c].of(r, static_cast<const uint8_t *>(l.scratch) + a.planes, c);
  const int width = (int)out.shape[1];
  const int64_t n = out.shape[0] * out.shape[1];
  for (int64_t i = (blockIdx.x * (int64_t)blockDim.x + threadIdx.x) * kRun; i < n;
       i += (int64_t)gridDim.x * blockDim.x * kRun) {
    int row = (int)((uint32_t)i / (uint32_t)width), column = (int)i - row * width;
    uint8_t bytes[kRun * kChannels];
    const int m = n - i < kRun ? (int)(n - i) : kRun;
#pragma unroll
    for (int k = 0; k < kRun; k++) {
      if (k >= m) break;
      int64_t y, x;
      stored_position(a.orientation, a.height, a.width, row + a.y, column + a.x, &y, &x);
      colour_pixel<kChannels>(bytes + k * kChannels, planes, r.colour, a.output_type, (int)y, (int)x);
      if (++column == width) column = 0, row++;
    }
    OUT *to = out.as<OUT>() + i * kChannels;
    if (DTypeOf<OUT>::value == UINT8 && m == kRun && (uint64_t)to % 4 == 0) {
#pragma unroll
      for (int k = 0; k < kChannels; k++)
        reinterpret_cast<uint32_t *>(to)[k] =
            bytes[4 * k] | bytes[4 * k + 1] << 8 | bytes[4 * k + 2] << 16 | (uint32_t)bytes[4 * k + 3] << 24;
    } else {
      for (int k = 0; k < m * kChannels; k++) to[k] = stretched<OUT>(bytes[k]);
    }
  }
}

// Grid: any x, y the samples.
extern "C" __global__ void __launch_bounds__(256, 4) jpeg_pixels(Launch l) {
  const Tensor &out = l.tensors[0][blockIdx.y];
  const JpegPixelsArgs &a = static_cast<const JpegPixelsArgs *>(l.args[0])[blockIdx.y];
  const JpegRecord &r = *reinterpret_cast<const JpegRecord *>(a.record);
  if (out.volume() == 0 || r.bytes == 0) return;  // another decoder's
  if (out.shape[2] == 1) {
    write_pixels<1>(l);
  } else {
    if constexpr (DTypeOf<OUT>::value == UINT8)
      if (write_usual(out, a, r, static_cast<const uint8_t *>(l.scratch) + a.planes)) return;
    write_pixels<3>(l);
  }
}
