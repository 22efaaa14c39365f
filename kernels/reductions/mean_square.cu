// SPDX-License-Identifier: Apache-2.0
// form: own
#include "reductions/gpu_reduce.h"
#include "reductions/mean_square.h"

template <class In, class OUT>
struct Job {
  typedef DeviceSquares<In, sizeof(In)> Op;
  typedef MeanSquareArgs Args;
  typedef OUT Out;
  DEVICE static Out finish(const Args &a, typename Op::Wide total, int64_t count) {
    return finish_mean_square<Out>((double)total, count, a.root != 0);
  }
};
