// SPDX-License-Identifier: Apache-2.0
// form: block
// Weighted sums of a spectrogram's frequencies: spectrogram.cu and weighted_sums.cu in one launch. A block of threads
// takes Fft::kLanes windows at a time, whose powers and then sums lie in shared memory.
#include "audio/gpu_windows.h"
#include "audio/weighted_sums.h"
#include "core/gpu_chain.h"

template <class Fft, int LENGTH, int POWER, class Chain>
DEVICE void mel_spectrogram_tiles(const Launch &l) {
  constexpr int kLanes = Fft::kLanes, kBins = Fft::kLength / 2 + 1, kPitch = Fft::kPowersPitch;
  constexpr int kSide = 4;  // windows summed by a thread
  static_assert(kLanes % kSide == 0, "");
  typedef typename Chain::Kind::T Out;
  DYNAMIC_SHARED(float2, memory);
  Fft fft(memory);
  float *const sums = (float *)memory + kBins * kPitch;  // after the powers
  FOR_SAMPLES(sample, l) {
    const SpectrogramArgs a = ((const SpectrogramArgs *)l.args[1])[sample];
    const WeightedSumsArgs filters = ((const WeightedSumsArgs *)l.args[0])[sample];
    const Tensor out = l.tensors[0][sample];
    const int64_t windows = out.shape[a.time_first ? 0 : 1];
    const int n = (int)out.shape[a.time_first ? 1 : 0];
    const int64_t groups = (windows + kLanes - 1) / kLanes;
    if (blockIdx.x >= groups) continue;
    Windows<LENGTH> from(a, l.tensors[1][sample]);
    Chain chain;
    chain.begin(l, sample);
    const Found<Chain::kSteps> found;
    for (int64_t group = blockIdx.x; group < groups; group += gridDim.x) {
      const int64_t t = from.t = group * kLanes;
      const int here = (int)(windows - t < kLanes ? windows - t : kLanes);
      from.prefetch(kLanes, kLanes * gridDim.x);
      const float *const powers = fft.template run<POWER>(here, true, from);
      for (int item = threadIdx.x; item < n * (kLanes / kSide); item += blockDim.x) {
        const int m = item / (kLanes / kSide), side = item % (kLanes / kSide);
        const float4 *x = (const float4 *)powers + load(filters.begin + m) * (kPitch / kSide) + side;
        const float *w = filters.weights + load(filters.offset + m);
        const int count = load(filters.count + m);
        float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll 4
        for (int k = 0; k < count; k++, x += kPitch / kSide) {
          const float weight = load(w + k);
          const float4 value = *x;
          sum.x = __fmaf_rn(value.x, weight, sum.x), sum.y = __fmaf_rn(value.y, weight, sum.y);
          sum.z = __fmaf_rn(value.z, weight, sum.z), sum.w = __fmaf_rn(value.w, weight, sum.w);
        }
        ((float4 *)sums)[item] = sum;
      }
      __syncthreads();
      Out *const y = out.as<Out>() + (a.time_first ? t * n : t);
      for (int item = threadIdx.x; item < n * kLanes; item += blockDim.x) {
        const int m = a.time_first ? item % n : item / kLanes, w = a.time_first ? item / n : item % kLanes;
        if (w >= here) continue;
        const float sum[1] = {sums[m * kLanes + w]};
        Out mapped[1];
        chain.map(mapped, sum, found);
        y[a.time_first ? w * n + m : m * windows + w] = mapped[0];
      }
    }
  }
}
