// SPDX-License-Identifier: Apache-2.0
#include "generic/full.h"

#include <algorithm>

#include "core/kernel.h"

namespace {

template <class T>
void broadcast(T *out, const Tensor &to, const T *in, const Tensor &from) {
  const int64_t n = to.volume();
  if (from.volume() == 1) {
    std::fill_n(out, n, in[0]);
    return;
  }
  // Strides of the input per axis of the output; 0 where it is repeated.
  int64_t step[kMaxDims] = {0}, size = 1;
  for (int d = to.ndim - 1, e = from.ndim - 1; d >= 0 && e >= 0; d--, e--) {
    step[d] = from.shape[e] == 1 ? 0 : size;
    size *= from.shape[e];
  }
  const int64_t row = to.ndim ? to.shape[to.ndim - 1] : 1, inner = to.ndim ? step[to.ndim - 1] : 0;
  int64_t at[kMaxDims] = {0}, place = 0;
  for (int64_t i = 0; i < n; i += row) {
    for (int64_t k = 0; k < row; k++) out[i + k] = in[place + k * inner];
    for (int d = to.ndim - 2; d >= 0; d--) {
      place += step[d];
      if (++at[d] < to.shape[d]) break;
      place -= step[d] * to.shape[d];
      at[d] = 0;
    }
  }
}

}  // namespace

static void run(const Tensor *out, const Tensor *in, const FullArgs &a, Scratch &scratch) {
  if (!out->volume()) return;
  for_any_dtype(out->dtype, [&](auto t) {
    using Out = decltype(t);
    if (a.from < 0) {
      std::fill_n(out->as<Out>(), out->volume(), saturate<Out>(a.value));
      return;
    }
    const Tensor &from = in[a.from];
    if (from.dtype == out->dtype) {
      broadcast(out->as<Out>(), *out, from.as<const Out>(), from);
      return;
    }
    const int64_t n = from.volume();
    Out *converted = scratch.array<Out>(n);
    for_any_dtype(from.dtype, [&](auto s) {
      const auto *values = from.as<const decltype(s)>();
      for (int64_t i = 0; i < n; i++) converted[i] = saturate<Out>(values[i]);
    });
    broadcast(out->as<Out>(), *out, (const Out *)converted, from);
  });
}

EXPORT_KERNEL(full, FullArgs, run)
