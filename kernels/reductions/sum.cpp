// SPDX-License-Identifier: Apache-2.0
#include "reductions/sum.h"

#include "reductions/reduce.h"

template <class Op, class Out>
static void write(const Tensor &out, const Tensor &in, const Groups &g, bool is_mean, Scratch &scratch) {
  auto *total = scratch.array<typename Op::Wide>(g.n_params);
  reduce<Op>(total, in, g, nullptr, scratch);
  const int64_t count = g.count();
  for (int64_t p = 0; p < g.n_params; p++)
    out.as<Out>()[p] = finish_sum<Out, typename Op::In>(total[p], count, is_mean);
}

static void run(const Tensor *out, const Tensor *in, const SumArgs &a, Scratch &scratch) {
  const Groups g(*in, a.reduced);
  for_types<uint8_t, int8_t, uint16_t, int16_t, uint32_t, int32_t, uint64_t, int64_t, float>(in->dtype, [&](auto i) {
    typedef decltype(i) In;
    if constexpr (!is_whole<In>()) {
      for_types<float>(out->dtype, [&](auto o) { write<RealSum<In>, decltype(o)>(*out, *in, g, a.is_mean, scratch); });
    } else if (sizeof(In) == 8 && out->dtype == FLOAT) {
      write<RealSum<In>, float>(*out, *in, g, a.is_mean, scratch);
    } else if (out->dtype == DTypeOf<In>::value) {
      write<WholeSum<In>, In>(*out, *in, g, a.is_mean, scratch);
    } else {
      for_types<uint64_t, int64_t, float>(
          out->dtype, [&](auto o) { write<WholeSum<In>, decltype(o)>(*out, *in, g, a.is_mean, scratch); });
    }
  });
}

EXPORT_KERNEL(sum, SumArgs, run)
