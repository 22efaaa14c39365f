// SPDX-License-Identifier: Apache-2.0
// form: own
// A block of threads takes kBlock places of the output, in all channels.
#include "audio/audio_resample.h"
#include "core/gpu.h"

constexpr int kBlock = 256;  // places are summed up in float within blocks of so many outputs, as DALI does
constexpr int kPhases = 32;  // steps of the table for each zero of the sinc
constexpr int kLobesMost = 64;

// sin(pi x) / (pi x) under a Hann window that ends at `width`.
DEVICE float windowed_sinc(float x, float width) {
  const float sinc = x == 0.0f ? 1.0f : sinpif(x) / (3.14159265358979f * x);
  return sinc * 0.5f * (1.0f + cospif(x / width));
}

template <class Out, class In>
DEVICE void audio_resample_blocks(const Launch &l) {
  __shared__ float table[kLobesMost * kPhases + 2], places[kBlock];
  int ready = 0;  // the lobes of the table
  FOR_SAMPLES(sample, l) {
    const AudioResampleArgs a = ((const AudioResampleArgs *)l.args[0])[sample];
    const Tensor out = l.tensors[0][sample], in = l.tensors[1][sample];
    const int64_t n = in.shape[0], n_out = out.shape[0], channels = in.ndim > 1 ? in.shape[1] : 1;
    const int64_t blocks = channels ? (n_out + kBlock - 1) / kBlock : 0;
    if (blockIdx.x >= blocks) continue;
    const In *x = in.as<In>();
    Out *y = out.as<Out>();
    const double scale = a.in_rate / a.out_rate;
    const bool is_plain = !(a.antialias && a.out_rate < a.in_rate);
    // What has fewer samples than its input takes a wider filter.
    const float bandwidth = is_plain ? 1.0f : (float)(a.out_rate / a.in_rate), lobes = (float)a.lobes;
    const int64_t reach = is_plain ? a.lobes : (int64_t)ceil(a.lobes / (a.out_rate / a.in_rate));
    __syncthreads();
    if (is_plain && ready != a.lobes)
      for (int i = threadIdx.x; i <= a.lobes * kPhases + 1; i += blockDim.x)
        table[i] = i <= a.lobes * kPhases ? windowed_sinc((float)i / kPhases, lobes + 1 / 64.0f) : 0.0f;
    ready = is_plain ? a.lobes : ready;
    for (int64_t block = blockIdx.x; block < blocks; block += gridDim.x) {
      const double start = (double)(block * kBlock) * scale;
      const int64_t whole = (int64_t)floor(start);
      __syncthreads();
      if (threadIdx.x == 0) {
        float at = (float)(start - (double)whole);
        for (int i = 0; i < kBlock; i++, at += (float)scale) places[i] = at;
      }
      __syncthreads();
      const int64_t first = block * kBlock, here = n_out - first < kBlock ? n_out - first : kBlock;
      for (int64_t item = threadIdx.x; item < here * channels; item += blockDim.x) {
        const int64_t i = channels == 1 ? item : item / channels, c = item - i * channels;
        const float next = ceilf(places[i]), ahead = next - places[i];  // of the element behind the place
        const int64_t middle = whole + (int64_t)next;
        // Elements middle + k, of which only those exist that lie in the signal.
        const int64_t begin = middle - reach < 0 ? 0 : middle - reach;
        const int64_t end = middle + reach < n ? middle + reach : n;
        float sum = 0;
        if (is_plain) {
          const float place = ahead * kPhases;
          const int phase = (int)place < kPhases - 1 ? (int)place : kPhases - 1;
          const float rest = place - (float)phase;
          int step = phase + (int)(begin - middle) * kPhases;
          for (int64_t k = begin; k < end; k++, step += kPhases) {
            const float w = table[step < 0 ? -step : step], v = table[step + 1 < 0 ? -step - 1 : step + 1];
            const float value = (float)load(x + k * channels + c) * a.factor + a.offset;
            sum = __fmaf_rn(value, __fmaf_rn(rest, v - w, w), sum);
          }
        } else {
          for (int64_t k = begin; k < end; k++) {
            const float at = ((float)(k - middle) + ahead) * bandwidth;
            if (fabsf(at) > lobes) continue;
            const float value = (float)load(x + k * channels + c) * a.factor + a.offset;
            sum = __fmaf_rn(value, windowed_sinc(at, lobes) * bandwidth, sum);
          }
        }
        y[(first + i) * channels + c] = saturate<Out>(sum);
      }
    }
  }
}
