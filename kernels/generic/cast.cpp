// SPDX-License-Identifier: Apache-2.0
#include "generic/cast.h"

#include "core/stream.h"

template <class Out, class In>
CLONES static void convert(Out *__restrict out, const In *__restrict in, int64_t n) {
  for (int64_t i = 0; i < n; i++) out[i] = saturate<Out>(in[i]);
}

static void run(const Tensor *out, const Tensor *in, const CastArgs &, Scratch &scratch) {
  int64_t n = in->volume();
  if (n == 0) return;
  if (out->dtype == in->dtype) {
    return copy_out(out->data, in->data, n * item_size(in->dtype), scratch);
  }
  for_any_dtype(out->dtype, [&](auto o) {
    for_any_dtype(in->dtype, [&](auto i) {
      using Out = decltype(o);
      using In = decltype(i);
      if constexpr (DTypeOf<Out>::value != DTypeOf<In>::value)
        write_blocks(out->as<Out>(), n, scratch,
                     [&](Out *to, int64_t first, int64_t m) { convert(to, in->as<In>() + first, m); });
    });
  });
}

EXPORT_KERNEL(cast, CastArgs, run)
