// SPDX-License-Identifier: Apache-2.0
// PES packets (ISO/IEC 13818-1, 2.4.3.6) and those of MPEG-1 systems: where the payload begins, and its times.
#pragma once
#include "video/elementary.h"

// Reads the header of a packet, storing its times in `c`. Returns the header's size, or -1 if it is no video packet.
inline int64_t read_pes(Bytes b, Chunk *c) {
  if (!b.has(0, 9) || b.data[0] || b.data[1] || b.data[2] != 1 || b.data[3] >> 4 != 0xe) return -1;
  const auto time = [&](int64_t at) {
    const uint8_t *p = b.data + at;
    return (int64_t)(p[0] >> 1 & 7) << 30 | (int64_t)p[1] << 22 | (int64_t)(p[2] >> 1) << 15 | (int64_t)p[3] << 7 |
           p[4] >> 1;
  };
  const auto times = [&](int64_t at, bool has_dts) {
    if (!b.has(at, has_dts ? 10 : 5)) return;
    c->has_time = true, c->pts = c->dts = time(at);
    if (has_dts) c->dts = time(at + 5);
  };
  if (b.data[6] >> 6 == 2) {
    if (b.data[7] >> 6 >= 2) times(9, b.data[7] >> 6 == 3);
    return 9 + b.data[8];
  }
  int64_t at = 6;  // MPEG-1
  while (b.has(at, 1) && b.data[at] == 0xff) at++;
  if (b.has(at, 2) && b.data[at] >> 6 == 1) at += 2;
  if (!b.has(at, 1)) return -1;
  const int kind = b.data[at] >> 4;
  if (kind == 2 || kind == 3) times(at, kind == 3);
  return at + (kind == 2 ? 5 : kind == 3 ? 10 : 1);
}
