// SPDX-License-Identifier: Apache-2.0
// ITU-T H.264 (7.3.2.1.1, annexes B and E), ITU-T H.265 (7.3.2.2, 7.3.3, 7.3.4, 7.3.7, annexes B and E), and ISO/IEC
// 14496-15 for how containers store parameter sets.
#include "video/parameter_sets.h"

#include <algorithm>

#include "video/bits.h"
#include "video/h264.h"

namespace {

enum { H264_SPS = 7, HEVC_RASL_N = 8, HEVC_RASL_R = 9, HEVC_LAST_SLICE = 31, HEVC_SPS = 33 };
constexpr uint8_t kStart[4] = {0, 0, 0, 1};

// Reads the beginning of the VUI, which both codecs have.
void read_colours(Bits &b, StreamFormat *f) {
  if (b.bit() && b.bits(8) == 255) b.skip(32);  // aspect ratio
  if (b.bit()) b.bit();                         // overscan
  if (b.bit()) {
    b.bits(3);
    f->is_full_range = b.bit();
    if (b.bit()) b.skip(16), f->matrix = (int32_t)b.bits(8);
  }
  if (b.bit()) {
    f->siting = (int32_t)std::min(b.ue(), 5u) + 1;
    b.ue();  // of the second field
  }
}

StreamFormat read_h264(Bits &b) {
  StreamFormat f;
  b.skip(8);  // the unit's header
  const uint32_t profile = b.bits(8);
  b.skip(16);
  b.ue();
  const uint32_t high[] = {100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135};
  if (std::find(std::begin(high), std::end(high), profile) != std::end(high)) {
    f.chroma = (int32_t)b.ue_until(3);
    if (f.chroma == 3) b.bit();
    f.bits = (int32_t)b.ue_until(6) + 8;
    if ((int32_t)b.ue_until(6) + 8 != f.bits) fail("chroma of other bits than luma");
    b.bit();
    for (int i = 0, n = b.bit() ? f.chroma == 3 ? 12 : 8 : 0; i < n; i++) {
      if (!b.bit()) continue;
      int64_t last = 8, next = 8;
      for (int j = 0; j < (i < 6 ? 16 : 64); j++) {
        if (next) next = (last + b.se() + 256) & 255;
        if (next) last = next;
      }
    }
  }
  b.ue();
  const uint32_t order = b.ue_until(2);
  if (order == 0) b.ue();
  if (order == 1) {
    b.bit(), b.ue(), b.ue();
    for (uint32_t n = b.ue_until(255); n; n--) b.ue();
  }
  b.ue(), b.bit(), b.ue(), b.ue();
  if (!b.bit()) b.bit();  // fields
  b.bit();
  if (b.bit()) b.ue(), b.ue(), b.ue(), b.ue();  // cropping
  if (b.bit()) read_colours(b, &f);
  return f;
}

void skip_profile(Bits &b, int sub_layers) {
  b.skip(96);
  bool has_profile[8] = {}, has_level[8] = {};
  for (int i = 0; i < sub_layers; i++) has_profile[i] = b.bit(), has_level[i] = b.bit();
  if (sub_layers) b.skip(2 * (8 - sub_layers));
  for (int i = 0; i < sub_layers; i++) b.skip(88 * has_profile[i] + 8 * has_level[i]);
}

void skip_scaling_lists(Bits &b) {
  for (int size = 0; size < 4; size++)
    for (int matrix = 0; matrix < 6; matrix += size == 3 ? 3 : 1) {
      if (!b.bit()) {
        b.ue();
        continue;
      }
      for (int n = std::min(64, 16 << 2 * size) + (size > 1); n; n--) b.ue();
    }
}

// The distances of a set of reference pictures; may be coded relative to the previous set, which it then replaces.
void read_references(Bits &b, bool is_first, std::vector<int64_t> *distances) {
  std::vector<int64_t> before, after;
  if (!is_first && b.bit()) {
    const bool is_negative = b.bit();
    const int64_t shift = ((int64_t)b.ue_until(1 << 15) + 1) * (is_negative ? -1 : 1);
    distances->push_back(0);
    for (const int64_t d : *distances) {
      const bool is_kept = b.bit() || b.bit();
      if (is_kept && d + shift) (d + shift < 0 ? before : after).push_back(d + shift);
    }
  } else {
    const uint32_t n_before = b.ue_until(16), n_after = b.ue_until(16);
    int64_t d = 0;
    for (uint32_t i = 0; i < n_before; i++) d -= (int64_t)b.ue_until(1 << 15) + 1, b.bit(), before.push_back(d);
    d = 0;
    for (uint32_t i = 0; i < n_after; i++) d += (int64_t)b.ue_until(1 << 15) + 1, b.bit(), after.push_back(d);
  }
  std::sort(before.rbegin(), before.rend());
  std::sort(after.begin(), after.end());
  *distances = before;
  distances->insert(distances->end(), after.begin(), after.end());
  if (distances->size() > 32) fail("a parameter set is damaged");
}

StreamFormat read_hevc(Bits &b) {
  StreamFormat f;
  b.skip(16 + 4);  // the unit's header
  const int sub_layers = (int)b.bits(3);
  b.bit();
  skip_profile(b, sub_layers);
  b.ue();
  f.chroma = (int32_t)b.ue_until(3);
  if (f.chroma == 3) b.bit();
  b.ue(), b.ue();
  if (b.bit()) b.ue(), b.ue(), b.ue(), b.ue();  // cropping
  f.bits = (int32_t)b.ue_until(8) + 8;
  if ((int32_t)b.ue_until(8) + 8 != f.bits) fail("chroma of other bits than luma");
  const int order_bits = (int)b.ue_until(12) + 4;
  for (int i = b.bit() ? 0 : sub_layers; i <= sub_layers; i++) b.ue(), b.ue(), b.ue();
  for (int i = 0; i < 6; i++) b.ue();
  if (b.bit() && b.bit()) skip_scaling_lists(b);
  b.bit(), b.bit();
  if (b.bit()) b.skip(8), b.ue(), b.ue(), b.bit();
  std::vector<int64_t> distances;
  for (uint32_t i = 0, n = b.ue_until(64); i < n; i++) read_references(b, i == 0, &distances);
  if (b.bit())
    for (uint32_t n = b.ue_until(32); n; n--) b.skip(order_bits + 1);
  b.bit(), b.bit();
  if (b.bit()) read_colours(b, &f);
  return f;
}

bool is_hevc(const VideoIndex &index) { return !strcmp(index.codec, "hevc"); }

// Appends units from a list with 16-bit sizes.
void append_units(Bytes box, int64_t *at, int64_t n, std::vector<uint8_t> &to) {
  for (; n; n--) {
    const Bytes unit = box.part(*at + 2, box.be16(*at));
    to.insert(to.end(), kStart, kStart + 4);
    to.insert(to.end(), unit.data, unit.data + unit.size);
    *at += 2 + unit.size;
  }
}

// The position of the next start code; the end if there is none.
int64_t next_start(Bytes s, int64_t from) {
  for (int64_t i = from; i + 3 <= s.size; i++)
    if (s.data[i] == 0 && s.data[i + 1] == 0 && s.data[i + 2] == 1) return i;
  return s.size;
}

int length_size(const VideoIndex &index) {
  if (!is_hevc(index)) return h264_length_size(index);
  const std::vector<uint8_t> &e = index.extradata;
  return e.size() > 22 && (e[0] || e[1] || e[2] > 1) ? (e[21] & 3) + 1 : 0;
}

}  // namespace

bool has_units(const VideoIndex &index) { return is_hevc(index) || !strcmp(index.codec, "h264"); }

std::vector<uint8_t> parameter_sets(const VideoIndex &index) {
  const Bytes box{index.extradata.data(), (int64_t)index.extradata.size()};
  if (!length_size(index)) return index.extradata;
  std::vector<uint8_t> sets;
  if (is_hevc(index)) {
    int64_t at = 23;
    for (uint32_t n = box.u8(22); n; n--) {
      const uint32_t n_units = box.be16(at + 1);
      at += 3;
      append_units(box, &at, n_units, sets);
    }
  } else {
    int64_t at = 6;
    append_units(box, &at, box.u8(5) & 31, sets);
    const uint32_t n = box.u8(at++);
    append_units(box, &at, n, sets);
  }
  return sets;
}

void append_packet(const VideoIndex &index, Bytes packet, std::vector<uint8_t> &to) {
  const int size_bytes = has_units(index) ? length_size(index) : 0;
  if (!size_bytes) {
    to.insert(to.end(), packet.data, packet.data + packet.size);
    return;
  }
  for (int64_t at = 0; at < packet.size;) {
    int64_t size = 0;
    if (!packet.has(at, size_bytes)) fail("a packet is cut short");
    for (int i = 0; i < size_bytes; i++) size = size << 8 | packet.data[at++];
    if (!packet.has(at, size)) fail("a packet is cut short");
    to.insert(to.end(), kStart, kStart + 4);
    to.insert(to.end(), packet.data + at, packet.data + at + size);
    at += size;
  }
}

StreamFormat read_stream_format(const VideoIndex &index, Bytes s) {
  const bool hevc = is_hevc(index);
  StreamFormat found;
  bool is_found = false;
  for (int64_t at = next_start(s, 0); at < s.size;) {
    const int64_t begin = at + 3;
    at = next_start(s, begin);
    if (begin >= s.size || (hevc ? s.data[begin] >> 1 & 63 : s.data[begin] & 31) != (hevc ? HEVC_SPS : H264_SPS))
      continue;
    Bits bits({s.data + begin, at - begin});
    const StreamFormat f = hevc ? read_hevc(bits) : read_h264(bits);
    if (is_found && !(f == found)) fail("parameter sets that differ");
    found = f, is_found = true;
  }
  if (!is_found) fail("no parameter sets");
  return found;
}

bool is_skipped_leading(const VideoIndex &index, Bytes p) {
  const int size_bytes = length_size(index);
  for (int64_t at = size_bytes ? 0 : next_start(p, 0); at < p.size;) {
    const int64_t begin = at + (size_bytes ? size_bytes : 3);
    if (begin >= p.size) break;
    const int type = p.data[begin] >> 1 & 63;
    if (type <= HEVC_LAST_SLICE) return type == HEVC_RASL_N || type == HEVC_RASL_R;
    if (size_bytes) {
      int64_t size = 0;
      for (; at < begin; at++) size = size << 8 | p.data[at];
      at += size;
    } else {
      at = next_start(p, begin);
    }
  }
  return false;
}
