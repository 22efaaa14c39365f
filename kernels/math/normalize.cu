// SPDX-License-Identifier: Apache-2.0
// form: own
#include "math/gpu_groups.h"
#include "math/gpu_normalize_runs.h"
#include "math/normalize.h"

// A sample, for all phases.
template <class In, int P = 0>
struct Normalized {
  typedef In Element;
  const NormalizeArgs &a;
  typename GroupsOf<P>::type g;
  const In *in;
  const Tensor *means, *deviations;  // inputs, or null
  int64_t count;

  DEVICE Normalized(const Launch &l, int sample)
      : a(((const NormalizeArgs *)l.args[0])[sample]), g(l.tensors[1][sample], a.reduced) {
    in = l.tensors[1][sample].template as<In>();
    const int next = a.mean_origin == INPUT ? 3 : 2;
    means = a.mean_origin == INPUT ? &l.tensors[2][sample] : nullptr;
    deviations = a.stddev_origin == INPUT ? &l.tensors[next][sample] : nullptr;
    count = g.count();
  }
  DEVICE static double value(const Tensor &t, int64_t p) {
    const int64_t i = t.volume() == 1 ? 0 : p;
    return t.dtype == FLOAT64 ? t.as<double>()[i] : (double)t.as<float>()[i];
  }
  // The given value; `computed` if there is none.
  DEVICE double mean(int64_t p, double computed) const {
    return a.mean_origin == ARGUMENT ? (double)a.mean : means ? value(*means, p) : computed;
  }
  DEVICE double factor(int64_t p, double squares) const {
    const double degrees = (double)count - a.ddof;
    double variance = degrees > 0 ? squares / degrees : 0;
    if (a.stddev_origin != COMPUTED) {
      const double given = deviations ? value(*deviations, p) : (double)a.stddev;
      variance = given * given;
    }
    return normalizing_factor(variance + a.epsilon, a.scale, a.stddev_origin == COMPUTED || a.is_estimate);
  }
  template <class Out>
  DEVICE void write(Out *out, int64_t i, double mean, double factor) const {
    const float m = (float)mean, rest = (float)(mean - m);
    out[i] = saturate<Out>(deviation(load(in + i), m, rest) * (float)factor + a.shift);
  }
};

// For many parameters: a thread for each.
template <class Out, class In>
DEVICE void normalize_alone(const Launch &l) {
  FOR_SAMPLES(sample, l) {
    if (l.tensors[1][sample].volume() == 0) continue;
    const Normalized<In> n(l, sample);
    Out *out = l.tensors[0][sample].as<Out>();
    each_of(n.g.n_params, [&](int64_t p) {
      const int64_t first = n.g.first(p);
      double sum = 0, squares = 0;
      if (n.a.mean_origin == COMPUTED) sum = sum_elements(n.in + first, n.g, 0, n.count, 1, [](double x) { return x; });
      const double mean = n.mean(p, sum / (double)n.count);
      if (n.a.stddev_origin == COMPUTED)
        squares = sum_elements(n.in + first, n.g, 0, n.count, 1, [&](double x) { return (x - mean) * (x - mean); });
      const double factor = n.factor(p, squares);
      for (int64_t k = 0; k < n.count; k++) n.write(out, first + n.g.element(k), mean, factor);
    });
  }
}

constexpr int kRunThreads = 192;

// P: number of interleaved parameters along runs, see RunGroups; else 0.
template <class In, int MOST, int P>
DEVICE void normalize_sums(const Launch &l) {
  FOR_SAMPLES(sample, l) {
    if (l.tensors[1][sample].volume() == 0) continue;
    const Normalized<In, P> n(l, sample);
    const Parts<MOST> parts(l, sample, n.g.n_params, n.count);
    if constexpr (P > 0) {
      typedef SumOf<In, !IsFloat<In>::value> Op;
      reduce_runs_of<Op, P, kRunThreads>(
          n, parts.n, [](int64_t) { return 0.0; },
          [&](int64_t p, int part, typename Op::Wide sum) { parts.sums(p)[part] = real_sum<In>(sum); });
    } else {
      each_part(n.g, parts.n, [&](int64_t p, int part, int64_t begin, int64_t end) {
        const In *in = n.in + n.g.first(p);
        const double sum =
            sum_block(sum_elements(in, n.g, begin + threadIdx.x, end, blockDim.x, [](double x) { return x; }));
        if (threadIdx.x == 0) parts.sums(p)[part] = sum;
      });
    }
  }
}

template <class In, int MOST, int P>
DEVICE void normalize_squares(const Launch &l) {
  FOR_SAMPLES(sample, l) {
    if (l.tensors[1][sample].volume() == 0) continue;
    const Normalized<In, P> n(l, sample);
    const Parts<MOST> parts(l, sample, n.g.n_params, n.count);
    if constexpr (P > 0) {
      reduce_runs_of<DeviceCentered<In, sizeof(In)>, P, kRunThreads>(
          n, parts.n, [&](int64_t p) { return n.mean(p, parts.total(parts.sums(p)) / (double)n.count); },
          [&](int64_t p, int part, double sum) { parts.squares(p)[part] = sum; });
    } else {
      each_part(n.g, parts.n, [&](int64_t p, int part, int64_t begin, int64_t end) {
        const In *in = n.in + n.g.first(p);
        const double mean = n.mean(p, parts.total(parts.sums(p)) / (double)n.count);
        const double sum = sum_block(sum_elements(in, n.g, begin + threadIdx.x, end, blockDim.x,
                                                  [&](double x) { return (x - mean) * (x - mean); }));
        if (threadIdx.x == 0) parts.squares(p)[part] = sum;
      });
    }
  }
}

template <class In, int MOST, int P>
DEVICE void normalize_finish(const Launch &l) {
  FOR_SAMPLES(sample, l) {
    if (l.tensors[1][sample].volume() == 0) continue;
    const Normalized<In, P> n(l, sample);
    const Parts<MOST> parts(l, sample, n.g.n_params, n.count);
    each_of(n.g.n_params, [&](int64_t p) {
      parts.mean(p) = n.mean(p, parts.total(parts.sums(p)) / (double)n.count);
      parts.factor(p) = n.factor(p, parts.total(parts.squares(p)));
    });
  }
}

// If all samples share their parameters: joins them, a block of threads per parameter, and stores them in the place of
// sample 0. Variances are combined as in Chan, Golub, LeVeque: Updating Formulae and a Pairwise Algorithm for Computing
// Sample Variances (1979).
template <class In, int MOST, int P>
DEVICE void normalize_join(const Launch &l) {
  __shared__ double joined[2];
  Normalized<In, P> n(l, 0);
  const Parts<MOST> shared(l, 0, n.g.n_params, n.count);
  for (int64_t p = blockIdx.x; p < n.g.n_params; p += gridDim.x) {
    double count = 0, sum = 0, squares = 0;
    for (int s = threadIdx.x; s < l.n; s += blockDim.x) {
      const int64_t here = Normalized<In, P>(l, s).count;
      count += (double)here;
      const Parts<MOST> parts(l, s, n.g.n_params, here);
      if (here && n.a.mean_origin == COMPUTED) sum += parts.total(parts.sums(p));
    }
    count = sum_block(count);
    sum = sum_block(sum);
    if (threadIdx.x == 0) joined[0] = n.mean(p, sum / count), joined[1] = count;
    __syncthreads();
    const double mean = joined[0];
    n.count = (int64_t)joined[1];
    if (n.a.stddev_origin == COMPUTED) {
      for (int s = threadIdx.x; s < l.n; s += blockDim.x) {
        const Normalized<In, P> of(l, s);
        if (of.count == 0) continue;
        const Parts<MOST> parts(l, s, of.g.n_params, of.count);
        const double off = n.a.mean_origin == COMPUTED ? parts.total(parts.sums(p)) / (double)of.count - mean : 0;
        squares += parts.total(parts.squares(p)) + (double)of.count * off * off;
      }
      squares = sum_block(squares);
    }
    if (threadIdx.x == 0) shared.mean(p) = mean, shared.factor(p) = n.factor(p, squares);
    __syncthreads();
  }
}

// The same for many parameters: a thread for each, over all samples.
template <class Out, class In>
DEVICE void normalize_alone_together(const Launch &l) {
  Normalized<In> first(l, 0);
  each_of(first.g.n_params, [&](int64_t p) {
    // Calls use(index, sample, offset of the parameter's first element) for all samples that are not empty.
    const auto each_sample = [&](auto use) {
      for (int s = 0; s < l.n; s++) {
        const Normalized<In> n(l, s);
        if (n.count) use(s, n, n.g.first(p));
      }
    };
    double sum = 0, squares = 0;
    first.count = 0;
    each_sample([&](int, const Normalized<In> &n, int64_t at) {
      first.count += n.count;
      if (n.a.mean_origin == COMPUTED) sum += sum_elements(n.in + at, n.g, 0, n.count, 1, [](double x) { return x; });
    });
    const double mean = first.mean(p, sum / (double)first.count);
    each_sample([&](int, const Normalized<In> &n, int64_t at) {
      if (n.a.stddev_origin == COMPUTED)
        squares += sum_elements(n.in + at, n.g, 0, n.count, 1, [&](double x) { return (x - mean) * (x - mean); });
    });
    const double factor = first.factor(p, squares);
    each_sample([&](int s, const Normalized<In> &n, int64_t at) {
      Out *out = l.tensors[0][s].template as<Out>();
      for (int64_t k = 0; k < n.count; k++) n.write(out, at + n.g.element(k), mean, factor);
    });
  });
}

template <class Out, class In, int MOST, int P>
DEVICE void normalize_apply(const Launch &l, bool together) {
  FOR_SAMPLES(sample, l) {
    const int64_t volume = l.tensors[1][sample].volume();
    if (volume == 0) continue;
    const Normalized<In, P> n(l, sample);
    const Parts<MOST> parts(l, together ? 0 : sample, n.g.n_params, n.count);
    Out *out = l.tensors[0][sample].as<Out>();
    if constexpr (P > 0) {
      constexpr int V = 16 / (sizeof(Out) > sizeof(In) ? sizeof(Out) : sizeof(In));
      apply_runs<Out, P, V, kRunThreads, 4>(
          n, out, [&](int64_t p) { return parts.mean(p); }, [&](int64_t p) { return parts.factor(p); });
    } else {
      each_of(volume, [&](int64_t i) {
        const int64_t p = n.g.param_of(i);
        n.write(out, i, parts.mean(p), parts.factor(p));
      });
    }
  }
}
