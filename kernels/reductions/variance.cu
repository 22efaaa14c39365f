// SPDX-License-Identifier: Apache-2.0
// form: own
#include "reductions/gpu_reduce.h"
#include "reductions/variance.h"

template <class In, class OUT>
struct Job {
  typedef DeviceCentered<In, sizeof(In)> Op;
  typedef VarianceArgs Args;
  typedef OUT Out;
  DEVICE static double center(const Launch &l, int sample, int64_t param) {
    const Tensor &mean = l.tensors[2][sample];
    return load(mean.as<float>() + (volume_of(mean) == 1 ? 0 : param));
  }
  DEVICE static Out finish(const Args &a, double total, int64_t count) {
    return finish_variance(total, count, a.ddof, a.root != 0);
  }
};
