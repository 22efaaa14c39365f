// SPDX-License-Identifier: Apache-2.0
// form: own
// One launch per step for the whole batch; each sample does its own step. If any sample's step depends on the whole
// image, two launches before it count the values and make tables.
#include "augment/augment.h"
#include "color/color_matrix.h"
#include "core/gpu.h"

constexpr int kSharedChannels = 4;  // images with at most this many channels are counted in shared memory

// Layout of Launch::scratch: images between steps, then the counts of all steps, then the tables of all steps.
struct AugmentScratch {
  AugmentArgs a;
  uint8_t *base;
  int n;
  DEVICE AugmentScratch(const Launch &l, int sample)
      : a(((const AugmentArgs *)l.args[0])[sample]), base((uint8_t *)l.scratch), n(l.n) {}
  DEVICE int64_t buffers() const { return a.n_steps < 3 ? a.n_steps - 1 : 2; }
  DEVICE int64_t entries() const { return (int64_t)a.channels * 256; }
  DEVICE uint8_t *image(int which, int sample) const { return base + ((int64_t)which * n + sample) * a.image_bytes; }
  DEVICE uint32_t *counts(int step, int sample) const {
    return (uint32_t *)image((int)buffers(), 0) + ((int64_t)step * n + sample) * entries();
  }
  DEVICE uint8_t *tables(int step, int sample) const {
    return (uint8_t *)counts(a.n_steps, 0) + ((int64_t)step * n + sample) * entries();
  }
  DEVICE const float *step(int i) const { return a.steps + i * kStepFloats; }
  DEVICE const uint8_t *input(const Launch &l, int i, int sample) const {
    return i == 0 ? l.tensors[1][sample].as<uint8_t>() : image((i - 1) % 2, sample);
  }
  DEVICE uint8_t *output(const Launch &l, int i, int sample) const {
    return i == a.n_steps - 1 ? l.tensors[0][sample].as<uint8_t>() : image(i % 2, sample);
  }
};

DEVICE void augment_clear(const Launch &l) {
  const AugmentScratch s(l, 0);
  uint32_t *counts = s.counts(0, 0);
  const int64_t n = (int64_t)s.a.n_steps * l.n * s.entries();
  for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (int64_t)gridDim.x * blockDim.x)
    counts[i] = 0;
}

// Calls f(i, byte) for this thread's bytes of an image. Aligned images are read 16 bytes at a time.
template <class F>
DEVICE void each_byte(const uint8_t *in, int64_t n, const F &f) {
  const int64_t thread = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, threads = (int64_t)gridDim.x * blockDim.x;
  const int64_t blocks = (uint64_t)in % 16 == 0 ? n / 16 : 0;
  for (int64_t b = thread; b < blocks; b += threads) {
    const uint4 four = ((const uint4 *)in)[b];
    const uint32_t words[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
    for (int i = 0; i < 16; i++) f(16 * b + i, (int)(words[i / 4] >> (i % 4 * 8) & 255));
  }
  for (int64_t i = 16 * blocks + thread; i < n; i += threads) f(i, (int)in[i]);
}

DEVICE void augment_count(const Launch &l, int step) {
  __shared__ uint32_t shared[kSharedChannels * 256];
  FOR_SAMPLES(sample, l) {
    const AugmentScratch s(l, sample);
    if (!augment_needs_image(augment_kind(s.step(step)))) continue;
    const Tensor t = l.tensors[1][sample];
    const int channels = (int)t.shape[2];
    uint32_t *counts = s.counts(step, sample);
    const bool fits = channels <= kSharedChannels;
    if (fits) {
      __syncthreads();
      for (int i = threadIdx.x; i < channels * 256; i += blockDim.x) shared[i] = 0;
      __syncthreads();
      each_byte(s.input(l, step, sample), volume_of(t),
                [&](int64_t i, int v) { atomicAdd(&shared[(int)((uint32_t)i % (uint32_t)channels) * 256 + v], 1u); });
      __syncthreads();
      for (int i = threadIdx.x; i < channels * 256; i += blockDim.x)
        if (shared[i]) atomicAdd(&counts[i], shared[i]);
    } else {
      each_byte(s.input(l, step, sample), volume_of(t),
                [&](int64_t i, int v) { atomicAdd(&counts[i % channels * 256 + v], 1u); });
    }
  }
}

// One block of 256 threads per sample, one thread per table entry.
DEVICE void augment_tables(const Launch &l, int step) {
  __shared__ uint32_t below[256];
  __shared__ unsigned long long sums[3];
  __shared__ int lo, hi;
  const int v = threadIdx.x;
  FOR_SAMPLES(sample, l) {
    const AugmentScratch s(l, sample);
    const float *at = s.step(step);
    const int kind = augment_kind(at);
    if (!augment_needs_image(kind)) continue;
    const Tensor t = l.tensors[1][sample];
    const int channels = (int)t.shape[2];
    const int64_t n_pixels = t.shape[0] * t.shape[1];
    const uint32_t *counts = s.counts(step, sample);
    uint8_t *tables = s.tables(step, sample);
    if (kind == AUGMENT_CONTRAST) {
      __syncthreads();
      if (v < 3) sums[v] = 0;
      __syncthreads();
      for (int c = 0; c < channels && c < 3; c++)
        if (counts[c * 256 + v]) atomicAdd(&sums[c], (unsigned long long)counts[c * 256 + v] * (unsigned long long)v);
      __syncthreads();
      const uint8_t y = augment_contrast(augment_luma(sums, channels, n_pixels), at[1], v);
      for (int c = 0; c < channels; c++) tables[c * 256 + v] = y;
      continue;
    }
    for (int c = 0; c < channels; c++) {
      const uint32_t count = counts[c * 256 + v];
      __syncthreads();
      if (v == 0) lo = 255, hi = 0;
      below[v] = count;
      __syncthreads();
      if (count) atomicMin(&lo, v), atomicMax(&hi, v);
      __syncthreads();
      if (kind == AUGMENT_AUTO_CONTRAST) {
        tables[c * 256 + v] = augment_stretch(lo, hi, v > lo ? v : lo);
        continue;
      }
      // Inclusive prefix sum of the counts.
      for (int by = 1; by < 256; by *= 2) {
        const uint32_t more = v >= by ? below[v - by] : 0;
        __syncthreads();
        below[v] += more;
        __syncthreads();
      }
      const uint32_t first = below[lo], all = (uint32_t)n_pixels;
      if (first == all)
        tables[c * 256 + v] = (uint8_t)lo;
      else
        tables[c * 256 + v] = v <= lo ? 0 : augment_spread(below[v] - first, 255.0f / (float)(all - first));
    }
  }
}

struct AugmentImage {
  const uint8_t *in;
  int32_t height, width, channels;
  DEVICE const uint8_t *at(int32_t y, int32_t x) const { return in + ((int64_t)y * width + x) * channels; }
};

DEVICE void augment_warped(uint8_t *out, const AugmentImage &im, const WarpArgs &w, int32_t y, int32_t x) {
  const float fy = (float)y;
  float weight[2];
  const float cx = warp_coordinate(w.matrix[0], x, warp_rest(w.matrix, 2, fy, 0));
  const float cy = warp_coordinate(w.matrix[3], x, warp_rest(w.matrix + 3, 2, fy, 0));
  const int32_t x0 = warp_split(cx, im.width, w.linear, w.clamp, weight);
  const int32_t y0 = warp_split(cy, im.height, w.linear, w.clamp, weight + 1);
  const uint8_t fill = saturate<uint8_t>(w.fill);
  const uint8_t *tap[4];
#pragma unroll
  for (int i = 0; i < 4; i++) {
    int32_t tx = x0 + (i & 1), ty = y0 + (i >> 1);
    const bool inside = tx >= 0 && tx < im.width && ty >= 0 && ty < im.height;
    tx = tx < 0 ? 0 : tx < im.width ? tx : im.width - 1;
    ty = ty < 0 ? 0 : ty < im.height ? ty : im.height - 1;
    tap[i] = inside || w.clamp ? im.at(ty, tx) : nullptr;
  }
  for (int c = 0; c < im.channels; c++) {
    const uint8_t a = tap[0] ? load(tap[0] + c) : fill;
    if (!w.linear) {
      out[c] = a;
      continue;
    }
    const float b = (float)(tap[1] ? load(tap[1] + c) : fill);
    const float d = (float)(tap[2] ? load(tap[2] + c) : fill), e = (float)(tap[3] ? load(tap[3] + c) : fill);
    out[c] = saturate<uint8_t>(warp_mix(warp_mix_x((float)a, b, weight[0]), warp_mix_x(d, e, weight[0]), weight[1]));
  }
}

DEVICE void augment_filtered(uint8_t *out, const AugmentImage &im, const float *k, bool even, int32_t y, int32_t x) {
  const uint8_t *tap[9];
#pragma unroll
  for (int i = 0; i < 9; i++)
    tap[i] =
        im.at((int32_t)augment_reflect(y + i / 3 - 1, im.height), (int32_t)augment_reflect(x + i % 3 - 1, im.width));
  for (int c = 0; c < im.channels; c++) {
    if (even) {
      int sum = 0;
#pragma unroll
      for (int i = 0; i < 9; i++) sum += i == 4 ? 0 : (int)load(tap[i] + c);
      out[c] = augment_filter_even(sum, load(tap[4] + c), k[0], k[4]);
    } else {
      float v = 0;
#pragma unroll
      for (int r = 0; r < 3; r++) {
        const float row = (float)load(tap[3 * r] + c) * k[3 * r] + (float)load(tap[3 * r + 1] + c) * k[3 * r + 1] +
                          (float)load(tap[3 * r + 2] + c) * k[3 * r + 2];
        v = r == 0 ? row : v + row;
      }
      out[c] = saturate<uint8_t>(v);
    }
  }
}

// Maps each byte through its channel's table, or copies the bytes if `tables` is null.
DEVICE void augment_looked_up(uint8_t *out, const uint8_t *in, int64_t n, const uint8_t *tables, int channels) {
  const bool aligned = ((uint64_t)in | (uint64_t)out) % 16 == 0;
  const int64_t thread = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, threads = (int64_t)gridDim.x * blockDim.x;
  const int64_t blocks = aligned ? n / 16 : 0;
  for (int64_t b = thread; b < blocks; b += threads) {
    uint4 four = ((const uint4 *)in)[b];
    if (tables) {
      uint32_t words[4] = {four.x, four.y, four.z, four.w};
      int c = (int)((uint64_t)(16 * b) % (uint32_t)channels);
#pragma unroll
      for (int i = 0; i < 4; i++) {
        uint32_t word = 0;
#pragma unroll
        for (int j = 0; j < 4; j++) {
          word |= (uint32_t)tables[c * 256 + (words[i] >> (8 * j) & 255)] << (8 * j);
          c = c + 1 == channels ? 0 : c + 1;
        }
        words[i] = word;
      }
      four.x = words[0], four.y = words[1], four.z = words[2], four.w = words[3];
    }
    ((uint4 *)out)[b] = four;
  }
  for (int64_t i = 16 * blocks + thread; i < n; i += threads)
    out[i] = tables ? tables[i % channels * 256 + in[i]] : in[i];
}

DEVICE void augment_apply(const Launch &l, int step) {
  __shared__ uint8_t shared[kSharedChannels * 256];
  FOR_SAMPLES(sample, l) {
    const AugmentScratch s(l, sample);
    const Tensor t = l.tensors[1][sample];
    const AugmentImage im = {s.input(l, step, sample), (int32_t)t.shape[0], (int32_t)t.shape[1], (int32_t)t.shape[2]};
    uint8_t *out = s.output(l, step, sample);
    const float *at = s.step(step);
    const int kind = augment_kind(at);
    const int64_t n_pixels = t.shape[0] * t.shape[1], n = n_pixels * im.channels;
    if (n == 0) continue;
    if (kind == AUGMENT_NOTHING) {
      augment_looked_up(out, im.in, n, nullptr, 1);
      continue;
    }
    if (augment_is_table(kind)) {
      const bool per_channel = augment_is_per_channel(kind), fits = im.channels <= kSharedChannels || !per_channel;
      const int size = per_channel ? im.channels * 256 : 256;
      const uint8_t *made = s.tables(step, sample);
      if (fits) {
        __syncthreads();
        for (int v = threadIdx.x; v < size; v += blockDim.x)
          shared[v] = augment_needs_image(kind) ? made[v] : augment_entry(kind, at[1], v);
        __syncthreads();
      }
      augment_looked_up(out, im.in, n, fits ? shared : made, per_channel ? im.channels : 1);
      continue;
    }
    WarpArgs w;
    float k[9];
    for (int i = 0; i < 9; i++) k[i] = at[1 + i];
    if (kind == AUGMENT_WARP) augment_warp(&w, s.a, at, im.height, im.width);
    const bool even = augment_is_even(k);
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n_pixels;
         i += (int64_t)gridDim.x * blockDim.x) {
      const int32_t y = (int32_t)((uint32_t)i / (uint32_t)im.width), x = (int32_t)(i - (int64_t)y * im.width);
      uint8_t *o = out + i * im.channels;
      if (kind == AUGMENT_WARP) {
        augment_warped(o, im, w, y, x);
      } else if (kind == AUGMENT_FILTER) {
        augment_filtered(o, im, k, even, y, x);
      } else {
        const uint8_t *p = im.in + i * 3, a = load(p), b = load(p + 1), c = load(p + 2);
#pragma unroll
        for (int r = 0; r < 3; r++) o[r] = color_matrix_row<uint8_t>(a, b, c, k + 3 * r, 0.0f);
      }
    }
  }
}
