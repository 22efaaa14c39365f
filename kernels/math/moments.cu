// SPDX-License-Identifier: Apache-2.0
// form: own
#include "math/gpu_groups.h"
#include "math/moments.h"

DEVICE MomentsArgs moments_args(const Launch &l, int sample) { return ((const MomentsArgs *)l.args[0])[sample]; }

// Where there are many parameters: each by a thread.
template <class In>
DEVICE void moments_alone(const Launch &l) {
  FOR_SAMPLES(sample, l) {
    const MomentsArgs a = moments_args(l, sample);
    const GpuGroups g(l.tensors[1][sample], a.reduced);
    double *out = l.tensors[0][sample].as<double>();
    const int64_t count = g.count();
    each_of(g.n_params, [&](int64_t p) {
      const In *in = l.tensors[1][sample].as<In>() + g.first(p);
      const double sum = sum_elements(in, g, 0, count, 1, [](double x) { return x; });
      const double mean = count ? sum / (double)count : 0, center = a.has_center ? a.center : mean;
      out[p] = (double)count;
      out[g.n_params + p] = mean;
      out[2 * g.n_params + p] = sum_elements(in, g, 0, count, 1, [&](double x) { return (x - center) * (x - center); });
    });
  }
}

template <class In, int MOST>
DEVICE void moments_sums(const Launch &l) {
  FOR_SAMPLES(sample, l) {
    const MomentsArgs a = moments_args(l, sample);
    const GpuGroups g(l.tensors[1][sample], a.reduced);
    const Parts<MOST> parts(l, sample);
    each_part<MOST>(g, [&](int64_t p, int part, int64_t begin, int64_t end) {
      const In *in = l.tensors[1][sample].as<In>() + g.first(p);
      const double sum =
          sum_block(sum_elements(in, g, begin + threadIdx.x, end, blockDim.x, [](double x) { return x; }));
      if (threadIdx.x == 0) parts.sums(p)[part] = sum;
    });
  }
}

template <class In, int MOST>
DEVICE void moments_squares(const Launch &l) {
  FOR_SAMPLES(sample, l) {
    const MomentsArgs a = moments_args(l, sample);
    const GpuGroups g(l.tensors[1][sample], a.reduced);
    const Parts<MOST> parts(l, sample);
    const int64_t count = g.count();
    each_part<MOST>(g, [&](int64_t p, int part, int64_t begin, int64_t end) {
      const In *in = l.tensors[1][sample].as<In>() + g.first(p);
      const double mean = count ? parts.total(parts.sums(p)) / (double)count : 0,
                   center = a.has_center ? a.center : mean;
      const double sum = sum_block(sum_elements(in, g, begin + threadIdx.x, end, blockDim.x,
                                                [&](double x) { return (x - center) * (x - center); }));
      if (threadIdx.x == 0) parts.squares(p)[part] = sum;
    });
  }
}

template <int MOST>
DEVICE void moments_finish(const Launch &l) {
  FOR_SAMPLES(sample, l) {
    const MomentsArgs a = moments_args(l, sample);
    const GpuGroups g(l.tensors[1][sample], a.reduced);
    const Parts<MOST> parts(l, sample);
    double *out = l.tensors[0][sample].as<double>();
    const int64_t count = g.count();
    each_of(g.n_params, [&](int64_t p) {
      out[p] = (double)count;
      out[g.n_params + p] = count ? parts.total(parts.sums(p)) / (double)count : 0;
      out[2 * g.n_params + p] = parts.total(parts.squares(p));
    });
  }
}
