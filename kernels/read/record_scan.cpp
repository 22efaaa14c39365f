// SPDX-License-Identifier: Apache-2.0
#include "read/record_scan.h"

#include <algorithm>

#include "core/export.h"
#include "core/native_time.h"
#include "read/crc32c.h"
#include "read/recordio.h"

namespace {

// Reads parts of an object from front to back; reads ahead if the steps are small.
class Glance {
 public:
  explicit Glance(Object &object) : size(object.length()), object_(object), data_(new char[kMost]) {}
  // `n` bytes from `offset` on; null if the object ends before.
  const char *at(int64_t offset, int64_t n) {
    if (offset > size - n) return nullptr;
    if (offset < begin_ || offset + n > end_) {
      const bool is_near = offset - last_ < kMost / 8;
      begin_ = offset;
      end_ = offset + object_.read(offset, std::min(is_near ? kMost : n, size - offset), data_.get());
      if (offset + n > end_) return nullptr;
    }
    last_ = offset;
    return data_.get() + (offset - begin_);
  }
  const int64_t size;

 private:
  static constexpr int64_t kMost = 64 << 10;
  Object &object_;
  std::unique_ptr<char[]> data_;
  int64_t begin_ = 0, end_ = 0, last_ = -kMost;
};

// `bytes_at(glance, offset)` returns the size of the record there.
template <class F>
void scan(Object &object, Table &table, F bytes_at) {
  Glance glance(object);
  for (int64_t offset = 0; offset < glance.size;) {
    const int64_t bytes = bytes_at(glance, offset);
    table[RECORD_OFFSET].push(offset);
    table[RECORD_SIZE].push(bytes);
    offset += bytes;
  }
}

[[noreturn]] void fail_cut_off(int64_t offset, int64_t size) {
  fail("the record at byte %lld is cut off: the file ends at byte %lld", (long long)offset, (long long)size);
}

[[noreturn]] void fail_no_record(const char *kind, int64_t offset) {
  if (offset) fail("no record begins at byte %lld, where the one before ends: the file is damaged", (long long)offset);
  fail("this is no %s file, or a compressed one: no record begins at byte 0", kind);
}

}  // namespace

void scan_tfrecord(Object &object, Table &table) {
  scan(object, table, [](Glance &glance, int64_t at) {
    const char *header = glance.at(at, 12);
    if (!header) fail_cut_off(at, glance.size);
    uint64_t length;
    uint32_t crc;
    memcpy(&length, header, 8), memcpy(&crc, header + 8, 4);
    if (masked_crc32c(header, 8) != crc) fail_no_record("TFRecord", at);
    if (length > (uint64_t)glance.size || (int64_t)length > glance.size - at - 16) fail_cut_off(at, glance.size);
    return (int64_t)length + 16;
  });
}

void scan_recordio(Object &object, Table &table) {
  scan(object, table, [](Glance &glance, int64_t at) {
    int64_t next = at;
    for (int part = 0;; part++) {
      const char *header = glance.at(next, RecordIoPart::kHeader);
      if (!header) fail_cut_off(at, glance.size);
      const RecordIoPart p(header);
      if (!p.is_magic || p.is_first() != !part) fail_no_record("RecordIO", next);
      next += RecordIoPart::kHeader + p.padded();
      if (next > glance.size) fail_cut_off(at, glance.size);
      if (p.is_last()) return next - at;
    }
  });
}

template <class F>
static int scan_file(const char *path, Table *table, F scan) {
  NativeTime time;
  return fill_table(table, [&](Table &t) {
    const auto object = open_object(path, Storage::kOnce);
    scan(*object, t);
  });
}

EXPORT int tfrecord_records(const char *path, Table *table) { return scan_file(path, table, scan_tfrecord); }
EXPORT_LONG(tfrecord_records)
EXPORT int recordio_records(const char *path, Table *table) { return scan_file(path, table, scan_recordio); }
EXPORT_LONG(recordio_records)
