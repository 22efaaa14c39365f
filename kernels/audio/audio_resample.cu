// SPDX-License-Identifier: Apache-2.0
// form: own
// A block of threads takes kBlock output positions at a time, one per thread, in up to SIGNALS samples of equal rates,
// so that weights are computed once for all of them. Their input lies in shared memory, ROOM elements per sample; ROOM
// is 0 if it does not fit.
#include "audio/audio_resample.h"
#include "core/gpu.h"

constexpr int kBlock = 256;  // positions are accumulated in float within blocks of this many outputs, as in DALI
constexpr int kBlocks = 4;   // accumulated at once
constexpr int kTaps = 16;    // weights per thread at a time
constexpr int kPhases = 32;  // table steps per zero of the sinc
constexpr int kLobesMost = 64;

// sin(pi x) / (pi x) under a Hann window that ends at `width`.
DEVICE float windowed_sinc(float x, float width) {
  const float sinc = x == 0.0f ? 1.0f : sinpif(x) / (3.14159265358979f * x);
  return sinc * 0.5f * (1.0f + cospif(x / width));
}

// The filter for a pair of rates.
struct GpuSinc {
  double scale;  // input elements per output element
  bool is_plain;
  float bandwidth, lobes;
  int reach, chunks;  // elements on either side; groups of kTaps
  const float *table;

  DEVICE void of(const AudioResampleArgs &a, const float *table_) {
    table = table_, scale = a.in_rate / a.out_rate, lobes = (float)a.lobes;
    is_plain = !(a.antialias && a.out_rate < a.in_rate);
    // Downsampling needs a wider filter.
    bandwidth = is_plain ? 1.0f : (float)(a.out_rate / a.in_rate);
    reach = is_plain ? a.lobes : (int)ceil(a.lobes / (a.out_rate / a.in_rate));
    chunks = (2 * reach + kTaps - 1) / kTaps;
  }
  // The weights of elements k, k + 1, ... after the one that lies `ahead` of a position.
  DEVICE void weigh(float (&w)[kTaps], int k, float ahead) const {
    if (is_plain) {
      const float place = ahead * kPhases;
      const int phase = (int)place < kPhases - 1 ? (int)place : kPhases - 1;
      const float rest = place - (float)phase;
#pragma unroll
      for (int j = 0; j < kTaps; j++) {
        const int step = phase + (k + j) * kPhases;
        const float from = table[step < 0 ? -step : step], to = table[step + 1 < 0 ? -step - 1 : step + 1];
        w[j] = k + j < reach ? __fmaf_rn(rest, to - from, from) : 0.0f;
      }
    } else {
#pragma unroll
      for (int j = 0; j < kTaps; j++) {
        const float at = ((float)(k + j) + ahead) * bandwidth;
        w[j] = k + j < reach && fabsf(at) <= lobes ? windowed_sinc(at, lobes) * bandwidth : 0.0f;
      }
    }
  }
};

// Element i of a channel, 0 beyond the ends, scaled to the output's range.
template <class In>
DEVICE float element_of(const In *x, int64_t i, int64_t n, int64_t channels, int64_t c, const AudioResampleArgs &a) {
  return i >= 0 && i < n ? (float)load(x + i * channels + c) * a.factor + a.offset : 0.0f;
}

template <class Out, class In, int SIGNALS, int ROOM>
DEVICE void audio_resample_blocks(const Launch &l) {
  struct Signal {
    const In *x;
    Out *y;
    int64_t n, n_out, channels;
  };
  __shared__ float table[(kLobesMost + 1) * kPhases + kTaps * kPhases], places[kBlocks][kBlock];
  __shared__ Signal signals[SIGNALS];
  DYNAMIC_SHARED(float, elements);
  int ready = 0;  // lobes that the table was made for
  for (int sample = blockIdx.y * SIGNALS; sample < l.n; sample += gridDim.y * SIGNALS) {
    const AudioResampleArgs a = ((const AudioResampleArgs *)l.args[0])[sample];
    const int here = l.n - sample < SIGNALS ? l.n - sample : SIGNALS;
    __syncthreads();
    if (threadIdx.x < here) {
      const Tensor out = l.tensors[0][sample + threadIdx.x], in = l.tensors[1][sample + threadIdx.x];
      const int64_t channels = in.ndim > 1 ? in.shape[1] : 1;
      signals[threadIdx.x] = {in.as<In>(), out.as<Out>(), in.shape[0], channels ? out.shape[0] : 0, channels};
    }
    __syncthreads();
    int64_t most = 0, channels = 0;
    for (int s = 0; s < here; s++) {
      most = signals[s].n_out > most ? signals[s].n_out : most;
      channels = signals[s].channels > channels ? signals[s].channels : channels;
    }
    if ((int64_t)blockIdx.x * (kBlock * kBlocks) >= most) continue;
    GpuSinc sinc;
    sinc.of(a, table);
    if (sinc.is_plain && ready != a.lobes) {
      for (int i = threadIdx.x; i < (a.lobes + 1) * kPhases + kTaps * kPhases; i += blockDim.x)
        table[i] = i <= a.lobes * kPhases ? windowed_sinc((float)i / kPhases, sinc.lobes + 1 / 64.0f) : 0.0f;
      ready = a.lobes;
    }
    for (int64_t begin = (int64_t)blockIdx.x * (kBlock * kBlocks); begin < most;
         begin += (int64_t)gridDim.x * (kBlock * kBlocks)) {
      __syncthreads();
      if (threadIdx.x < kBlocks) {
        const double start = (double)(begin + threadIdx.x * kBlock) * sinc.scale;
        float at = (float)(start - floor(start));
        for (int i = 0; i < kBlock; i++, at += (float)sinc.scale) places[threadIdx.x][i] = at;
      }
      __syncthreads();
      for (int block = 0; block < kBlocks && begin + block * kBlock < most; block++) {
        const int64_t first = begin + block * kBlock;
        // The first element needed, and the number of elements.
        const int64_t low = (int64_t)floor((double)first * sinc.scale) - sinc.reach;
        const int span = (int)ceilf(places[block][kBlock - 1]) + sinc.chunks * kTaps;
        const float next = ceilf(places[block][threadIdx.x]), ahead = next - places[block][threadIdx.x];
        for (int64_t c = 0; c < channels; c++) {
          if (ROOM) {
            __syncthreads();
            for (int s = 0; s < here; s++) {
              const Signal &from = signals[s];
              if (c >= from.channels || first >= from.n_out) continue;
              for (int i = threadIdx.x; i < span; i += blockDim.x)
                elements[s * ROOM + i] = element_of(from.x, low + i, from.n, from.channels, c, a);
            }
            __syncthreads();
          }
          float sums[SIGNALS] = {};
          for (int chunk = 0; chunk < sinc.chunks; chunk++) {
            float w[kTaps];
            sinc.weigh(w, chunk * kTaps - sinc.reach, ahead);
#pragma unroll
            for (int s = 0; s < SIGNALS; s++) {
              if (s >= here) break;
              const int at = (int)next + chunk * kTaps;
#pragma unroll
              for (int j = 0; j < kTaps; j++) {
                const float x = ROOM ? elements[s * ROOM + at + j]
                                     : element_of(signals[s].x, low + at + j, signals[s].n, channels, c, a);
                sums[s] = __fmaf_rn(x, w[j], sums[s]);
              }
            }
          }
#pragma unroll
          for (int s = 0; s < SIGNALS; s++) {
            if (s >= here) break;
            const Signal &to = signals[s];
            if (c < to.channels && first + threadIdx.x < to.n_out)
              to.y[(first + threadIdx.x) * to.channels + c] = saturate<Out>(sums[s]);
          }
        }
      }
    }
  }
}
