// SPDX-License-Identifier: Apache-2.0
#include "color/color_space.h"

#include <cstring>

#include "color/planes.h"
#include "core/kernel.h"

using Pixels = uint8_t *__restrict;
using ConstPixels = const uint8_t *__restrict;

// BGR is RGB with the outer planes exchanged: `swap` says so.
CLONES static void rgb_ycbcr(Pixels out, ConstPixels in, int64_t n_pixels, bool swap) {
  Planes<uint8_t> from, to;
  const uint8_t *red = swap ? from.c : from.a, *blue = swap ? from.a : from.c;
  for_blocks(
      n_pixels, [&](int64_t first, int n) __attribute__((always_inline)) {
        from.load(in + 3 * first, n);
        for (int i = 0; i < n; i++) {
          float r = red[i], g = from.b[i], b = blue[i];
          to.a[i] = rgb_to_y(r, g, b);
          to.b[i] = rgb_to_cb(r, g, b);
          to.c[i] = rgb_to_cr(r, g, b);
        }
        to.store(out + 3 * first, n);
      });
}

CLONES static void ycbcr_rgb(Pixels out, ConstPixels in, int64_t n_pixels, bool swap) {
  Planes<uint8_t> from, to;
  uint8_t *red = swap ? to.c : to.a, *blue = swap ? to.a : to.c;
  for_blocks(
      n_pixels, [&](int64_t first, int n) __attribute__((always_inline)) {
        from.load(in + 3 * first, n);
        for (int i = 0; i < n; i++) {
          float y = from.a[i], cb = from.b[i], cr = from.c[i];
          red[i] = ycbcr_to_r(y, cb, cr);
          to.b[i] = ycbcr_to_g(y, cb, cr);
          blue[i] = ycbcr_to_b(y, cb, cr);
        }
        to.store(out + 3 * first, n);
      });
}

CLONES static void rgb_gray(Pixels out, ConstPixels in, int64_t n_pixels, bool swap) {
  Planes<uint8_t> from;
  const uint8_t *red = swap ? from.c : from.a, *blue = swap ? from.a : from.c;
  GrayWeights weights;
  asm("" : "+m"(weights));  // Known weights would become shifts and additions, which are slower.
  for_blocks(
      n_pixels, [&](int64_t first, int n) __attribute__((always_inline)) {
        from.load(in + 3 * first, n);
        for (int i = 0; i < n; i++) out[first + i] = rgb_to_gray(red[i], from.b[i], blue[i], weights);
      });
}

typedef uint8_t Bytes __attribute__((vector_size(16)));

// Five pixels at a time: the sixteenth byte written is wrong until the next five are.
CLONES static void exchange(Pixels out, ConstPixels in, int64_t n_pixels) {
  const Bytes order = {2, 1, 0, 5, 4, 3, 8, 7, 6, 11, 10, 9, 14, 13, 12, 15};
  int64_t i = 0, n = 3 * n_pixels;
  for (; i + 16 <= n; i += 15) {
    Bytes x;
    std::memcpy(&x, in + i, sizeof x);
    x = __builtin_shuffle(x, order);
    std::memcpy(out + i, &x, sizeof x);
  }
  for (; i < n; i += 3) out[i] = in[i + 2], out[i + 1] = in[i + 1], out[i + 2] = in[i];
}

CLONES static void ycbcr_gray(Pixels out, ConstPixels in, int64_t n_pixels) {
  for (int64_t i = 0; i < n_pixels; i++) out[i] = y_to_gray(in[3 * i]);
}

CLONES static void gray_rgb(Pixels out, ConstPixels in, int64_t n_pixels) {
  for (int64_t i = 0; i < n_pixels; i++) out[3 * i] = out[3 * i + 1] = out[3 * i + 2] = in[i];
}

CLONES static void gray_ycbcr(Pixels out, ConstPixels in, int64_t n_pixels) {
  for (int64_t i = 0; i < n_pixels; i++) out[3 * i] = gray_to_y(in[i]), out[3 * i + 1] = out[3 * i + 2] = 128;
}

static void run(const Tensor *out, const Tensor *in, const ColorSpaceArgs &a, Scratch &) {
  uint8_t *o = out->as<uint8_t>();
  const uint8_t *x = in->as<uint8_t>();
  int64_t n = in->volume() / (a.from == GRAY ? 1 : 3);
  if (a.from == a.to) {
    if (n) std::memcpy(o, x, in->volume());
  } else if (a.from == GRAY) {
    a.to == YCBCR ? gray_ycbcr(o, x, n) : gray_rgb(o, x, n);
  } else if (a.from == YCBCR) {
    a.to == GRAY ? ycbcr_gray(o, x, n) : ycbcr_rgb(o, x, n, a.to == BGR);
  } else if (a.to == YCBCR) {
    rgb_ycbcr(o, x, n, a.from == BGR);
  } else if (a.to == GRAY) {
    rgb_gray(o, x, n, a.from == BGR);
  } else {
    exchange(o, x, n);
  }
}

EXPORT_KERNEL(color_space, ColorSpaceArgs, run)
