// SPDX-License-Identifier: Apache-2.0
#include "reductions/sum.h"

#include "reductions/reduce.h"

// Op may read the elements as another type of the same size.
template <class Op, class In, class Out>
static void write(const Tensor &out, const Tensor &in, const Groups &g, bool is_mean, Scratch &scratch) {
  auto *total = scratch.array<typename Op::Wide>(g.n_params);
  reduce<Op>(total, in, g, nullptr, scratch);
  const int64_t count = g.count();
  for (int64_t p = 0; p < g.n_params; p++) out.as<Out>()[p] = finish_sum<Out, In>(total[p], count, is_mean);
}

static void run(const Tensor *out, const Tensor *in, const SumArgs &a, Scratch &scratch) {
  const Groups g(*in, a.reduced);
  for_types<uint8_t, int8_t, uint16_t, int16_t, uint32_t, int32_t, uint64_t, int64_t, float>(in->dtype, [&](auto i) {
    typedef decltype(i) In;
    // Modulo 2^64, sums of signed and unsigned 64-bit integers are the same.
    typedef std::conditional_t<sizeof(In) == 8, WholeSum<uint64_t>, WholeSum<In>> Whole;
    if constexpr (!is_whole<In>()) {
      for_types<float>(out->dtype,
                       [&](auto o) { write<RealSum<In>, In, decltype(o)>(*out, *in, g, a.is_mean, scratch); });
    } else if (sizeof(In) == 8 && out->dtype == FLOAT) {
      write<RealSum<In>, In, float>(*out, *in, g, a.is_mean, scratch);
    } else if (out->dtype == DTypeOf<In>::value) {
      write<Whole, In, In>(*out, *in, g, a.is_mean, scratch);
    } else {
      for_types<uint64_t, int64_t, float>(
          out->dtype, [&](auto o) { write<Whole, In, decltype(o)>(*out, *in, g, a.is_mean, scratch); });
    }
  });
}

EXPORT_KERNEL(sum, SumArgs, run)
