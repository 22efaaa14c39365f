// SPDX-License-Identifier: Apache-2.0
// Iterates over the fields of a message in protobuf's wire format: https://protobuf.dev/programming-guides/encoding.
#pragma once
#include <cstring>

#include "core/kernel.h"

class Message {
 public:
  enum Wire { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

  Message(const char *data, int64_t size) : begin_(data), at_(data), end_(data + size) {}

  // Moves to the next field: its number, its type and its value, a number or bytes.
  bool next() {
    if (at_ == end_) return false;
    const uint64_t tag = varint();
    field = (int)(tag >> 3), wire = (int)(tag & 7);
    if (tag >> 32 || !field) fail("byte %lld of the message is no field of protobuf", (long long)(at_ - begin_));
    switch (wire) {
      case kVarint:
        number = varint();
        break;
      case kFixed64:
        number = fixed(8);
        break;
      case kFixed32:
        number = fixed(4);
        break;
      case kBytes: {
        const uint64_t n = varint();
        if (n > (uint64_t)(end_ - at_))
          fail("field %d of the message has %llu bytes, of which only %lld are there", field, (unsigned long long)n,
               (long long)(end_ - at_));
        data = at_, size = (int64_t)n;
        at_ += n;
        break;
      }
      default:
        fail("field %d of the message has the unknown type %d", field, wire);
    }
    return true;
  }
  void want(int type) const {
    if (wire != type) fail("field %d of the message has the type %d; %d is expected", field, wire, type);
  }
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at_ == end_) break;
      const uint8_t b = (uint8_t)*at_++;
      value |= (uint64_t)(b & 0x7f) << shift;
      if (!(b & 0x80)) return value;
    }
    fail("the message ends, or is damaged, within a number at byte %lld", (long long)(at_ - begin_));
  }
  bool at_end() const { return at_ == end_; }

  int field = 0, wire = 0;
  uint64_t number = 0;
  const char *data = nullptr;
  int64_t size = 0;

 private:
  uint64_t fixed(int n) {
    if (end_ - at_ < n) fail("the message ends within field %d", field);
    uint64_t value = 0;
    memcpy(&value, at_, n);
    at_ += n;
    return value;
  }
  const char *begin_, *at_, *end_;
};
