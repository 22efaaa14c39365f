// SPDX-License-Identifier: Apache-2.0
#include "color/lookup_table.h"

#include "color/look_up.h"
#include "core/kernel.h"

// Out: values are only copied, so any type of the same size will do.
template <class Out, class In>
CLONES static void look(Out *__restrict out, const In *__restrict in, int64_t n, const Out *__restrict table,
                        uint32_t size) {
  for (int64_t i = 0; i < n; i++) out[i] = table[table_index(in[i], size)];
}

// The table has all 256 entries, so no range check is needed.
template <class Out>
CLONES static void look_bytes(Out *__restrict out, const uint8_t *__restrict in, int64_t n,
                              const Out *__restrict table) {
  for (int64_t i = 0; i < n; i++) out[i] = table[in[i]];
}

template <class Out, class In>
static void look_any(Out *out, const In *in, int64_t n, const Out *table, uint32_t size) {
  if constexpr (sizeof(In) == 1) {
    if (n >= 512) {
      Out all[256];
      for (int i = 0; i < 256; i++) all[i] = table[table_index((In)i, size)];
      const uint8_t *bytes = reinterpret_cast<const uint8_t *>(in);
      if constexpr (sizeof(Out) == 1)
        if (can_look_up()) return look_up(out, bytes, n, all);
      return look_bytes(out, bytes, n, all);
    }
  }
  look(out, in, n, table, size);
}

static void run(const Tensor *out, const Tensor *in, const LookupTableArgs &a, Scratch &) {
  for_types<uint8_t, int8_t, uint16_t, int16_t, uint32_t, int32_t, uint64_t, int64_t>(in->dtype, [&](auto i) {
    typedef decltype(i) In;
    const auto all = [&](auto o) {
      typedef decltype(o) Out;
      look_any(out->as<Out>(), in->as<In>(), in->volume(), reinterpret_cast<const Out *>(a.table), (uint32_t)a.size);
    };
    switch (item_size(out->dtype)) {
      case 1:
        return all(uint8_t{});
      case 2:
        return all(uint16_t{});
      case 4:
        return all(uint32_t{});
      default:
        return all(uint64_t{});
    }
  });
}

EXPORT_KERNEL(lookup_table, LookupTableArgs, run)
