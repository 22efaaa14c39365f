// SPDX-License-Identifier: Apache-2.0
#include "read/mds_scan.h"

#include <vector>

#include "core/export.h"

void scan_mds(Object &shard, int64_t n_samples, Table &table) {
  const int64_t size = shard.length(), head = 4 * (n_samples + 2);
  uint32_t told = 0;
  if (n_samples < 0 || n_samples >= (int64_t)1 << 32 || head > size || shard.read(0, 4, (char *)&told) < 4)
    fail("the index says that the shard has %lld samples, but it has %lld bytes", (long long)n_samples,
         (long long)size);
  if (told != n_samples)
    fail("the index says that the shard has %lld samples, the shard says %u", (long long)n_samples, told);
  std::vector<uint32_t> offsets(n_samples + 1);
  if (shard.read(4, head - 4, (char *)offsets.data()) < head - 4) fail("the shard was cut short while it was read");
  for (int64_t i = 0; i < n_samples; i++) {
    const int64_t begin = offsets[i], end = offsets[i + 1];
    if (begin < head || end < begin || end > size)
      fail("sample %lld lies from byte %lld to %lld of the shard, which has %lld", (long long)i, (long long)begin,
           (long long)end, (long long)size);
    table[MDS_OFFSET].push(begin);
    table[MDS_LENGTH].push(end - begin);
  }
}

EXPORT int mds_samples(const char *path, int64_t n_samples, Table *table) {
  return fill_table(table, [&](Table &t) { scan_mds(*open_object(path, Storage::kOnce), n_samples, t); });
}
EXPORT_LONG(mds_samples)
