// SPDX-License-Identifier: Apache-2.0
// form: own
// A block of threads per signal computes the gain of its noise in scratch memory; then the noise is added.
#include "audio/add_noise.h"
#include "audio/gpu_sums.h"

// Maps element i of a signal to the element of the noise that is added to it.
struct NoisePlace {
  int64_t length, start, channels, noises;

  DEVICE NoisePlace(const AddNoiseArgs &a, const Tensor &x, const Tensor &noise) {
    length = noise.shape[0], start = a.start % length;
    channels = x.ndim > 1 ? x.shape[1] : 1, noises = noise.ndim > 1 ? noise.shape[1] : 1;
  }
  DEVICE int64_t operator()(int64_t i) const {
    const int64_t t = channels == 1 ? i : i / channels, c = noises == 1 ? 0 : i - t * channels;
    return (start + t) % length * noises + c;
  }
};

template <int THREADS>
DEVICE void add_noise_gains(const Launch &l) {
  FOR_SAMPLES(sample, l) {
    const AddNoiseArgs a = ((const AddNoiseArgs *)l.args[0])[sample];
    const Tensor in = l.tensors[1][sample], noise = l.tensors[2][sample];
    const int64_t n = volume_of(in);
    if (n == 0) continue;
    const NoisePlace place(a, in, noise);
    const float *x = in.as<float>(), *from = noise.as<float>();
    const auto square = [](float value) { return (double)value * value; };
    const double signal = block_sum<THREADS>(n, [&](int64_t i) { return square(load(x + i)); });
    // Single-channel noise counts once per channel of the signal.
    const double power = block_sum<THREADS>(n, [&](int64_t i) { return square(load(from + place(i))); });
    if (threadIdx.x == 0) ((float *)l.scratch)[sample] = noise_gain(signal, power, a.snr);
  }
}

DEVICE void add_noise_all(const Launch &l) {
  FOR_SAMPLES(sample, l) {
    const Tensor in = l.tensors[1][sample], noise = l.tensors[2][sample];
    const int64_t n = volume_of(in);
    if (n == 0) continue;
    const NoisePlace place(((const AddNoiseArgs *)l.args[0])[sample], in, noise);
    const float *x = in.as<float>(), *from = noise.as<float>(), gain = ((const float *)l.scratch)[sample];
    float *y = l.tensors[0][sample].as<float>();
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (int64_t)gridDim.x * blockDim.x)
      y[i] = load(x + i) + gain * load(from + place(i));
  }
}
