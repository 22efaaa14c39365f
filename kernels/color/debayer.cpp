// SPDX-License-Identifier: Apache-2.0
#include "color/debayer.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "color/debayer_vng.h"
#include "color/interleave.h"
#include "core/kernel.h"

// The mean of two values, rounded up: one vector instruction.
template <class T>
static inline T mean_up(T a, T b) {
  return (T)((a + b + 1) >> 1);
}
// The rounded mean of four values without wider types. The mean of two means is one too large if their sum is odd and
// one of them was rounded up.
template <class T>
static inline T mean4(T a, T b, T c, T d) {
  const T x = mean_up(a, b), y = mean_up(c, d);
  return (T)(mean_up(x, y) - (((a ^ b) | (c ^ d)) & (x ^ y) & 1));
}

// A row of each colour: that of the row's elements that are not green, green, and the third one.
template <class T>
struct Planes {
  T *__restrict own, *__restrict green, *__restrict other;
};

// How means are rounded: to the nearest, or down as in NPP.
enum Rounding { NEAREST, DOWN_BY_COLUMNS, DOWN_BY_ROWS };

// Columns [0, n) of the row rows[2]; rows[1] and rows[3] are the rows above and below. All rows have two more columns
// on each side. `is_green`: all ones or zero per column.
template <Rounding kRounding, class T, class Green>
static inline __attribute__((always_inline)) void colors(Planes<T> out, const T *const (&rows)[5], int64_t n,
                                                         const T *__restrict is_green, Green green) {
  const T *__restrict up = rows[1], *__restrict in = rows[2], *__restrict down = rows[3];
  for (int64_t x = 0; x < n; x++) {
    const int32_t up_to = kRounding == NEAREST;
    const T side = (T)((in[x - 1] + in[x + 1] + up_to) >> 1), above = (T)((up[x] + down[x] + up_to) >> 1);
    const T nw = up[x - 1], ne = up[x + 1], sw = down[x - 1], se = down[x + 1];
    const T corners =
        kRounding == NEAREST ? mean4(nw, ne, sw, se) : (T)corners_chroma(nw, ne, sw, se, kRounding == DOWN_BY_ROWS);
    const T g = green(side, above, x);
    const T m = is_green[x], v = in[x];
    out.own[x] = (T)((side & m) | (v & ~m));
    out.green[x] = (T)((v & m) | (g & ~m));
    out.other[x] = (T)((above & m) | (corners & ~m));
  }
}

template <class T>
CLONES static void bilinear(Planes<T> out, const T *const (&rows)[5], int64_t n, const T *is_green) {
  const T *up = rows[1], *in = rows[2], *down = rows[3];
  colors<NEAREST>(out, rows, n, is_green, [=](T, T, int64_t x) { return mean4(in[x - 1], in[x + 1], up[x], down[x]); });
}
template <class T>
CLONES static void edge_aware(Planes<T> out, const T *const (&rows)[5], int64_t n, const T *is_green) {
  const T *up = rows[1], *in = rows[2], *down = rows[3];
  colors<NEAREST>(out, rows, n, is_green, [=](T side, T above, int64_t x) {
    const T across = (T)(in[x - 1] > in[x + 1] ? in[x - 1] - in[x + 1] : in[x + 1] - in[x - 1]);
    const T along = (T)(up[x] > down[x] ? up[x] - down[x] : down[x] - up[x]);
    return along < across ? above : side;
  });
}
template <class T, Rounding kRounding>
CLONES static void chroma(Planes<T> out, const T *const (&rows)[5], int64_t n, const T *is_green) {
  typedef std::conditional_t<sizeof(T) == 1, int16_t, int32_t> Wide;
  const T *up2 = rows[0], *in = rows[2], *down2 = rows[4];
  colors<kRounding>(out, rows, n, is_green, [=](T side, T above, int64_t x) {
    const Wide across = (Wide)(2 * in[x] - in[x - 2] - in[x + 2]), along = (Wide)(2 * in[x] - up2[x] - down2[x]);
    const Wide a = (Wide)(across < 0 ? -across : across), b = (Wide)(along < 0 ? -along : along);
    const T all = (T)mean2_down(side, above);
    return a < b ? side : b < a ? above : all;
  });
}
// (a * p + b * q + c * r) / 2^16, rounded. The first overload needs 16 bits only: it adds the upper halves of the
// products and the carries of the lower halves.
static inline __attribute__((always_inline)) uint16_t weighted(uint16_t a, uint16_t b, uint16_t c, uint16_t p,
                                                               uint16_t q, uint16_t r) {
  const uint16_t upper = (uint16_t)((uint16_t)((uint32_t)a * p >> 16) + (uint16_t)((uint32_t)b * q >> 16) +
                                    (uint16_t)((uint32_t)c * r >> 16));
  const uint16_t x = (uint16_t)(a * p), y = (uint16_t)(b * q), z = (uint16_t)(c * r);
  const uint16_t two = (uint16_t)(x + y), all = (uint16_t)(two + z);
  return (uint16_t)(upper + (uint16_t)(two < x) + (uint16_t)(all < z) + (all >> 15));
}
static inline __attribute__((always_inline)) uint32_t weighted(uint32_t a, uint32_t b, uint32_t c, uint32_t p,
                                                               uint32_t q, uint32_t r) {
  return (a * p + b * q + c * r + (1u << 15)) >> 16;
}

// luma[x]: weight of the colour of element x; luma[x + 1]: of the elements beside it. `other`: of the third colour.
template <class T>
CLONES static void gray(T *__restrict out, const T *const (&rows)[5], int64_t n, const T *__restrict is_green,
                        const uint16_t *__restrict luma, uint16_t other) {
  typedef std::conditional_t<sizeof(T) == 1, uint16_t, uint32_t> Sum;
  const T *__restrict up = rows[1], *__restrict in = rows[2], *__restrict down = rows[3];
  for (int64_t x = 0; x < n; x++) {
    // All sums are four times a colour.
    const Sum m = is_green[x] ? (Sum)-1 : (Sum)0, side = (Sum)(in[x - 1] + in[x + 1]), above = (Sum)(up[x] + down[x]);
    const Sum corners = (Sum)(up[x - 1] + up[x + 1] + down[x - 1] + down[x + 1]), v = (Sum)(4 * in[x]);
    const Sum near = (Sum)(side + (Sum)((side & m) | (above & ~m)));
    const Sum far = (Sum)(((Sum)(2 * above) & m) | (corners & ~m));
    out[x] = (T)weighted(v, near, far, (Sum)luma[x], (Sum)luma[x + 1], (Sum)other);
  }
}

// `factor`: about 1/14, per column.
CLONES static void gradients(Planes<uint8_t> out, const uint8_t *const (&rows)[5], int64_t n,
                             const uint8_t *__restrict is_green, const float *__restrict factor) {
  const uint8_t *__restrict r0 = rows[0], *__restrict r1 = rows[1], *__restrict r2 = rows[2], *__restrict r3 = rows[3],
                            *__restrict r4 = rows[4];
  for (int64_t x = 0; x < n; x++) {
    const auto at = [&](int dy, int dx) __attribute__((always_inline)) {
      return (int16_t)(dy == -2 ? r0 : dy == -1 ? r1 : dy == 0 ? r2 : dy == 1 ? r3 : r4)[x + dx];
    };
    const VngColors g = vng<true>(at, factor[x]), c = vng<false>(at, factor[x]);
    const uint8_t m = is_green[x], v = r2[x];
    out.own[x] = (uint8_t)((g.a & m) | (v & ~m));
    out.green[x] = (uint8_t)((v & m) | (c.a & ~m));
    out.other[x] = (uint8_t)((g.b & m) | (c.b & ~m));
  }
}

template <class T>
static void debayer(const Tensor &out, const Tensor &in, const DebayerArgs &a, Scratch &scratch) {
  const int64_t h = in.shape[0], w = in.shape[1], channels = a.algorithm == BAYER_GRAY ? 1 : 3, line = w * channels;
  const bool is_vng = a.algorithm == BAYER_VNG && std::min(h, w) >= kVngSmallest;
  const bool mirrors = a.algorithm == BAYER_CHROMA || is_vng;
  T *to = out.as<T>();
  const T *from = in.as<T>();
  if (!mirrors && (h < 3 || w < 3)) {
    if (h > 0 && w > 0) memset(to, 0, h * line * sizeof(T));
    return;
  }
  // Loops process whole vectors; columns from w on are not used.
  const int64_t padded = (w + 63) / 64 * 64;
  // Masks: ones at even columns (masks[0]) or at odd columns (masks[1], one element on). Then the planes of a row.
  T *const all = scratch.array<T>(5 * (w + 64), 1), *const masks[2] = {all, all + 1};
  for (int64_t x = 0; x <= padded; x++) all[x] = x & 1 ? (T)0 : (T)-1;
  uint16_t *const weights = scratch.array<uint16_t>(2 * (padded + 2), 2);  // for red rows, then for blue rows
  for (int64_t x = 0; x < padded + 2; x++) {
    weights[x] = x & 1 ? kLumaRed : kLumaGreen;
    weights[padded + 2 + x] = x & 1 ? kLumaBlue : kLumaGreen;
  }
  const Planes<T> planes = {all + 2 * (w + 64), all + 3 * (w + 64), all + 4 * (w + 64)};
  float *const factor = is_vng ? scratch.array<float>(padded, 3) : nullptr;
  // A ring of five rows with two more columns on each side.
  const int64_t step = padded + 64;
  T *buffer = scratch.array<T>(5 * step);
  int64_t next = 0;  // the first row not in the buffer yet; the first of all is -2
  const auto row = [&](int64_t y) { return buffer + (y + 2) % 5 * step + 2; };
  for (int64_t y = 0; y < h; y++) {
    for (; next < y + 5; next++) {
      T *b = row(next - 2);
      memcpy(b, from + (int64_t)mirrored((int32_t)next - 2, (int32_t)h) * w, w * sizeof(T));
      for (int32_t x : {-2, -1, (int32_t)w, (int32_t)w + 1}) b[x] = b[mirrored(x, (int32_t)w)];
    }
    if (!mirrors && (y == 0 || y == h - 1)) continue;
    const T *const rows[5] = {row(y - 2), row(y - 1), row(y), row(y + 1), row(y + 2)};
    const bool red = (y & 1) == a.row;
    const T *const is_green = masks[red ? 1 - a.column : a.column];
    T *const y_out = to + y * line;
    if (a.algorithm == BAYER_GRAY) {
      const uint16_t *luma = weights + (red ? 0 : padded + 2) + (is_green == masks[0] ? 0 : 1);
      gray(planes.own, rows, padded, is_green, luma, red ? kLumaBlue : kLumaRed);
      memcpy(y_out, planes.own, line * sizeof(T));
    } else {
      if (is_vng) {
        const int32_t first = is_green[0] ? 1 : 0;
        for (int64_t x = 0; x < padded; x++)
          factor[x] = in_vectors((int32_t)x, (int32_t)w, first) ? 1.f / 14 : kSeventh;
        if constexpr (sizeof(T) == 1) gradients(planes, rows, padded, is_green, factor);
      } else {
        (a.algorithm == BAYER_EDGE_AWARE ? edge_aware<T>
         : a.algorithm != BAYER_CHROMA   ? bilinear<T>
         : y & 1                         ? chroma<T, DOWN_BY_ROWS>
                                         : chroma<T, DOWN_BY_COLUMNS>)(planes, rows, padded, is_green);
      }
      interleave(red ? planes.own : planes.other, planes.green, red ? planes.other : planes.own, w, y_out);
    }
    if (mirrors) continue;
    std::copy_n(y_out + channels, channels, y_out);
    std::copy_n(y_out + (w - 2) * channels, channels, y_out + (w - 1) * channels);
  }
  if (mirrors) return;
  memcpy(to, to + line, line * sizeof(T));
  memcpy(to + (h - 1) * line, to + (h - 2) * line, line * sizeof(T));
}

static void run(const Tensor *out, const Tensor *in, const DebayerArgs &a, Scratch &scratch) {
  for_types<uint8_t, uint16_t>(in->dtype, [&](auto t) { debayer<decltype(t)>(*out, *in, a, scratch); });
}

EXPORT_KERNEL(debayer, DebayerArgs, run)
