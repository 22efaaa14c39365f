// SPDX-License-Identifier: Apache-2.0
#include "reductions/extremum.h"

#include "reductions/reduce.h"

static void run(const Tensor *out, const Tensor *in, const ExtremumArgs &a, Scratch &scratch) {
  const Groups g(*in, a.reduced);
  for_types<uint8_t, int8_t, uint16_t, int16_t, uint32_t, int32_t, uint64_t, int64_t, float>(in->dtype, [&](auto i) {
    typedef decltype(i) T;
    T *to = out->as<T>();
    if (g.count() == 0)
      std::fill_n(to, g.n_params, a.largest ? Greatest<T>::of_none() : Least<T>::of_none());
    else if (a.largest)
      reduce<Greatest<T>>(to, *in, g, nullptr, scratch);
    else
      reduce<Least<T>>(to, *in, g, nullptr, scratch);
  });
}

EXPORT_KERNEL(extremum, ExtremumArgs, run)
