// SPDX-License-Identifier: Apache-2.0
// H.264: where pictures begin (ITU-T H.264, 7.4.1.2), and their presentation order (8.2.1).
#include <algorithm>
#include <array>

#include "video/bits.h"
#include "video/h264.h"
#include "video/pictures.h"

namespace {

enum NalType { SLICE = 1, PARTITION_A = 2, IDR_SLICE = 5, SEI = 6, SEQUENCE = 7, PICTURE = 8, DELIMITER = 9 };

struct Sequence {
  bool is_there = false;
  int frame_bits = 4, order_type = 0, order_bits = 4;
  bool separate_planes = false, frames_only = true, delta_is_zero = false;
  int32_t offset_non_reference = 0, offset_bottom = 0;
  std::vector<int32_t> offsets;
  int32_t width = 0, height = 0;
  int64_t rate = 0, rate_scale = 1;
};

struct PictureSet {
  bool is_there = false;
  int sequence = 0;
  bool has_bottom_order = false;
};

struct Slice {
  int type = 0, reference = 0;
  int set = 0;
  uint32_t frame = 0, idr_id = 0, order_lsb = 0;
  bool is_field = false, is_bottom = false;
  int32_t delta_bottom = 0, delta[2] = {};
};

void skip_scaling_list(Bits &b, int size) {
  int32_t last = 8, next = 8;
  for (int i = 0; i < size; i++) {
    if (next) next = (last + b.se() + 256) % 256;
    last = next ? next : last;
  }
}

Sequence read_sequence(Bits &b, uint32_t *id) {
  Sequence s;
  const uint32_t profile = b.bits(8);
  b.skip(16);
  *id = b.ue();
  uint32_t chroma = 1;
  for (const uint32_t p : {100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135}) {
    if (p != profile) continue;
    chroma = b.ue();
    if (chroma == 3) s.separate_planes = b.bit();
    b.ue(), b.ue(), b.bit();
    if (!b.bit()) break;
    for (int i = 0; i < (chroma == 3 ? 12 : 8); i++)
      if (b.bit()) skip_scaling_list(b, i < 6 ? 16 : 64);
  }
  s.frame_bits = b.ue_until(12) + 4;
  s.order_type = b.ue_until(2);
  if (s.order_type == 0) {
    s.order_bits = b.ue_until(12) + 4;
  } else if (s.order_type == 1) {
    s.delta_is_zero = b.bit();
    s.offset_non_reference = b.se(), s.offset_bottom = b.se();
    s.offsets.resize((size_t)b.ue_until(255));
    for (int32_t &offset : s.offsets) offset = b.se();
  }
  b.ue(), b.bit();
  const int64_t columns = (int64_t)b.ue_until(1 << 16) + 1, rows = (int64_t)b.ue_until(1 << 16) + 1;
  s.frames_only = b.bit();
  if (!s.frames_only) b.bit();
  b.bit();
  int64_t crop[4] = {};  // left, right, top, bottom
  if (b.bit())
    for (int64_t &c : crop) c = b.ue_until(1 << 20);
  const int x_unit = chroma == 1 || chroma == 2 ? 2 : 1, y_unit = (chroma == 1 ? 2 : 1) * (s.frames_only ? 1 : 2);
  s.width = (int32_t)std::max<int64_t>(0, 16 * columns - x_unit * (crop[0] + crop[1]));
  s.height = (int32_t)std::max<int64_t>(0, 16 * rows * (s.frames_only ? 1 : 2) - y_unit * (crop[2] + crop[3]));
  s.is_there = true;
  if (!b.bit()) return s;  // the rest is about presentation
  if (b.bit() && b.bits(8) == 255) b.skip(32);
  if (b.bit()) b.bit();
  if (b.bit()) {
    b.skip(4);
    if (b.bit()) b.skip(24);
  }
  if (b.bit()) b.ue(), b.ue();
  if (b.bit()) {
    const int64_t units = b.bits(32), scale = b.bits(32);
    if (units && scale) s.rate = scale, s.rate_scale = 2 * units;
  }
  return s;
}

class Parser : public StreamParser {
 public:
  bool configures(Bytes b) const override {
    const int type = b.size ? b.data[0] & 31 : 0;
    return type == SEQUENCE || type == PICTURE;
  }

  UnitRole unit(Bytes b) override {
    if (b.size < 2) return BESIDE;
    const int type = b.data[0] & 31;
    try {
      if (type == SEQUENCE) return read_sequence_set(b), BEFORE;
      if (type == PICTURE) return read_picture_set(b), BEFORE;
      if (type == SEI) return read_recovery(b), BEFORE;
      if (type == SLICE || type == PARTITION_A || type == IDR_SLICE) return read_slice(b);
    } catch (const std::exception &) {
      return BESIDE;
    }
    return type == DELIMITER || (type >= 14 && type <= 18) ? BEFORE : BESIDE;
  }

 private:
  UnitRole lost() { return picture = {}, picture.is_lost = true, FIRST; }
  static Bits payload(Bytes b) { return Bits({b.data + 1, b.size - 1}); }

  void read_sequence_set(Bytes b) {
    Bits bits = payload(b);
    uint32_t id = 0;
    Sequence s;
    s = read_sequence(bits, &id);
    if (id >= sequences_.size()) return;
    if (!width) width = s.width, height = s.height, rate = s.rate, rate_scale = s.rate_scale;
    sequences_[id] = s;
  }
  void read_picture_set(Bytes b) {
    Bits bits = payload(b);
    const uint32_t id = bits.ue(), sequence = bits.ue();
    if (id >= sets_.size() || sequence >= sequences_.size()) return;
    bits.bit();
    sets_[id] = {true, (int)sequence, bits.bit() != 0};
  }
  void read_recovery(Bytes b) {
    const int64_t found = h264_recovery(b);
    if (found >= 0) recovers_ = true;
  }

  UnitRole read_slice(Bytes unit) {
    Bits b = payload(unit);
    Slice s;
    s.type = unit.data[0] & 31, s.reference = unit.data[0] >> 5 & 3;
    b.ue(), b.ue();
    s.set = b.ue_until(255);
    if (!sets_[(size_t)s.set].is_there) return lost();
    const PictureSet &set = sets_[(size_t)s.set];
    const Sequence &q = sequences_[(size_t)set.sequence];
    if (!q.is_there) return lost();
    if (q.separate_planes) b.skip(2);
    s.frame = b.bits(q.frame_bits);
    if (!q.frames_only) {
      s.is_field = b.bit();
      if (s.is_field) s.is_bottom = b.bit();
    }
    if (s.type == IDR_SLICE) s.idr_id = b.ue();
    if (q.order_type == 0) {
      s.order_lsb = b.bits(q.order_bits);
      if (set.has_bottom_order && !s.is_field) s.delta_bottom = b.se();
    } else if (q.order_type == 1 && !q.delta_is_zero) {
      s.delta[0] = b.se();
      if (set.has_bottom_order && !s.is_field) s.delta[1] = b.se();
    }
    if (has_slice_ && is_same_picture(s)) return MORE;
    const bool is_second = has_slice_ && waits_for_field_ && s.is_field && s.is_bottom != last_.is_bottom &&
                           s.frame == last_.frame && !s.reference == !last_.reference && s.type != IDR_SLICE;
    const int64_t order = order_of(s, q);
    last_ = s, has_slice_ = true;
    waits_for_field_ = s.is_field && !is_second;
    if (is_second) return MORE;
    picture = {};
    picture.is_closed = s.type == IDR_SLICE;
    picture.is_key = picture.is_closed || recovers_;
    recovers_ = false;
    picture.order = (n_idr_ << 34) + order;
    return FIRST;
  }

  bool is_same_picture(const Slice &s) const {
    const Slice &p = last_;
    return s.frame == p.frame && s.set == p.set && s.is_field == p.is_field && s.is_bottom == p.is_bottom &&
           !s.reference == !p.reference && (s.type == IDR_SLICE) == (p.type == IDR_SLICE) && s.idr_id == p.idr_id &&
           s.order_lsb == p.order_lsb && s.delta_bottom == p.delta_bottom && s.delta[0] == p.delta[0] &&
           s.delta[1] == p.delta[1];
  }

  int64_t order_of(const Slice &s, const Sequence &q) {
    const bool is_idr = s.type == IDR_SLICE;
    if (is_idr) n_idr_++, order_msb_ = order_lsb_ = 0, frame_offset_ = 0, last_frame_ = 0;
    if (q.order_type == 0) {
      const int64_t range = 1ll << q.order_bits, lsb = s.order_lsb;
      int64_t msb = order_msb_;
      if (lsb < order_lsb_ && order_lsb_ - lsb >= range / 2) msb += range;
      if (lsb > order_lsb_ && lsb - order_lsb_ > range / 2) msb -= range;
      if (s.reference) order_msb_ = msb, order_lsb_ = lsb;
      return msb + lsb + std::min(0, s.delta_bottom);
    }
    if (!is_idr && s.frame < last_frame_) frame_offset_ += 1ll << q.frame_bits;
    last_frame_ = s.frame;
    int64_t number = frame_offset_ + s.frame;
    if (q.order_type == 2) return 2 * number - !s.reference;
    if (q.offsets.empty()) number = 0;
    if (!s.reference && number > 0) number--;
    int64_t order = 0;
    if (number > 0) {
      const int64_t cycle = (int64_t)q.offsets.size();
      int64_t sum = 0;
      for (const int32_t offset : q.offsets) sum += offset;
      order = (number - 1) / cycle * sum;
      for (int64_t i = 0; i <= (number - 1) % cycle; i++) order += q.offsets[(size_t)i];
    }
    if (!s.reference) order += q.offset_non_reference;
    if (s.is_field) return order + s.delta[0] + (s.is_bottom ? q.offset_bottom : 0);
    return order + s.delta[0] + std::min<int64_t>(0, (int64_t)q.offset_bottom + s.delta[1]);
  }

  std::array<Sequence, 32> sequences_;
  std::array<PictureSet, 256> sets_;
  Slice last_;
  bool has_slice_ = false, waits_for_field_ = false, recovers_ = false;
  int64_t n_idr_ = 0, order_msb_ = 0, order_lsb_ = 0, frame_offset_ = 0;
  uint32_t last_frame_ = 0;
};

}  // namespace

std::unique_ptr<StreamParser> h264_parser() { return std::make_unique<Parser>(); }
