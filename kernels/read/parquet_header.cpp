// SPDX-License-Identifier: Apache-2.0
#include "read/parquet_header.h"

#include "core/kernel.h"

uint64_t read_varint(const uint8_t *&at, const uint8_t *end) {
  uint64_t value = 0;
  for (int shift = 0; shift < 70 && at < end; shift += 7) {
    const uint64_t byte = *at++;
    value |= (byte & 127) << shift;
    if (byte < 128) return value;
  }
  fail("it ends within a number, or has one of more than 64 bits");
}

namespace {

enum Kind { kStop, kTrue, kFalse, kByte, kI16, kI32, kI64, kDouble, kBinary, kList, kSet, kMap, kStruct };
constexpr int kDeepest = 16;

class Compact {
 public:
  Compact(const uint8_t *&at, const uint8_t *end) : at_(at), end_(end) {}

  // Calls use(number, kind) for each field of a struct; skips fields for which it returns false without reading them.
  template <class Use>
  void fields(Use use, int depth = 0) {
    if (depth > kDeepest) fail("the page's header is nested too deep");
    int64_t number = 0;
    for (;;) {
      const int head = byte(), kind = head & 15;
      if (kind == kStop) return;
      number = head >> 4 ? number + (head >> 4) : integer();
      if (!use(number, kind)) pass(kind, depth);
    }
  }
  int32_t int32(int kind) {
    const int64_t value = integer();
    if (kind != kI32 || value != (int32_t)value)
      fail("the page's header has no 32-bit number where there should be one");
    return (int32_t)value;
  }

 private:
  int byte() {
    if (at_ == end_) fail("it ends within a page's header");
    return *at_++;
  }
  int64_t integer() { return unzigzag(read_varint(at_, end_)); }
  void advance(uint64_t n) {
    if (n > (uint64_t)(end_ - at_)) fail("it ends within a page's header");
    at_ += n;
  }
  void pass(int kind, int depth, bool in_list = false) {
    if (depth > kDeepest) fail("the page's header is nested too deep");
    switch (kind) {
      case kTrue:
      case kFalse:
        return advance(in_list);
      case kByte:
        return advance(1);
      case kI16:
      case kI32:
      case kI64:
        read_varint(at_, end_);
        return;
      case kDouble:
        return advance(8);
      case kBinary:
        return advance(read_varint(at_, end_));
      case kList:
      case kSet: {
        const int head = byte();
        uint64_t n = head >> 4;
        if (n == 15) n = read_varint(at_, end_);
        for (; n; n--) pass(head & 15, depth + 1, true);
        return;
      }
      case kMap: {
        uint64_t n = read_varint(at_, end_);
        const int kinds = n ? byte() : 0;
        for (; n; n--) pass(kinds >> 4, depth + 1, true), pass(kinds & 15, depth + 1, true);
        return;
      }
      case kStruct:
        return fields([](int64_t, int) { return false; }, depth + 1);
    }
    fail("the page's header has a field of the type %d, which there is not", kind);
  }
  const uint8_t *&at_, *const end_;
};

}  // namespace

ParquetPage read_page_header(const uint8_t *&at, const uint8_t *end) {
  ParquetPage p;
  Compact in(at, end);
  auto data = [&](int64_t number, int kind) {  // also of a dictionary, whose fields differ from the third on
    if (number < 1 || number > 3 || (number == 3 && kind != kI32)) return false;
    (number == 1 ? p.n_values : number == 2 ? p.encoding : p.definition_encoding) = in.int32(kind);
    return true;
  };
  auto data_v2 = [&](int64_t number, int kind) {
    if (number == 7) p.is_packed = kind == kTrue;
    if (number != 1 && (number < 4 || number > 6)) return false;
    (number == 1   ? p.n_values
     : number == 4 ? p.encoding
     : number == 5 ? p.definition_bytes
                   : p.repetition_bytes) = in.int32(kind);
    return true;
  };
  in.fields([&](int64_t number, int kind) {
    if (number >= 1 && number <= 3) {
      (number == 1 ? p.type : number == 2 ? p.size : p.packed_size) = in.int32(kind);
      return true;
    }
    if (kind != kStruct || (number != 5 && number != 7 && number != 8)) return false;
    number == 8 ? in.fields(data_v2, 1) : in.fields(data, 1);
    return true;
  });
  if (p.type < 0 || p.size < 0 || p.packed_size < 0)
    fail("the page's header lacks its type or size, or has a negative one");
  return p;
}
