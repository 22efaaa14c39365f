// SPDX-License-Identifier: Apache-2.0
// form: own
// A block of threads takes Fft::kLanes windows at a time, neighbours one after the other.
#include "audio/gpu_windows.h"

template <class Fft, bool IS_SHARED, int POWER, int LENGTH>
DEVICE void spectrogram_windows(const Launch &l, int64_t room) {
  Fft fft(memory_of_block<IS_SHARED>(l, room));
  FOR_SAMPLES(sample, l) {
    const SpectrogramArgs a = ((const SpectrogramArgs *)l.args[0])[sample];
    const Tensor out = l.tensors[0][sample];
    const int64_t windows = out.shape[a.time_first ? 0 : 1], bins = a.nfft / 2 + 1;
    const int64_t groups = (windows + Fft::kLanes - 1) / Fft::kLanes;
    if (blockIdx.x >= groups) continue;
    Windows<LENGTH> from(a, l.tensors[1][sample]);
    fft.begin(a.nfft);
    for (int64_t group = blockIdx.x; group < groups; group += gridDim.x) {
      const int64_t t = from.t = group * Fft::kLanes, pitch = a.time_first ? 1 : windows;
      const int here = (int)(windows - t < Fft::kLanes ? windows - t : Fft::kLanes);
      float *const y = out.as<float>() + (a.time_first ? t * bins : t);
      fft.template powers<POWER>(here, true, from, a.time_first, [&](int k, int w, float power) {
        y[k * pitch + (a.time_first ? w * bins : w)] = power;
      });
    }
  }
}

// The memory takes 32 bytes at a time, in which rows of the output begin anywhere. So what fills only a part of them
// waits in shared memory for the next windows.
template <class Fft>
struct WholeSectors {
  static constexpr int kSector = 8, kLanes = Fft::kLanes, kBins = Fft::kLength / 2 + 1;
  static_assert(kLanes % kSector == 0, "");
  float *const waiting;  // of frequency k at [k * kSector]: those before the next window

  // Columns [0, here) of rows that begin `pitch` apart from y on.
  DEVICE void write(float *y, int64_t pitch, const float *powers, int here, bool is_first, bool is_last) const {
    if (is_first || is_last)
      write_ends(y, pitch, powers, here, is_first, is_last);
    else
      write_between(y, pitch, powers);
  }

 private:
  // How far behind the beginning of 32 bytes a place is.
  DEVICE static int behind(const float *p) { return (int)((unsigned long long)p / sizeof(float) % kSector); }

  // As many as came are written: those that waited first, while as many wait again.
  DEVICE void write_between(float *y, int64_t pitch, const float *powers) const {
    constexpr int kAtOnce = 4;
    const int lane = threadIdx.x % kLanes, rows = blockDim.x / kLanes, mine = threadIdx.x / kLanes;
    for (int begin = 0; begin < kBins; begin += kAtOnce * rows) {  // as often for all lanes of a warp
      float written[kAtOnce], waits[kAtOnce];
#pragma unroll
      for (int u = 0; u < kAtOnce; u++) {
        const int k = begin + u * rows + mine;
        if (k >= kBins) continue;
        const float *const row = powers + k * Fft::kPowersPitch, *const old = waiting + (k + 1) * kSector;
        const int n = behind(y + k * pitch);
        written[u] = lane < n ? old[lane - n] : row[lane - n];
        if (lane < n) waits[u] = row[kLanes - n + lane];
      }
      __syncwarp();
#pragma unroll
      for (int u = 0; u < kAtOnce; u++) {
        const int k = begin + u * rows + mine;
        if (k >= kBins) continue;
        float *const to = y + k * pitch;
        const int n = behind(to);
        to[lane - n] = written[u];
        if (lane < n) waiting[(k + 1) * kSector + lane - n] = waits[u];
      }
    }
  }
  DEVICE void write_ends(float *y, int64_t pitch, const float *powers, int here, bool is_first, bool is_last) const {
    const int lane = threadIdx.x % kLanes, rows = blockDim.x / kLanes;
    for (int begin = 0; begin < kBins; begin += rows) {  // as often for all lanes of a warp
      const int k = begin + threadIdx.x / kLanes;
      const float *const row = powers + k * Fft::kPowersPitch;
      float *const old = waiting + (k + 1) * kSector, *const to = y + k * pitch;
      int end = here;  // what is behind waits
      if (k < kBins) {
        if (!is_last) end -= (behind(to) + here) % kSector;
        for (int i = lane - (is_first ? 0 : behind(to)); i < end; i += kLanes) to[i] = i < 0 ? old[i] : row[i];
      }
      __syncwarp();
      if (k < kBins && end + lane < here && end + lane >= 0) old[end + lane - here] = row[end + lane];
    }
  }
};

// The same with frequencies first, for a length that is compiled in.
template <class Fft, int LENGTH, int POWER>
DEVICE void spectrogram_rows(const Launch &l) {
  DYNAMIC_SHARED(float2, memory);
  Fft fft(memory);
  const WholeSectors<Fft> sectors = {(float *)(memory + Fft::kRoom)};
  FOR_SAMPLES(sample, l) {
    const SpectrogramArgs a = ((const SpectrogramArgs *)l.args[0])[sample];
    const Tensor out = l.tensors[0][sample];
    const int64_t windows = out.shape[1], groups = (windows + Fft::kLanes - 1) / Fft::kLanes;
    const int64_t each = (groups + gridDim.x - 1) / gridDim.x, begin = blockIdx.x * each;
    const int64_t end = begin + each < groups ? begin + each : groups;
    Windows<LENGTH> from(a, l.tensors[1][sample]);
    for (int64_t group = begin; group < end; group++) {
      from.t = group * Fft::kLanes;
      const int here = (int)(windows - from.t < Fft::kLanes ? windows - from.t : Fft::kLanes);
      if (group + 1 < end) from.prefetch(Fft::kLanes, Fft::kLanes);
      const float *const powers = fft.template run<POWER>(here, true, from);
      sectors.write(out.as<float>() + from.t, windows, powers, here, group == begin, group + 1 == end);
    }
  }
}
