// SPDX-License-Identifier: Apache-2.0
// RGB to L*a*b* and back for many pixels: look-ups and arithmetic alternate, so that the arithmetic becomes SIMD.
#pragma once
#include "core/kernel.h"
#include "filter/lab.h"

constexpr int64_t kLabRun = 512;  // pixels whose intermediate results fit in the L1 cache

inline void look_up_entries(int32_t *to, const int32_t *from, int64_t n, const uint16_t *table) {
  for (int64_t i = 0; i < n; i++) to[i] = table[from[i]];
}

CLONES static void xyz_of(int32_t *__restrict xyz, const int32_t *__restrict rgb, int64_t n, const int32_t *rows) {
  const int32_t m[9] = {rows[0], rows[1], rows[2], rows[3], rows[4], rows[5], rows[6], rows[7], rows[8]};
  for (int64_t i = 0; i < n; i++) {
    const int32_t r = rgb[i], g = rgb[kLabRun + i], b = rgb[2 * kLabRun + i];
    xyz[i] = lab_xyz(r, g, b, m);
    xyz[kLabRun + i] = lab_xyz(r, g, b, m + 3);
    xyz[2 * kLabRun + i] = lab_xyz(r, g, b, m + 6);
  }
}

CLONES static void lab_of(uint8_t *__restrict l, uint8_t *__restrict a, uint8_t *__restrict b,
                          const int32_t *__restrict f, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    const Lab x = lab_of_roots(f[i], f[kLabRun + i], f[2 * kLabRun + i]);
    l[i] = x.l, a[i] = x.a, b[i] = x.b;
  }
}

CLONES static void linear_of(int32_t *__restrict rgb, const int32_t *__restrict y, const int32_t *__restrict fy,
                             const uint8_t *__restrict a, const uint8_t *__restrict b, int64_t n, const int32_t *rows) {
  const int32_t m[9] = {rows[0], rows[1], rows[2], rows[3], rows[4], rows[5], rows[6], rows[7], rows[8]};
  for (int64_t i = 0; i < n; i++) {
    const int32_t x = lab_x(fy[i], a[i]), z = lab_z(fy[i], b[i]);
    rgb[i] = lab_linear(x, y[i], z, m);
    rgb[kLabRun + i] = lab_linear(x, y[i], z, m + 3);
    rgb[2 * kLabRun + i] = lab_linear(x, y[i], z, m + 6);
  }
}

// RGB pixels to planes of L, a and b.
inline void rgb_to_lab(uint8_t *l, uint8_t *a, uint8_t *b, const uint8_t *rgb, int64_t n, const uint16_t *tables,
                       const int32_t *forward) {
  alignas(64) int32_t x[3 * kLabRun], y[3 * kLabRun];
  for (int64_t begin = 0; begin < n; begin += kLabRun) {
    const int64_t m = n - begin < kLabRun ? n - begin : kLabRun;
    const uint8_t *p = rgb + 3 * begin;
    for (int64_t i = 0; i < m; i++)
      for (int c = 0; c < 3; c++) x[c * kLabRun + i] = tables[LAB_LINEAR + p[3 * i + c]];
    xyz_of(y, x, m, forward);
    for (int c = 0; c < 3; c++) look_up_entries(x + c * kLabRun, y + c * kLabRun, m, tables + LAB_ROOT);
    lab_of(l + begin, a + begin, b + begin, x, m);
  }
}

inline void lab_to_rgb(uint8_t *rgb, const uint8_t *l, const uint8_t *a, const uint8_t *b, int64_t n,
                       const uint16_t *tables, const int32_t *backward) {
  alignas(64) int32_t x[3 * kLabRun], y[kLabRun], fy[kLabRun];
  for (int64_t begin = 0; begin < n; begin += kLabRun) {
    const int64_t m = n - begin < kLabRun ? n - begin : kLabRun;
    for (int64_t i = 0; i < m; i++) y[i] = tables[LAB_Y + l[begin + i]], fy[i] = tables[LAB_F + l[begin + i]];
    linear_of(x, y, fy, a + begin, b + begin, m, backward);
    uint8_t *p = rgb + 3 * begin;
    for (int64_t i = 0; i < m; i++)
      for (int c = 0; c < 3; c++) p[3 * i + c] = (uint8_t)tables[LAB_GAMMA + x[c * kLabRun + i]];
  }
}
