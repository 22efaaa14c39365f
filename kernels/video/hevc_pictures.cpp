// SPDX-License-Identifier: Apache-2.0
// HEVC: where pictures begin (ITU-T H.265, 7.4.2.4), and their presentation order (8.3.1).
#include <algorithm>
#include <array>

#include "video/bits.h"
#include "video/pictures.h"

namespace {

enum NalType {
  RADL = 6,
  RASL = 8,
  LAST_SUB_LAYER = 14,
  FIRST_KEY = 16,
  FIRST_IDR = 19,
  CRA = 21,
  LAST_KEY = 23,
  VIDEO = 32,
  SEQUENCE = 33,
  PICTURE = 34,
  DELIMITER = 35,
  END_OF_SEQUENCE = 36,
  PREFIX_SEI = 39
};

struct Sequence {
  bool is_there = false, separate_planes = false;
  int order_bits = 4;
  int32_t width = 0, height = 0;
};

struct PictureSet {
  bool is_there = false;
  int sequence = 0, extra_bits = 0;
  bool has_output_flag = false;
};

void skip_profile(Bits &b, int sub_layers) {
  b.skip(88 + 8);
  bool has_profile[8] = {}, has_level[8] = {};
  for (int i = 0; i < sub_layers; i++) has_profile[i] = b.bit(), has_level[i] = b.bit();
  if (sub_layers) b.skip(2 * (8 - sub_layers));
  for (int i = 0; i < sub_layers; i++) b.skip((has_profile[i] ? 88 : 0) + (has_level[i] ? 8 : 0));
}

class Parser : public StreamParser {
 public:
  bool configures(Bytes b) const override {
    const int type = b.size ? b.data[0] >> 1 & 63 : 0;
    return type == VIDEO || type == SEQUENCE || type == PICTURE;
  }

  UnitRole unit(Bytes b) override {
    if (b.size < 3) return BESIDE;
    const int type = b.data[0] >> 1 & 63;
    if ((b.data[0] & 1) || b.data[1] >> 3) return BESIDE;  // of another layer
    try {
      if (type < VIDEO) return read_slice(b, type);
      if (type == VIDEO) read_video_set(b);
      if (type == SEQUENCE) read_sequence_set(b);
      if (type == PICTURE) read_picture_set(b);
    } catch (const std::exception &) {
      return BESIDE;
    }
    if (type == END_OF_SEQUENCE) is_at_start_ = true;
    return type <= DELIMITER || type == PREFIX_SEI || (type >= 41 && type <= 44) || (type >= 48 && type <= 55) ? BEFORE
                                                                                                               : BESIDE;
  }

 private:
  UnitRole lost() { return picture = {}, picture.is_lost = true, FIRST; }
  static Bits payload(Bytes b) { return Bits({b.data + 2, b.size - 2}); }

  void read_video_set(Bytes unit) {
    Bits b = payload(unit);
    b.skip(12);
    const int sub_layers = (int)b.bits(3);
    b.skip(17);
    skip_profile(b, sub_layers);
    for (int i = b.bit() ? 0 : sub_layers; i <= sub_layers; i++) b.ue(), b.ue(), b.ue();
    const int last_layer = (int)b.bits(6);
    for (int sets = b.ue_until(1023); sets > 0; sets--) b.skip(last_layer + 1);
    if (!b.bit()) return;
    const int64_t units = b.bits(32), scale = b.bits(32);
    if (units && scale && !rate) rate = scale, rate_scale = units;
  }
  void read_sequence_set(Bytes unit) {
    Bits b = payload(unit);
    b.skip(4);
    const int sub_layers = (int)b.bits(3);
    b.bit();
    skip_profile(b, sub_layers);
    const uint32_t id = b.ue(), chroma = b.ue();
    Sequence s;
    if (chroma == 3) s.separate_planes = b.bit();
    const int64_t columns = b.ue_until(1 << 20), rows = b.ue_until(1 << 20);
    int64_t crop[4] = {};  // left, right, top, bottom
    if (b.bit())
      for (int64_t &c : crop) c = b.ue_until(1 << 20);
    const int x_unit = chroma == 1 || chroma == 2 ? 2 : 1, y_unit = chroma == 1 ? 2 : 1;
    s.width = (int32_t)std::max<int64_t>(0, columns - x_unit * (crop[0] + crop[1]));
    s.height = (int32_t)std::max<int64_t>(0, rows - y_unit * (crop[2] + crop[3]));
    b.ue(), b.ue();
    s.order_bits = b.ue_until(12) + 4;
    s.is_there = true;
    if (id >= sequences_.size()) return;
    if (!width) width = s.width, height = s.height;
    sequences_[id] = s;
  }
  void read_picture_set(Bytes unit) {
    Bits b = payload(unit);
    const uint32_t id = b.ue(), sequence = b.ue();
    if (id >= sets_.size() || sequence >= sequences_.size()) return;
    PictureSet set;
    set.sequence = (int)sequence;
    b.bit();
    set.has_output_flag = b.bit();
    set.extra_bits = (int)b.bits(3);
    set.is_there = true;
    sets_[id] = set;
  }

  UnitRole read_slice(Bytes unit, int type) {
    Bits b = payload(unit);
    if (!b.bit()) return MORE;  // not the first slice of its picture
    const bool is_key = type >= FIRST_KEY && type <= LAST_KEY, is_idr = type == FIRST_IDR || type == FIRST_IDR + 1;
    if (is_key) b.bit();
    const PictureSet &set = sets_[(size_t)b.ue_until(63)];
    if (!set.is_there || !sequences_[(size_t)set.sequence].is_there) return lost();
    const Sequence &q = sequences_[(size_t)set.sequence];
    b.skip(set.extra_bits);
    b.ue();
    const bool is_shown = set.has_output_flag ? b.bit() : true;
    if (q.separate_planes) b.skip(2);
    const int64_t lsb = is_idr ? 0 : b.bits(q.order_bits), range = 1ll << q.order_bits;
    picture = {};
    const bool restarts = is_key && (is_idr || type < FIRST_IDR || is_at_start_);
    int64_t msb = 0;
    if (restarts) {
      n_starts_++, skips_leading_ = type != FIRST_IDR && type != FIRST_IDR + 1;
    } else {
      msb = order_msb_;
      if (lsb < order_lsb_ && order_lsb_ - lsb >= range / 2) msb += range;
      if (lsb > order_lsb_ && lsb - order_lsb_ > range / 2) msb -= range;
      if (is_key) skips_leading_ = false;
    }
    is_at_start_ = false;
    const bool is_first_layer = (unit.data[1] & 7) == 1, is_leading = type >= RADL && type <= RASL + 1;
    const bool is_sub_layer = type <= LAST_SUB_LAYER && type % 2 == 0;  // nothing of its layer refers to it
    if (is_first_layer && !is_leading && !is_sub_layer) order_msb_ = msb, order_lsb_ = lsb;
    picture.is_key = is_key;
    // Pictures shown before the first key picture have missing references.
    picture.is_hidden = !is_shown || (skips_leading_ && (type == RASL || type == RASL + 1));
    picture.order = (n_starts_ << 34) + msb + lsb;
    return FIRST;
  }

  std::array<Sequence, 16> sequences_;
  std::array<PictureSet, 64> sets_;
  bool is_at_start_ = true, skips_leading_ = false;
  int64_t n_starts_ = 0, order_msb_ = 0, order_lsb_ = 0;
};

}  // namespace

std::unique_ptr<StreamParser> hevc_parser() { return std::make_unique<Parser>(); }
