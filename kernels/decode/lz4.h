// SPDX-License-Identifier: Apache-2.0
// Blocks of LZ4, see https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md: sequences of a token, literals, which
// are copied from the input, and a match, which is copied from earlier output. The last one ends after its literals.
// Each device has its own `Input` and `Output`:
//
//   Input:   left() is the number of unread bytes; byte() reads one; extend(n) adds bytes to n up to the first that
//            is not 255, false if there is none
//   Output:  room() is the number of bytes left; made() of bytes written; literals(in, n) copies n bytes of the input;
//            match(offset, n) copies n bytes from `offset` bytes before the end; source and target may overlap
//
// Neither is asked for more than it has, whatever the input says.
#pragma once
#include "core/tensor.h"

enum Lz4Fault : int32_t {
  LZ4_FINE,
  LZ4_CUT,     // the input ends within a sequence
  LZ4_OFFSET,  // a match begins before the output, or has the offset 0
  LZ4_ROOM,    // the output has no room for a sequence
};

constexpr int kLz4Extended = 15, kLz4ShortestMatch = 4;

template <class Input, class Output>
SHARED Lz4Fault lz4_decode(Input &in, Output &out) {
  for (;;) {
    if (in.left() < 1) return LZ4_CUT;
    const int token = in.byte();
    int64_t n = token >> 4;
    if (n == kLz4Extended && !in.extend(n)) return LZ4_CUT;
    if (n > in.left()) return LZ4_CUT;
    if (n > out.room()) return LZ4_ROOM;
    out.literals(in, n);
    if (in.left() == 0) return LZ4_FINE;
    if (in.left() < 2) return LZ4_CUT;
    int offset = in.byte();
    offset |= in.byte() << 8;
    n = token & 15;
    if (n == kLz4Extended && !in.extend(n)) return LZ4_CUT;
    if (offset == 0 || offset > out.made()) return LZ4_OFFSET;
    n += kLz4ShortestMatch;
    if (n > out.room()) return LZ4_ROOM;
    out.match(offset, n);
  }
}
