// SPDX-License-Identifier: Apache-2.0
// form: own
#include "core/gpu.h"
#include "filter/clahe.h"
#include "filter/gpu_histogram.h"

// A sample, for both launches.
struct ClaheImage {
  const ClaheArgs &a;
  const uint8_t *in;
  int32_t h, w, c;
  ClaheTiles tiles;
  bool in_lab;
  int32_t planes;  // number of planes that are equalized
  uint8_t *made;   // tables of all tiles of all planes
  DEVICE ClaheImage(const Launch &l, const Tensor &x, int sample)
      : a(((const ClaheArgs *)l.args[0])[sample]),
        in(x.as<uint8_t>()),
        h((int32_t)x.shape[0]),
        w((int32_t)x.shape[1]),
        c((int32_t)x.shape[2]),
        tiles(h, w, a),
        in_lab(c == 3 && a.luma),
        planes(c == 3 && !a.luma ? 3 : 1) {
    made = (uint8_t *)l.scratch + (int64_t)sample * 3 * tiles.down * tiles.across * 256;
  }
  DEVICE uint8_t *table(int plane, int tile) const {
    return made + ((int64_t)plane * tiles.down * tiles.across + tile) * 256;
  }
};

// Copies the first n entries of the L*a*b* tables to shared memory.
DEVICE void clahe_copy(uint16_t *to, const uint16_t *from, int n) {
  int done = 0;
  if (((unsigned long long)from & 15) == 0) {
    done = n / 8 * 8;
    for (int i = threadIdx.x; i < n / 8; i += blockDim.x) ((uint4 *)to)[i] = ((const uint4 *)from)[i];
  }
  for (int i = done + threadIdx.x; i < n; i += blockDim.x) to[i] = load(from + i);
}

// Converts a pixel to L*a*b*.
DEVICE Lab clahe_lab(int r, int g, int b, const uint16_t *tables, const int32_t *m) {
  r = tables[LAB_LINEAR + r], g = tables[LAB_LINEAR + g], b = tables[LAB_LINEAR + b];
  const uint16_t *root = tables + LAB_ROOT;
  return lab_of_roots(root[lab_xyz(r, g, b, m)], root[lab_xyz(r, g, b, m + 3)], root[lab_xyz(r, g, b, m + 6)]);
}

// Makes the table of a tile with a block of 256 threads, one per value v.
DEVICE void clahe_table(uint8_t *table, int32_t count, const ClaheTiles &t) {
  __shared__ int32_t all;
  const int v = threadIdx.x;
  const int32_t over = count > t.limit ? count - t.limit : 0;
  const int32_t cut = (int32_t)sum_to_here((uint32_t)over);
  if (v == 255) all = cut;
  __syncthreads();
  const ClaheShare share(all);
  table[v] = clahe_entry((int32_t)sum_to_here((uint32_t)(count - over + share.of(v))), t.scale);
}

// A block of 256 threads counts a tile; each warp has its own histogram.
DEVICE void clahe_tables(const Launch &l) {
  __shared__ uint32_t counts[kWarps][256];
  __shared__ __align__(16) uint16_t lab[LAB_Y];
  bool copied = false;
  FOR_SAMPLES(sample, l) {
    const Tensor x = l.tensors[1][sample];
    if (x.volume() == 0) continue;
    const ClaheImage im(l, x, sample);
    const ClaheTiles &t = im.tiles;
    const int of_plane = (int)(t.down * t.across), n = im.planes * of_plane;
    for (int i = blockIdx.x; i < n; i += gridDim.x) {
      __syncthreads();
      for (int k = threadIdx.x; k < kWarps * 256; k += kCounters) (&counts[0][0])[k] = 0;
      if (im.in_lab && !copied) clahe_copy(lab, im.a.tables, LAB_Y), copied = true;
      __syncthreads();
      const int plane = i / of_plane, tile = i - plane * of_plane, row = tile / (int)t.across;
      const int top = row * (int)t.tile_h, left = (tile - row * (int)t.across) * (int)t.tile_w;
      const uint32_t width = (uint32_t)t.tile_w, pixels = (uint32_t)t.tile_h * width;
      uint32_t *own = counts[threadIdx.x / 32];
      for (uint32_t p = threadIdx.x; p < pixels; p += kCounters) {
        const uint32_t down = p / width;
        const int y = border_place_of<int32_t>(top + (int)down, im.h, REFLECT_101);
        const int z = border_place_of<int32_t>(left + (int)(p - down * width), im.w, REFLECT_101);
        const uint8_t *from = im.in + ((int64_t)y * im.w + z) * im.c + plane;
        int value = load(from) & 255;
        if (im.in_lab) value = clahe_lab(value, load(from + 1), load(from + 2), lab, im.a.forward).l;
        atomicAdd(&own[value], 1u);
      }
      __syncthreads();
      uint32_t count = 0;
#pragma unroll
      for (int k = 0; k < kWarps; k++) count += counts[k][threadIdx.x];
      clahe_table(im.table(plane, tile), (int32_t)count, t);
    }
  }
}

// Interpolates between the tables of the four tiles around a pixel.
struct ClaheNear {
  ClahePlace y, x;
  DEVICE ClaheNear(const ClaheTiles &t, int32_t row, int32_t column)
      : y(row, 1.0f / (float)t.tile_h, t.down), x(column, 1.0f / (float)t.tile_w, t.across) {}
  DEVICE uint8_t of(const ClaheImage &im, int plane, int value) const {
    const int across = (int)im.tiles.across;
    const uint8_t *t = im.table(plane, 0) + value;
    const int above = y.low * across, below = y.high * across;
    return clahe_mix(load(t + (above + x.low) * 256), load(t + (above + x.high) * 256), load(t + (below + x.low) * 256),
                     load(t + (below + x.high) * 256), x.weight, y.weight);
  }
};

// Changes a pixel of C bytes in place.
template <int C>
DEVICE void clahe_pixel(uint8_t *pixel, const ClaheImage &im, int32_t row, int32_t column, const uint16_t *lab) {
  const ClaheNear near(im.tiles, row, column);
  if (C == 1 || !im.in_lab) {
#pragma unroll
    for (int k = 0; k < C; k++) pixel[k] = near.of(im, k, pixel[k]);
    return;
  }
  if constexpr (C == 3) {
    const Lab x = clahe_lab(pixel[0], pixel[1], pixel[2], lab, im.a.forward);
    const int light = near.of(im, 0, x.l), y = lab[LAB_Y + light], fy = lab[LAB_F + light];
    const int from_x = lab_x(fy, x.a), from_z = lab_z(fy, x.b);
#pragma unroll
    for (int k = 0; k < 3; k++)
      pixel[k] = (uint8_t)lab[LAB_GAMMA + lab_linear(from_x, y, from_z, im.a.backward + 3 * k)];
  }
}

// A thread takes 4 pixels as C words of 4 bytes.
template <int C>
DEVICE void clahe_pixels(uint8_t *out, const ClaheImage &im, const uint16_t *lab) {
  const bool aligned = (((unsigned long long)out | (unsigned long long)im.in) & 3) == 0;
  const int64_t n = (int64_t)im.h * im.w, groups = (n + 3) / 4;
  for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < groups; i += (int64_t)gridDim.x * blockDim.x) {
    int32_t row = (int32_t)(4 * i / im.w), column = (int32_t)(4 * i - (int64_t)row * im.w);
    const int pixels = n - 4 * i < 4 ? (int)(n - 4 * i) : 4;
    const bool words = aligned && pixels == 4;
    const uint8_t *from = im.in + 4 * i * C;
    uint8_t *to = out + 4 * i * C;
    uint8_t bytes[4 * C];
    if (words) {
#pragma unroll
      for (int k = 0; k < C; k++) {
        const uint32_t word = load((const uint32_t *)from + k);
#pragma unroll
        for (int j = 0; j < 4; j++) bytes[4 * k + j] = (uint8_t)(word >> (8 * j));
      }
    } else {
#pragma unroll
      for (int k = 0; k < 4 * C; k++) bytes[k] = k < pixels * C ? load(from + k) : 0;
    }
#pragma unroll
    for (int p = 0; p < 4; p++) {
      if (p < pixels) clahe_pixel<C>(bytes + p * C, im, row, column, lab);
      if (++column == im.w) column = 0, row++;
    }
    if (words) {
#pragma unroll
      for (int k = 0; k < C; k++)
        ((uint32_t *)to)[k] = (uint32_t)bytes[4 * k] | (uint32_t)bytes[4 * k + 1] << 8 |
                              (uint32_t)bytes[4 * k + 2] << 16 | (uint32_t)bytes[4 * k + 3] << 24;
    } else {
#pragma unroll
      for (int k = 0; k < 4 * C; k++)
        if (k < pixels * C) to[k] = bytes[k];
    }
  }
}

DEVICE void clahe_apply(const Launch &l) {
  __shared__ __align__(16) uint16_t lab[LAB_TABLE_SIZE];
  bool copied = false;
  FOR_SAMPLES(sample, l) {
    const Tensor x = l.tensors[1][sample];
    if (x.volume() == 0) continue;
    const ClaheImage im(l, x, sample);
    if (im.in_lab && !copied) {
      clahe_copy(lab, im.a.tables, LAB_TABLE_SIZE);
      copied = true;
      __syncthreads();
    }
    uint8_t *out = l.tensors[0][sample].as<uint8_t>();
    if (im.c == 1)
      clahe_pixels<1>(out, im, lab);
    else
      clahe_pixels<3>(out, im, lab);
  }
}
