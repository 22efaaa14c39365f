// SPDX-License-Identifier: Apache-2.0
// Two launches for a batch: jpeg_blocks makes the components' planes, jpeg_pixels the pixels from them.
// Tensors: pixels (HWC, of type OUT), the pictures' packed coefficients unless they are in the scratch. Scratch: the
// planes.
#include "core/gpu.h"
#include "decode/colours.h"
#include "decode/decode.h"
#include "decode/gpu_jpeg_rows.h"
#include "decode/inverse_dct.h"
#include "decode/jpeg_coefficients.h"
#include "decode/jpeg_pixels.h"

constexpr int kBlocks = 32;          // of 8 x 8, in a block of threads: 8 threads each
constexpr int kRow = 9, kTile = 72;  // with these strides no two threads of a warp meet in a bank

// What is known of a stored block: its DC coefficient, where its AC words begin, and how many there are.
struct StoredBlock {
  const uint16_t *words;
  int dc, n;

  // Number `number`, of component c.
  __device__ void of(const JpegRecord &r, int c, int number, const uint32_t *places, const uint16_t *all) {
    if (r.mcu_blocks == 0) {
      const uint32_t place = places[number];
      words = all + (place >> kJpegCountBits);
      dc = (int16_t)*words++, n = (int)(place & ((1 << kJpegCountBits) - 1));
      return;
    }
    const int inside = number - r.first_block[c], by = inside / r.wide[c], bx = inside - by * r.wide[c];
    const int y = r.first_y[c] + by, x = r.first_x[c] + bx, v = r.v[c], h = r.h[c];
    int at = (y / v * r.mcus_per_row + x / h) * r.mcu_blocks + y % v * h + x % h;
    for (int before = 0; before < c; before++) at += r.h[before] * r.v[before];
    const uint2 known = reinterpret_cast<const uint2 *>(places)[at];
    words = all + known.x, dc = (int16_t)known.y, n = (int)(known.y >> 16);
  }
};

// Grid: x any number, y the samples. 256 threads.
extern "C" __global__ void __launch_bounds__(256) jpeg_blocks(Launch l) {
  __shared__ int32_t tiles[kBlocks * kTile];
  const JpegPixelsArgs &a = static_cast<const JpegPixelsArgs *>(l.args[0])[blockIdx.y];
  const JpegRecord &r = *reinterpret_cast<const JpegRecord *>(a.record);
  if (r.n_blocks == 0) return;  // another decoder's
  const uint32_t *places = reinterpret_cast<const uint32_t *>(static_cast<const uint8_t *>(l.scratch) + a.places);
  if (r.mcu_blocks == 0) places = l.tensors[1][blockIdx.y].as<const uint32_t>();
  const uint16_t *words = reinterpret_cast<const uint16_t *>(places + r.n_places);
  uint8_t *planes = static_cast<uint8_t *>(l.scratch) + a.planes;
  const int lane = threadIdx.x % 8, slot = threadIdx.x / 8;
  int32_t *tile = tiles + slot * kTile;

  for (int first = blockIdx.x * kBlocks; first < r.n_blocks; first += gridDim.x * kBlocks) {
    const int number = first + slot;
    const bool valid = number < r.n_blocks;
    int c = 0;
    while (c + 1 < r.n_components && number >= r.first_block[c + 1]) c++;
    const uint16_t *quantization = r.quantization + 64 * c;
#pragma unroll
    for (int k = 0; k < 8; k++) tile[lane * kRow + k] = 0;
    __syncthreads();
    if (valid) {
      StoredBlock block;
      block.of(r, c, number, places, words);
      if (lane == 0) tile[0] = block.dc * (int32_t)quantization[0];
      for (int i = lane; i < block.n; i += 8) {
        const int32_t word = block.words[i], next = i + 1 < block.n ? block.words[i + 1] : ~0,
                      at = word >> kJpegPlaceBits;
        if (at == 0) continue;
        const int32_t value = next >> kJpegPlaceBits ? (int32_t)((uint32_t)word << 22) >> 22
                                                     : (int16_t)(word & 1023 | next << kJpegPlaceBits);
        tile[(at >> 3) * kRow + (at & 7)] = value * (int32_t)quantization[at];
      }
    }
    __syncthreads();
    int32_t v[8];
#pragma unroll
    for (int k = 0; k < 8; k++) v[k] = tile[k * kRow + lane];
    inverse_dct_column(v);
#pragma unroll
    for (int k = 0; k < 8; k++) tile[k * kRow + lane] = v[k];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 8; k++) v[k] = tile[lane * kRow + k];
    inverse_dct_row(v);
    if (valid) {
      const int inside = number - r.first_block[c], by = inside / r.wide[c], bx = inside - by * r.wide[c];
      uint32_t low = 0, high = 0;
#pragma unroll
      for (int k = 0; k < 4; k++) {
        low |= (uint32_t)dct_sample(v[k]) << 8 * k;
        high |= (uint32_t)dct_sample(v[k + 4]) << 8 * k;
      }
      uint8_t *to = planes + 64ll * r.first_block[c] + (8ll * by + lane) * r.wide[c] * 8 + 8 * bx;
      *reinterpret_cast<uint2 *>(to) = make_uint2(low, high);
    }
    __syncthreads();
  }
}

// Any component's plane, sample by sample.
struct AnyPlane : Plane {
  // Beyond the border it repeats.
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

// One pixel in the output's colours.
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

constexpr int kRun = 4;  // pixels of a thread, side by side

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

// Grid: x any number, y the samples.
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
