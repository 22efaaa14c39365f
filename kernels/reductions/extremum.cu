// SPDX-License-Identifier: Apache-2.0
// form: own
#include "reductions/extremum.h"
#include "reductions/gpu_reduce.h"

template <class OP>
struct ExtremumJob {
  typedef OP Op;
  typedef ExtremumArgs Args;
  typedef typename OP::In Out;
  DEVICE static Out finish(const Args &, Out total, int64_t count) { return count ? total : Op::of_none(); }
};
template <class In, class Out>
struct LeastJob : ExtremumJob<Least<In>> {};
template <class In, class Out>
struct GreatestJob : ExtremumJob<Greatest<In>> {};
