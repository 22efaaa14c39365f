// SPDX-License-Identifier: Apache-2.0
// ITU-T H.264: NAL units (7.3.1, annex B) and the recovery point message (D.1.8).
#include "video/h264.h"

#include <algorithm>

#include "video/bits.h"

namespace {

enum NalType { SLICE = 1, PARTITION_A = 2, IDR_SLICE = 5, SEI = 6 };
constexpr int kRecoveryPoint = 6;

// The number at the start of a payload; -1 if missing.
int64_t read_number(Bytes b) {
  try {
    return Bits(b).ue();
  } catch (const std::exception &) {
    return -1;
  }
}

void read_messages(Bytes sei, H264Packet *result) {
  for (int64_t at = 1; at + 2 <= sei.size;) {
    int64_t type = 0, size = 0;
    while (sei.has(at, 1) && sei.data[at] == 0xff) type += 255, at++;
    if (!sei.has(at, 1)) return;
    type += sei.data[at++];
    while (sei.has(at, 1) && sei.data[at] == 0xff) size += 255, at++;
    if (!sei.has(at, 1)) return;
    size += sei.data[at++];
    if (type == kRecoveryPoint && sei.has(at, 1))
      result->recovery = read_number({sei.data + at, std::min(size, sei.size - at)});
    at += size;
  }
}

// Returns whether to continue.
bool read_unit(Bytes unit, H264Packet *result) {
  if (unit.size < 1) return true;
  const int type = unit.data[0] & 31;
  if (type == SEI) read_messages(unit, result);
  if (type != SLICE && type != PARTITION_A && type != IDR_SLICE) return true;
  result->is_idr = type == IDR_SLICE, result->is_reference = unit.data[0] >> 5 & 3;
  return false;
}

}  // namespace

int64_t h264_recovery(Bytes unit) {
  H264Packet p;
  read_messages(unit, &p);
  return p.recovery;
}

int h264_length_size(const VideoIndex &index) {
  return index.extradata.size() > 4 && index.extradata[0] == 1 ? (index.extradata[4] & 3) + 1 : 0;
}

H264Packet read_h264_packet(Bytes p, int length_size) {
  H264Packet result;
  int64_t at = 0;
  if (length_size) {
    while (p.has(at, length_size)) {
      int64_t size = 0;
      for (int i = 0; i < length_size; i++) size = size << 8 | p.data[at++];
      if (!read_unit({p.data + at, std::min(size, p.size - at)}, &result) || size > p.size - at) break;
      at += size;
    }
    return result;
  }
  // A unit extends from one start code (00 00 01) to the next.
  const auto next_start = [&](int64_t from) {
    for (int64_t i = from; i + 3 <= p.size; i++)
      if (p.data[i] == 0 && p.data[i + 1] == 0 && p.data[i + 2] == 1) return i;
    return p.size;
  };
  for (at = next_start(0); at < p.size;) {
    const int64_t begin = at + 3;
    // Slices are long, and only their beginning matters.
    if (p.has(begin, 1) && (p.data[begin] & 31) <= IDR_SLICE) {
      if (!read_unit({p.data + begin, std::min<int64_t>(p.size - begin, 1)}, &result)) break;
    }
    at = next_start(begin);
    if (p.has(begin, 1) && (p.data[begin] & 31) == SEI) read_unit({p.data + begin, at - begin}, &result);
  }
  return result;
}
