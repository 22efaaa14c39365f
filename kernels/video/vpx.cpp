// SPDX-License-Identifier: Apache-2.0
// VP8: RFC 6386, 9.1 and 9.2. VP9: the bitstream specification, 6.2 and 7.2.
#include "video/vpx.h"

#include "video/bits.h"

namespace {

enum Matrix { BT709 = 1, UNKNOWN = 2, BT470BG = 5, SMPTE170M = 6, SMPTE240M = 7, BT2020 = 9 };  // ITU-T H.273
constexpr uint32_t kSync8 = 0x9d012a, kSync9 = 0x498342, kRgb = 7;

}  // namespace

StreamFormat read_vp8_format(Bytes b) {
  constexpr int64_t kHead = 10;  // the frame's tag, sync code and sizes
  if (b.u8(0) & 1 || (b.be16(3) << 8 | b.u8(5)) != kSync8) fail("no key frame");
  // Two flags of an arithmetic decoder with equal probabilities: the colour space, and whether clamping is unnecessary.
  const uint32_t value = b.u8(kHead);
  if (value >= 128) fail("colours that are not known");
  StreamFormat f;
  f.matrix = BT470BG, f.is_full_range = value >= 64;
  return f;
}

StreamFormat read_vp9_format(Bytes packet) {
  Bits b(packet);
  if (b.bits(2) != 2) fail("no frame");
  uint32_t profile = b.bit();
  profile |= b.bit() << 1;
  if (profile == 3) b.bit();
  const bool shows_existing = b.bit(), is_inter = !shows_existing && b.bit();
  if (shows_existing || is_inter) fail("no key frame");
  b.skip(2);
  if (b.bits(24) != kSync9) fail("no key frame");
  StreamFormat f;
  if (profile >= 2) f.bits = b.bit() ? 12 : 10;
  const uint32_t colours = b.bits(3);
  if (colours >= kRgb - 1) fail("colours that are not known");
  constexpr int kMatrices[] = {UNKNOWN, BT470BG, BT709, SMPTE170M, SMPTE240M, BT2020};
  f.matrix = kMatrices[colours];
  f.is_full_range = b.bit();
  if (profile & 1) {
    const bool half_columns = b.bit(), half_rows = b.bit();
    f.chroma = half_columns ? 2 : 3;
    if (half_rows) fail("chroma of half the rows");
  }
  return f;
}
