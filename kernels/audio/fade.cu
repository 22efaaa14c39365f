// SPDX-License-Identifier: Apache-2.0
// form: own
// launch: fade_all(l); 1024 elements of out[0] per block of 256 threads
#include "audio/fade.h"
#include "core/gpu.h"

DEVICE void fade_all(const Launch &l) {
  FOR_SAMPLES(sample, l) {
    const FadeArgs a = ((const FadeArgs *)l.args[0])[sample];
    const Tensor in = l.tensors[1][sample];
    const float *x = in.as<float>();
    float *y = l.tensors[0][sample].as<float>();
    const int64_t volume = volume_of(in), n = in.shape[0], channels = in.ndim > 1 ? in.shape[1] : 1;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < volume; i += (int64_t)gridDim.x * blockDim.x) {
      const int64_t at = channels == 1 ? i : i / channels;
      const bool is_plain = at >= a.fade_in && n - 1 - at >= a.fade_out;
      y[i] = is_plain ? load(x + i) : load(x + i) * fade_gain(at, n, a);
    }
  }
}
