// SPDX-License-Identifier: Apache-2.0
// form: own
// A block of threads computes TILE neighbouring elements of a channel, CHUNK elements of the response at a time, which
// lie in shared memory with the matching part of the signal; a thread keeps kEach elements in registers. Scratch
// memory: for each sample the delay, then the gain.
#include "audio/gpu_sums.h"
#include "audio/reverb.h"

constexpr int kEach = 4;

DEVICE int64_t &reverb_delay(const Launch &l, int sample) { return ((int64_t *)l.scratch)[sample]; }
DEVICE double &reverb_gain(const Launch &l, int sample) { return ((double *)l.scratch)[l.n + sample]; }

template <int THREADS>
DEVICE void reverb_delays(const Launch &l) {
  __shared__ float largest[THREADS];
  __shared__ int64_t places[THREADS];
  FOR_SAMPLES(sample, l) {
    const ReverbArgs a = ((const ReverbArgs *)l.args[0])[sample];
    const Tensor response = l.tensors[2][sample];
    const float *h = response.as<float>();
    const int64_t n = a.keep_delay ? 0 : volume_of(response);
    const auto is_better = [](float x, int64_t at, float y, int64_t than) { return x > y || (x == y && at < than); };
    float most = -1;
    int64_t place = 0;
    for (int64_t i = threadIdx.x; i < n; i += THREADS) {
      const float value = fabsf(load(h + i));
      if (value > most) most = value, place = i;
    }
    __syncthreads();
    largest[threadIdx.x] = most, places[threadIdx.x] = place;
    for (int half = THREADS / 2; half > 0; half /= 2) {
      __syncthreads();
      const int other = threadIdx.x + half;
      if (threadIdx.x < half && is_better(largest[other], places[other], largest[threadIdx.x], places[threadIdx.x]))
        largest[threadIdx.x] = largest[other], places[threadIdx.x] = places[other];
    }
    __syncthreads();
    if (threadIdx.x == 0)
      reverb_delay(l, sample) = places[0] / (response.ndim > 1 ? max((int)response.shape[1], 1) : 1);
  }
}

template <int THREADS, int CHUNK>
DEVICE void reverb_tiles(const Launch &l) {
  constexpr int TILE = kEach * THREADS;
  __shared__ float4 signal[(TILE + CHUNK) / 4], taps[CHUNK / 4];
  float *signals = (float *)signal, *weights = (float *)taps;
  FOR_SAMPLES(sample, l) {
    const Tensor in = l.tensors[1][sample], response = l.tensors[2][sample];
    if (volume_of(in) == 0) continue;
    const int64_t n = in.shape[0], channels = in.ndim > 1 ? in.shape[1] : 1;
    const int64_t length = response.shape[0], responses = response.ndim > 1 ? response.shape[1] : 1;
    const int64_t tiles = (n + TILE - 1) / TILE, delay = reverb_delay(l, sample);
    for (int64_t item = blockIdx.x; item < tiles * channels; item += gridDim.x) {
      const int64_t c = item / tiles, first = (item - c * tiles) * TILE;
      const float *x = in.as<float>() + c, *h = response.as<float>() + (responses > 1 ? c : 0);
      float sums[kEach] = {};
      for (int64_t k = 0; k < length; k += CHUNK) {
        __syncthreads();
        for (int i = threadIdx.x; i < CHUNK; i += THREADS)
          weights[i] = k + i < length ? load(h + (k + i) * responses) : 0.0f;
        // Element TILE + CHUNK - 1 of the window is unused.
        const int64_t begin = first + delay - k - (CHUNK - 1);
        for (int i = threadIdx.x; i < TILE + CHUNK; i += THREADS)
          signals[i] = begin + i >= 0 && begin + i < n ? load(x + (begin + i) * channels) : 0.0f;
        __syncthreads();
        // window[j] is element base + j; element j + kEach - 1 - q of it is multiplied by tap t + q for output j.
        int base = kEach * threadIdx.x + CHUNK - kEach;
        float window[2 * kEach];
        const float4 high = signal[base / 4 + 1];
        window[4] = high.x, window[5] = high.y, window[6] = high.z, window[7] = high.w;
        for (int t = 0; t < CHUNK; t += kEach, base -= kEach) {
          const float4 low = signal[base / 4], w = taps[t / 4];
          window[0] = low.x, window[1] = low.y, window[2] = low.z, window[3] = low.w;
          const float tap[kEach] = {w.x, w.y, w.z, w.w};
#pragma unroll
          for (int q = 0; q < kEach; q++)
#pragma unroll
            for (int j = 0; j < kEach; j++) sums[j] = __fmaf_rn(tap[q], window[j + kEach - 1 - q], sums[j]);
#pragma unroll
          for (int j = 0; j < kEach; j++) window[j + kEach] = window[j];
        }
      }
      float *y = l.tensors[0][sample].as<float>() + c;
#pragma unroll
      for (int j = 0; j < kEach; j++) {
        const int64_t at = first + kEach * threadIdx.x + j;
        if (at < n) y[at * channels] = sums[j];
      }
    }
  }
}

template <int THREADS>
DEVICE void reverb_gains(const Launch &l) {
  FOR_SAMPLES(sample, l) {
    const Tensor in = l.tensors[1][sample];
    const float *x = in.as<float>(), *y = l.tensors[0][sample].as<float>();
    const int64_t n = volume_of(in);
    const auto square = [](float value) { return (double)value * value; };
    const double before = block_sum<THREADS>(n, [&](int64_t i) { return square(load(x + i)); });
    const double after = block_sum<THREADS>(n, [&](int64_t i) { return square(load(y + i)); });
    if (threadIdx.x == 0) reverb_gain(l, sample) = after == 0 ? 1 : sqrt(before / after);
  }
}

DEVICE void reverb_scale(const Launch &l) {
  FOR_SAMPLES(sample, l) {
    const Tensor out = l.tensors[0][sample];
    float *y = out.as<float>();
    const float gain = (float)reverb_gain(l, sample);
    const int64_t n = volume_of(out);
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (int64_t)gridDim.x * blockDim.x)
      y[i] *= gain;
  }
}
