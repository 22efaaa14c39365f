// SPDX-License-Identifier: Apache-2.0
#include "read/webdataset.h"

#include "read/parser.h"
#include "read/tar.h"

namespace {

// The index may belong to another archive, or the archive may have changed since it was scanned.
void check_header(const Part &part) {
  const uint8_t *block = (const uint8_t *)part.data;
  if (part.size < kTarBlock || !tar_header_fits(block))
    fail("there is no tar header before the member: the index does not fit the archive; wds2idx makes a new one");
  const int64_t size = tar_header_size(block), most = (int64_t)1 << 33;
  // From 8 GiB on the size may be in an extended header instead.
  if (size != part.size - kTarBlock && part.size - kTarBlock < most)
    fail("the member has %lld bytes, the index says %lld: it does not fit the archive; wds2idx makes a new one",
         (long long)size, (long long)(part.size - kTarBlock));
}

void parse(Sample &sample, const WebdatasetArgs &a) {
  for (int k = 0; k < a.n_outputs; k++) {
    const Part &part = sample.parts[k];
    Tensor &out = sample.out(k);
    out.ndim = 1, out.shape[0] = 0;
    if (!part.data) {  // a missing component
      out.data = sample.take(1);
      continue;
    }
    check_header(part);
    const int64_t bytes = part.size - kTarBlock, item = item_size(out.dtype);
    if (bytes % item)
      fail("the component of output %d has %lld bytes, no multiple of the %lld that an element of its dtype has", k,
           (long long)bytes, (long long)item);
    out.shape[0] = bytes / item;
    sample.give_elements(k, part.data + kTarBlock, bytes);
  }
}

}  // namespace

EXPORT_PARSER(webdataset, WebdatasetArgs, parse)
