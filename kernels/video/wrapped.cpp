// SPDX-License-Identifier: Apache-2.0
#include "video/wrapped.h"

#include <algorithm>

#include "video/elementary.h"

Bytes unwrap(Bytes span, const VideoIndex &index, int32_t i, std::vector<uint8_t> &to) {
  const Wrapped &w = index.wrapped[(size_t)i];
  const Source source = source_of(span);
  const std::unique_ptr<Chunks> chunks = chunks_of(source, index.wrapping, index.stream, 0);
  to.clear();
  int64_t skip = w.skip, left = w.size;
  for (Chunk c; left > 0 && chunks->next(&c);) {
    const int64_t begin = std::min(skip, c.bytes.size), n = std::min(c.bytes.size - begin, left);
    to.insert(to.end(), c.bytes.data + begin, c.bytes.data + begin + n);
    skip -= begin, left -= n;
  }
  return {to.data(), (int64_t)to.size()};
}
