// SPDX-License-Identifier: Apache-2.0
// form: own
#include "core/gpu.h"
#include "filter/equalize.h"
#include "filter/gpu_histogram.h"

// Parts of an image with at most CHUNK bytes: C interleaved channels or, if C is 0, one of many channels.
template <int C, int CHUNK>
struct EqualizeParts {
  static constexpr int kSide = C ? C : 1;  // histograms per part
  static constexpr int64_t kPixels = CHUNK / kSide;
  ByteImage image;
  int64_t per_set, n;  // parts with the same histograms; all parts
  DEVICE EqualizeParts(const Tensor &x, int axis) : image(x, axis) {
    per_set = (image.pixels + kPixels - 1) / kPixels;
    n = image.pixels ? image.planes * image.channels / kSide * per_set : 0;
  }
  // Calls f(set, first element, pixels) for the parts of this block of threads.
  template <class F>
  DEVICE void each(const F &f) const {
    for (int64_t i = blockIdx.x; i < n; i += gridDim.x) {
      const int64_t set = i / per_set, pixel = (i - set * per_set) * kPixels;
      const int64_t left = image.pixels - pixel, sets = image.channels / kSide, plane = set / sets;
      const int64_t first = (plane * image.pixels + pixel) * image.channels + (set - plane * sets) * kSide;
      f(set, first, left < kPixels ? left : kPixels);
    }
  }
};

// Histograms of a sample; there is room for MOST of them.
template <int MOST>
DEVICE uint32_t *equalize_counts(const Launch &l, int sample) {
  return (uint32_t *)l.scratch + (int64_t)sample * MOST * 256;
}

DEVICE int equalize_axis(const Launch &l, int sample) { return ((const EqualizeArgs *)l.args[0])[sample].axis; }

template <int C, int CHUNK, int MOST>
DEVICE void equalize_count(const Launch &l) {
  constexpr int kSide = C ? C : 1;
  FOR_SAMPLES(sample, l) {
    const Tensor x = l.tensors[1][sample];
    const EqualizeParts<C, CHUNK> parts(x, equalize_axis(l, sample));
    parts.each([&](int64_t set, int64_t first, int64_t pixels) {
      count_block<kSide>(x.as<uint8_t>() + first, pixels, C ? C : parts.image.channels,
                         equalize_counts<MOST>(l, sample) + set * kSide * 256);
    });
  }
}

// Makes the table of a histogram with a block of 256 threads, one per value v.
DEVICE void equalize_table(uint8_t *table, uint32_t count, uint32_t pixels) {
  __shared__ uint32_t of_first;
  const int v = threadIdx.x;
  const uint32_t sum = sum_to_here(count);
  const bool first = count && sum == count;
  if (first) of_first = count;
  __syncthreads();
  uint8_t y = 0;
  if (of_first == pixels)  // a single value is kept
    y = first ? (uint8_t)v : 0;
  else if (sum > of_first)
    y = equalized((int32_t)(sum - of_first), 255.0f / (float)(pixels - of_first));
  table[v] = y;
  __syncthreads();
}

template <int C, int CHUNK, int MOST>
DEVICE void equalize_apply(const Launch &l) {
  constexpr int kSide = C ? C : 1;
  __shared__ uint8_t tables[kSide * 256];
  FOR_SAMPLES(sample, l) {
    const Tensor x = l.tensors[1][sample];
    uint8_t *out = l.tensors[0][sample].as<uint8_t>();
    const EqualizeParts<C, CHUNK> parts(x, equalize_axis(l, sample));
    parts.each([&](int64_t set, int64_t first, int64_t pixels) {
      const uint32_t *counts = equalize_counts<MOST>(l, sample) + set * kSide * 256;
      __syncthreads();
      for (int c = 0; c < kSide; c++)
        equalize_table(tables + c * 256, counts[c * 256 + threadIdx.x], (uint32_t)parts.image.pixels);
      look_up_block<kSide>(out + first, x.as<uint8_t>() + first, pixels, C ? C : parts.image.channels, tables);
    });
  }
}
