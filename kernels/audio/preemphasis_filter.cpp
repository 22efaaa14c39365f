// SPDX-License-Identifier: Apache-2.0
#include "audio/preemphasis_filter.h"

#include "core/kernel.h"
#include "core/stream.h"

constexpr int64_t kBlock = 1024;

template <class Real>
CLONES static void filter(Real *__restrict out, const Real *__restrict in, int64_t n, Real coeff) {
  for (int64_t i = 0; i < n; i++) out[i] = in[i] - coeff * in[i - 1];
}
template <class Out, class In>
CLONES static void convert(Out *__restrict out, const In *__restrict in, int64_t n) {
  for (int64_t i = 0; i < n; i++) out[i] = saturate<Out>(in[i]);
}

template <class F>
static void for_numbers(int dtype, F f) {
  for_types<uint8_t, uint16_t, uint32_t, uint64_t, int8_t, int16_t, int32_t, int64_t, float, double>(dtype, f);
}

static void run(const Tensor *out, const Tensor *in, const PreemphasisFilterArgs &a, Scratch &scratch) {
  const int64_t n = in->volume(), other = element_before_first(a.border, n);
  if (!n) return;
  if (in->dtype == FLOAT && out->dtype == FLOAT) {
    const float *x = in->as<float>();
    return write_blocks(out->as<float>(), n, scratch, [&](float *to, int64_t first, int64_t m) {
      if (!first) *to++ = x[0] - (other < 0 ? 0 : a.coeff * x[other]), first++, m--;
      filter(to, x + first, m, a.coeff);
    });
  }
  for_numbers(in->dtype, [&](auto t) {
    using In = decltype(t);
    using Real = typename PreemphasisReal<In>::type;
    const In *x = in->as<In>();
    Real values[kBlock + 1], filtered[kBlock];
    for (int64_t first = 0; first < n; first += kBlock) {
      const int64_t m = n - first < kBlock ? n - first : kBlock;
      values[0] = first ? (Real)x[first - 1] : other < 0 ? 0 : (Real)x[other];
      convert(values + 1, x + first, m);
      filter(filtered, values + 1, m, (Real)a.coeff);
      for_numbers(out->dtype, [&](auto o) {
        using Out = decltype(o);
        convert(out->as<Out>() + first, (const Real *)filtered, m);
        if (!first && other < 0) *out->as<Out>() = saturate<Out>(x[0]);  // with all its digits
      });
    }
  });
}

EXPORT_KERNEL(preemphasis_filter, PreemphasisFilterArgs, run)
