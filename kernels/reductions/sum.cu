// SPDX-License-Identifier: Apache-2.0
// form: own
#include "reductions/gpu_reduce.h"
#include "reductions/sum.h"

template <class OP, class OUT>
struct SumJobOf {
  typedef OP Op;
  typedef SumArgs Args;
  typedef OUT Out;
  DEVICE static Out finish(const Args &a, typename Op::Wide total, int64_t count) {
    return finish_sum<Out, typename Op::In>(total, count, a.is_mean != 0);
  }
};

template <class In, class Out, bool WHOLE>
struct SumJobBy : SumJobOf<RealSum<In>, Out> {};
template <class In, class Out>
struct SumJobBy<In, Out, true> : SumJobOf<DeviceSum<In, sizeof(In)>, Out> {};

template <class In, class Out>
struct Job : SumJobBy<In, Out, sums_whole<In, Out>()> {};
