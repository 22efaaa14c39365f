// SPDX-License-Identifier: Apache-2.0
#include "read/recordio.h"

#include "read/parser.h"

namespace {

// flag, label, and two numbers of the image; then `flag` labels if it is not 0, then the image
constexpr int64_t kImageHeader = 24;

constexpr char kMagic[] = {0x0a, 0x23, (char)0xd7, (char)0xce};

// The data of a record: in place if it has one part, else joined.
Part payload(Sample &sample) {
  const Part record = sample.parts[0];
  char *joined = nullptr;
  int64_t at = 0, size = 0;
  for (int part = 0;; part++) {
    if (record.size - at < RecordIoPart::kHeader)
      fail("the record has %lld bytes, which end within it: the file is cut off, or the index is that of another file",
           (long long)record.size);
    const RecordIoPart p(record.data + at);
    if (!p.is_magic || p.is_first() != !part)
      fail("no record begins here: the file is damaged, or the index is that of another file");
    at += RecordIoPart::kHeader;
    if (p.length > record.size - at)
      fail(
          "the record has %lld bytes, one of its parts %lld: the file is cut off, or the index is that of another file",
          (long long)record.size, (long long)p.length);
    if (!part && p.is_last()) return {record.data + at, p.length};
    if (!part) joined = (char *)sample.take(record.size);
    if (part) memcpy(joined + size, kMagic, 4), size += 4;
    memcpy(joined + size, record.data + at, p.length);
    size += p.length;
    if (p.is_last()) return {joined, size};
    at += p.padded();
  }
}

void parse(Sample &sample, const RecordioArgs &) {
  const Part data = payload(sample);
  if (data.size < kImageHeader)
    fail("the record holds no image: it has %lld bytes, the header of one has 24", (long long)data.size);
  uint32_t flag;
  memcpy(&flag, data.data, 4);
  const int64_t left = data.size - kImageHeader, n_labels = flag ? flag : 1;
  if (flag > left / 4) fail("the record has %u labels, and %lld bytes for them and the image", flag, (long long)left);
  Tensor &labels = sample.out(1);
  labels.shape[0] = n_labels;
  sample.give_elements(1, flag ? data.data + kImageHeader : data.data + 4, 4 * n_labels);
  sample.give(0, data.data + kImageHeader + 4 * (int64_t)flag, left - 4 * (int64_t)flag);
}

}  // namespace

EXPORT_PARSER(recordio, RecordioArgs, parse)
