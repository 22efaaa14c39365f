// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <vector>

#include "core/native_time.h"
#include "core/pool.h"
#include "generic/copy.h"

extern "C" int copy(Tensor *, const Tensor *, const void *, Scratch *, char *);

// Copies n samples to others of the same shapes.
EXPORT void copy_rows(const Tensor *out, const Tensor *in, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    if (const int64_t bytes = in[i].volume() * item_size(in[i].dtype)) std::memcpy(out[i].data, in[i].data, bytes);
}
EXPORT_SHORT(copy_rows)

// The same with the threads of a pool, if not null. `streams`: non-temporal stores. Returns 0 if there is not enough
// memory.
EXPORT int32_t copy_rows_by_threads(Pool *pool, Tensor *out, Tensor *in, int32_t n, int32_t streams) {
  NativeTime time;
  if (!pool) return copy_rows(out, in, n), 1;
  try {
    const CopyArgs args{streams};
    const Step step{copy, (const char *)&args, 0, 1, 1, {{out, -1, 0}, {in, -1, 0}}};
    std::vector<int32_t> status(n);
    char unused[kErrorSize];
    Chain chain{};
    chain.steps = &step, chain.n_steps = 1, chain.n_rows = n;
    chain.status = status.data(), chain.errors = unused, chain.chunk = -1;
    pool->run(chain);
    return 1;
  } catch (const std::exception &) {
    return 0;
  }
}
EXPORT_LONG(copy_rows_by_threads)
