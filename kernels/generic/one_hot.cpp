// SPDX-License-Identifier: Apache-2.0
#include "generic/one_hot.h"

#include <algorithm>

#include "core/kernel.h"

namespace {

template <class In>
int64_t class_at(const Tensor &in, int64_t i) {
  return class_of(in.as<const In>()[i]);
}

template <class F>
void for_inputs(int dtype, F f) {
  for_types<uint8_t, uint16_t, uint32_t, uint64_t, int8_t, int16_t, int32_t, int64_t, float, double>(dtype, f);
}

}  // namespace

static void run(const Tensor *out, const Tensor *in, const OneHotArgs &a, Scratch &scratch) {
  const int64_t n = in->volume();
  if (!out->volume()) return;
  int64_t *found = scratch.array<int64_t>(n);
  for_inputs(in->dtype, [&](auto t) {
    for (int64_t i = 0; i < n; i++) found[i] = class_at<decltype(t)>(*in, i);
  });
  for_any_dtype(out->dtype, [&](auto t) {
    using T = decltype(t);
    const T on = saturate<T>(a.on), off = saturate<T>(a.off);
    T *to = out->as<T>();
    std::fill_n(to, out->volume(), off);
    for (int64_t i = 0; i < n; i++)
      if (found[i] >= 0 && found[i] < a.classes)
        to[((i / a.inner) * a.classes + found[i]) * a.inner + i % a.inner] = on;
  });
}

EXPORT_KERNEL(one_hot, OneHotArgs, run)
