// SPDX-License-Identifier: Apache-2.0
// form: gather
// constants: kind, interp, border
#include "core/gpu.h"
#include "geometry/displace.h"
#include "geometry/gpu_sampling.h"

constexpr int kMostWaves = 1024;   // columns whose cosines are kept in shared memory
constexpr int kJitterAtOnce = 3;   // pixels per lane; for more, a warp could not make all random words at once
constexpr int kJitterBlocks = 25;  // blocks of 4 words for 96 pixels that begin anywhere in a block

template <int KIND>
struct DisplaceMemory {};
template <>
struct DisplaceMemory<kWater> {
  float waves[kMostWaves];
};
template <>
struct DisplaceMemory<kJitter> {
  uint4 words[kGatherWarps][kJitterBlocks];
};

template <class To, class From, int KIND, int INTERP, int BORDER>
struct Displace : GatherBase {
  typedef DisplaceArgs Args;
  typedef typename From::T In;
  typedef typename To::T Out;
  typedef DisplaceMemory<KIND> Memory;
  static constexpr bool kByBlock = KIND == kWater, kByStrip = KIND == kJitter, kAlways = INTERP == kNearest;
  static constexpr int kAtOnce = KIND == kJitter ? kJitterAtOnce : INTERP == kNearest ? kNearestAtOnce : kLinearAtOnce;
  // Columns and rows as coordinates. kLast: the channels are a coordinate of their own, the last one.
  static constexpr bool kLast = !To::kUnit && To::kAxis == To::N - 1;
  static constexpr int kX = To::N - (kLast ? 2 : 1), kY = kX - 1;
  struct Row {
    Image<From> image;
    In outside[To::C];
    float y;
    float shift;    // of water, along x
    int64_t pixel;  // of jitter: index of the row's first pixel
  };
  typedef Sample<INTERP, BORDER, From> Fetched;
  Place<From> in;
  Image<From> image;
  const Args *args;
  Displacing how;
  In fill[To::C];
  int32_t origin[2], columns;
  float inverse;  // 1 / radius of the sphere
  bool still;

  DEVICE void begin(const Args &a, const Tensor &out, const Tensor &from) {
    in.begin(from);
    image.template begin<kX, kY>(in, from);
    args = &a, how = Displacing(a), columns = (int32_t)To::extent(out, kX);
    origin[0] = (int32_t)a.origin[0], origin[1] = (int32_t)a.origin[1];
    inverse = 1.0f / how.radius, still = KIND != kPerspective && a.still;
#pragma unroll
    for (int c = 0; c < To::C; c++) fill[c] = saturate<In>(displace_fill(a, c));
  }
  DEVICE void begin_row(Row &row, const int32_t (&at)[To::N]) const {
    row.image = image;
#pragma unroll
    for (int c = 0; c < To::C; c++) row.outside[c] = fill[c];
#pragma unroll
    for (int d = 0; d < To::N; d++) {
      if (d == kX || d == kY) continue;
      row.image.data += at[d] * in.step[d], row.outside[0] = saturate<In>(displace_fill(*args, at[d]));
    }
    const int32_t y = at[kY] + origin[1];
    row.y = (float)y;
    if (KIND == kWater) row.shift = how.across(row.y);
    if (KIND == kJitter) row.pixel = (int64_t)y * args->extent[0] + origin[0];
  }
  DEVICE void begin_block(Memory &memory) const {
    if constexpr (KIND == kWater)
      for (int i = threadIdx.x; i < columns && i < kMostWaves; i += blockDim.x)
        memory.waves[i] = how.down((float)(i + origin[0]));
  }
  DEVICE void begin_strip(Memory &memory, const Row &row, int32_t strip) const {
    if constexpr (KIND == kJitter) {
      const int lane = threadIdx.x % 32;
      __syncwarp();
      if (lane < kJitterBlocks) {
        uint32_t w[4];
        jitter_words(*args, (uint32_t)(((row.pixel + strip) >> 2) + lane), w);
        memory.words[threadIdx.x / 32][lane] = make_uint4(w[0], w[1], w[2], w[3]);
      }
      __syncwarp();
    }
  }

  // Adds random steps of whole pixels.
  DEVICE void jitter(uint32_t word, float &u, float &v) const {
    u += jitter_step(word & 0xffff, args->range), v += jitter_step(word >> 16, args->range);
  }
  DEVICE void stay(const Row &row, float x, float &u, float &v) const {
    if (still) u = x + 0.5f, v = row.y + 0.5f;
  }
  DEVICE void ask(const Row &row, float u, float v, Fetched &fetched) const {
    float qx = 0, qy = 0;
    if constexpr (INTERP == kNearest && (KIND == kSphere || KIND == kJitter)) {  // never far outside
      fetched.begin(row.image, warp_floor(u), warp_floor(v), qx, qy);
      return;
    }
    const int32_t x = warp_split(u, 0, INTERP != kNearest, false, &qx);
    const int32_t y = warp_split(v, 0, INTERP != kNearest, false, &qy);
    fetched.begin(row.image, x, y, qx, qy);
  }
  DEVICE void begin_read(const Memory &memory, const Row &row, int32_t strip, int32_t column, Fetched &fetched) const {
    const float x = (float)(column + origin[0]);
    float u, v;
    if constexpr (KIND == kWater) {
      u = x + row.shift, v = row.y + (column < kMostWaves ? memory.waves[column] : how.down(x));
    } else if constexpr (KIND == kSphere) {
      how.sphere(x, row.y, inverse, &u, &v);
    } else {
      how.place(KIND, x, row.y, &u, &v);
    }
    if constexpr (KIND == kJitter) {
      const int64_t first = row.pixel + strip, p = row.pixel + column;
      const uint32_t *words = (const uint32_t *)memory.words[threadIdx.x / 32];
      jitter(words[(int)(p - (first & ~3ll))], u, v);
    }
    stay(row, x, u, v);
    ask(row, u, v, fetched);
  }
  DEVICE void begin_read_anywhere(const Row &row, int32_t column, Fetched &fetched) const {
    float u, v;
    how.place(KIND, (float)(column + origin[0]), row.y, &u, &v);
    if constexpr (KIND == kJitter) {
      const int64_t p = row.pixel + column;
      uint32_t words[4];
      jitter_words(*args, (uint32_t)(p >> 2), words);
      jitter(p & 2 ? (p & 1 ? words[3] : words[2]) : (p & 1 ? words[1] : words[0]), u, v);
    }
    stay(row, (float)(column + origin[0]), u, v);
    ask(row, u, v, fetched);
  }
  DEVICE void end_read(const Row &row, const Fetched &fetched, Out (&pixel)[To::C]) const {
    Out outside[To::C];
#pragma unroll
    for (int c = 0; c < To::C; c++) outside[c] = saturate<Out>(row.outside[c]);
    fetched.end(pixel, row.image, outside, row.outside);
  }
  DEVICE void read(const int32_t (&at)[To::N], Out (&pixel)[To::C]) const {
    Row row;
    Fetched fetched;
    begin_row(row, at);
    begin_read_anywhere(row, at[kX], fetched);
    end_read(row, fetched, pixel);
  }
};
