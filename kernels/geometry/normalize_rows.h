// SPDX-License-Identifier: Apache-2.0
// Inner loops of crop_mirror_normalize. Rows are converted through a row of floats, which needs one loop per input type
// and one per output type instead of one per pair. Interleaved pixels of three bytes, by far the most common input, are
// converted directly.
#pragma once
#include "core/kernel.h"
#include "geometry/crop_mirror_normalize.h"

// Reads n pixels of `channels` adjacent values, `stride` elements apart.
template <class In>
CLONES void read_row(float *__restrict out, const void *in, int64_t n, int64_t stride, int channels) {
  const In *__restrict x = static_cast<const In *>(in);
  if (stride == channels) {
    for (int64_t i = 0; i < n * channels; i++) out[i] = (float)x[i];
  } else if (channels == 1 && stride == 3) {  // constant strides vectorize
    for (int64_t i = 0; i < n; i++) out[i] = (float)x[3 * i];
  } else if (channels == 1 && stride == -3) {
    for (int64_t i = 0; i < n; i++) out[i] = (float)x[-3 * i];
  } else if (channels == 1 && stride == -1) {
    for (int64_t i = 0; i < n; i++) out[i] = (float)x[-i];
  } else {
    for (int64_t i = 0; i < n; i++)
      for (int c = 0; c < channels; c++) out[i * channels + c] = (float)x[i * stride + c];
  }
}

// Writes one channel.
template <class Out>
CLONES void write_planar(void *out, const float *__restrict in, int64_t n, float mean, float scale) {
  Out *__restrict o = static_cast<Out *>(out);
  for (int64_t i = 0; i < n; i++) o[i] = normalized<Out>(in[i], mean, scale);
}

// Writes n pixels of `channels` values, padded to `padded` values. `room`: n * padded values.
template <class Out>
CLONES void write_pixels(void *out, const float *__restrict in, int64_t n, int channels, int padded, const float *mean,
                         const float *scale, const void *fill, float *__restrict room) {
  Out *__restrict o = static_cast<Out *>(out);
  const Out *f = static_cast<const Out *>(fill);
  if (channels == 3 && padded == 3) {
    const float m[3] = {mean[0], mean[1], mean[2]}, s[3] = {scale[0], scale[1], scale[2]};
    for (int64_t i = 0; i < n; i++)
      for (int c = 0; c < 3; c++) o[3 * i + c] = normalized<Out>(in[3 * i + c], m[c], s[c]);
    return;
  }
  // Padded as floats, which hold the fill exactly, so that the conversion is a single loop.
  if (channels == 3 && padded == 4) {
    const float m[3] = {mean[0], mean[1], mean[2]}, s[3] = {scale[0], scale[1], scale[2]}, last = (float)f[3];
    for (int64_t i = 0; i < n; i++) {
      for (int c = 0; c < 3; c++) room[4 * i + c] = (in[3 * i + c] - m[c]) * s[c];
      room[4 * i + 3] = last;
    }
  } else {
    for (int64_t i = 0; i < n; i++) {
      for (int c = 0; c < channels; c++) room[i * padded + c] = (in[i * channels + c] - mean[c]) * scale[c];
      for (int c = channels; c < padded; c++) room[i * padded + c] = (float)f[c];
    }
  }
  for (int64_t i = 0; i < n * padded; i++) o[i] = saturate<Out>(room[i]);
}

// Writes n interleaved pixels of three bytes to three planes, `plane` elements apart.
template <class Out>
CLONES void split3_row(void *out, const uint8_t *__restrict x, int64_t n, int64_t plane, const float *mean,
                       const float *scale) {
  Out *__restrict o0 = static_cast<Out *>(out);
  Out *__restrict o1 = o0 + plane;
  Out *__restrict o2 = o1 + plane;
  const float m0 = mean[0], m1 = mean[1], m2 = mean[2], s0 = scale[0], s1 = scale[1], s2 = scale[2];
  if constexpr (DTypeOf<Out>::value == UINT8) {
    if (m0 == 0 && m1 == 0 && m2 == 0 && s0 == 1 && s1 == 1 && s2 == 1) {
      for (int64_t i = 0; i < n; i++) o0[i] = x[3 * i], o1[i] = x[3 * i + 1], o2[i] = x[3 * i + 2];
      return;
    }
  }
  for (int64_t i = 0; i < n; i++) {
    o0[i] = normalized<Out>(x[3 * i], m0, s0);
    o1[i] = normalized<Out>(x[3 * i + 1], m1, s1);
    o2[i] = normalized<Out>(x[3 * i + 2], m2, s2);
  }
}
