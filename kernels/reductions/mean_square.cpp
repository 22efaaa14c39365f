// SPDX-License-Identifier: Apache-2.0
#include "reductions/mean_square.h"

#include "reductions/reduce.h"

template <class Op, class Out>
static void write(const Tensor &out, const Tensor &in, const Groups &g, bool root, Scratch &scratch) {
  auto *total = scratch.array<typename Op::Wide>(g.n_params);
  reduce<Op>(total, in, g, nullptr, scratch);
  const int64_t count = g.count();
  for (int64_t p = 0; p < g.n_params; p++) out.as<Out>()[p] = finish_mean_square<Out>((double)total[p], count, root);
}

static void run(const Tensor *out, const Tensor *in, const MeanSquareArgs &a, Scratch &scratch) {
  const Groups g(*in, a.reduced);
  for_types<uint8_t, int8_t, uint16_t, int16_t, uint32_t, int32_t, uint64_t, int64_t, float>(in->dtype, [&](auto i) {
    typedef decltype(i) In;
    typedef std::conditional_t<sizeof(In) == 1, WholeSquares<In>, RealSquares<In>> Op;
    if (out->dtype == DTypeOf<In>::value) {
      write<Op, In>(*out, *in, g, a.root, scratch);
    } else {
      for_types<uint64_t, int64_t, float>(out->dtype,
                                          [&](auto o) { write<Op, decltype(o)>(*out, *in, g, a.root, scratch); });
    }
  });
}

EXPORT_KERNEL(mean_square, MeanSquareArgs, run)
