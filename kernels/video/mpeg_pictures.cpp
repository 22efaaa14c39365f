// SPDX-License-Identifier: Apache-2.0
// MPEG-1 and MPEG-2: where pictures begin (ITU-T H.262, 6.1 and 6.2).
#include "video/bits.h"
#include "video/pictures.h"

namespace {

enum Code { PICTURE = 0x00, LAST_SLICE = 0xaf, SEQUENCE = 0xb3, EXTENSION = 0xb5, GROUP = 0xb8 };
enum Extension { OF_SEQUENCE = 1, OF_PICTURE = 8 };
constexpr int kFrame = 3;  // a frame picture, not a field

class Parser : public StreamParser {
 public:
  Parser() { has_order = false; }

  bool configures(Bytes b) const override {
    return b.size > 1 && (b.data[0] == SEQUENCE || (b.data[0] == EXTENSION && b.data[1] >> 4 != OF_PICTURE));
  }

  UnitRole unit(Bytes b) override {
    if (!b.size) return BESIDE;
    const uint32_t code = b.data[0];
    if (b.size < 5) return code == SEQUENCE || code == GROUP ? BEFORE : BESIDE;
    const uint8_t *p = b.data + 1;
    if (code == SEQUENCE && b.size > 8) {
      if (!width) {
        width = p[0] << 4 | p[1] >> 4, height = (p[1] & 15) << 8 | p[2];
        constexpr int kRates[][2] = {{24000, 1001}, {24, 1}, {25, 1},       {30000, 1001},
                                     {30, 1},       {50, 1}, {60000, 1001}, {60, 1}};
        const int k = (p[3] & 15) - 1;
        if (k >= 0 && k < 8) rate = kRates[k][0], rate_scale = kRates[k][1];
      }
      return BEFORE;
    }
    if (code == GROUP) return is_closed_ = p[3] >> 6 & 1, has_group_ = true, BEFORE;
    if (code == EXTENSION && p[0] >> 4 == OF_SEQUENCE && b.size > 6 && !is_extended_) {
      is_extended_ = true;
      width |= (p[1] & 1) << 13 | p[2] >> 7 << 12, height |= (p[2] >> 5 & 3) << 12;
      rate *= (p[5] >> 5 & 3) + 1, rate_scale *= (p[5] & 31) + 1;
    }
    if (code == EXTENSION && p[0] >> 4 == OF_PICTURE) structure_ = p[2] & 3;
    if (code != PICTURE) return BESIDE;
    const int number = p[0] << 2 | p[1] >> 6, type = p[1] >> 3 & 7;
    // This picture's structure comes after its header; that of the previous one is known.
    const bool is_second = has_picture_ && structure_ != kFrame && !is_second_ && number == number_;
    has_picture_ = true, number_ = number, is_second_ = is_second, structure_ = kFrame;
    if (is_second) return MORE;
    picture = {};
    picture.is_key = type == 1, picture.waits = type != 3;
    picture.is_closed = has_group_ && is_closed_;
    has_group_ = false;
    return FIRST;
  }

 private:
  bool is_extended_ = false, is_closed_ = false, has_group_ = false, has_picture_ = false, is_second_ = false;
  int structure_ = kFrame, number_ = 0;
};

}  // namespace

std::unique_ptr<StreamParser> mpeg_parser() { return std::make_unique<Parser>(); }

std::unique_ptr<StreamParser> parser_of(const char *codec) {
  if (!strcmp(codec, "h264")) return h264_parser();
  if (!strcmp(codec, "hevc")) return hevc_parser();
  if (!strcmp(codec, "mpeg2video") || !strcmp(codec, "mpeg1video")) return mpeg_parser();
  return nullptr;
}

const char *codec_of_stream(Bytes b) {
  int64_t at = 0;
  while (at < 16 && b.has(at, 1) && b.data[at] == 0) at++;
  if (at < 2 || !b.has(at, 3) || b.data[at] != 1) return "";
  const int first = b.data[at + 1], second = b.data[at + 2];
  if (first == SEQUENCE) return "mpeg2video";
  if ((first == 0x40 || first == 0x42 || first == 0x46 || first == 0x4e) && second == 1)
    return "hevc";  // parameter sets, a delimiter, messages
  const int type = first & 31;
  if (first < 0x80 && (type == 7 || (first >> 5 == 0 && (type == 6 || type == 9)))) return "h264";
  return "";
}
