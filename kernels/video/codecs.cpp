// SPDX-License-Identifier: Apache-2.0
#include "video/codecs.h"

#include <cstring>
#include <iterator>

namespace {

struct Codec {
  const char *name;             // FFmpeg's decoder name
  const char *fourccs;          // of MP4, QuickTime and AVI, four letters each
  const char *matroska;         // separated by spaces
  uint8_t object, last_object;  // 0 if none
  uint8_t stream_type;          // 0 if none
};

constexpr Codec kCodecs[] = {
    {"h264", "avc1avc3H264h264X264x264DAVC", "V_MPEG4/ISO/AVC", 0x21, 0x21, 0x1b},
    {"hevc", "hvc1hev1HEVChevcH265h265X265x265", "V_MPEGH/ISO/HEVC", 0x23, 0x23, 0x24},
    {"vp8", "vp08VP80", "V_VP8", 0, 0, 0},
    {"vp9", "vp09VP90", "V_VP9", 0xb1, 0xb1, 0},
    {"av1", "av01AV01", "V_AV1", 0, 0, 0},
    {"mpeg4", "mp4vMP4VXVIDxvidDIVXdivxDX50FMP4", "V_MPEG4/ISO/ASP V_MPEG4/ISO/SP V_MPEG4/ISO/AP", 0x20, 0x20, 0x10},
    {"mpeg2video", "m2v1mpg2MPG2", "V_MPEG2", 0x60, 0x65, 0x02},
    {"mpeg1video", "m1v1mpg1MPG1", "V_MPEG1", 0x6a, 0x6a, 0x01},
    {"mjpeg", "jpegmjpamjpgMJPG", "V_MJPEG", 0x6c, 0x6c, 0},
    {"prores", "apcoapcsapcnapchap4hap4x", "V_PRORES", 0, 0, 0},
    {"h263", "s263h263H263", "", 0, 0, 0},
};

template <class Is>
const char *first(Is is) {
  for (const Codec &c : kCodecs)
    if (is(c)) return c.name;
  return "";
}

}  // namespace

const char *codec_at(int64_t i) { return i < (int64_t)std::size(kCodecs) ? kCodecs[i].name : nullptr; }

const char *codec_named(std::string_view name) {
  return first([&](const Codec &c) { return name == c.name; });
}

const char *codec_of_fourcc(uint32_t type) {
  const char letters[4] = {(char)(type >> 24), (char)(type >> 16), (char)(type >> 8), (char)type};
  return first([&](const Codec &c) {
    for (const char *at = c.fourccs; *at; at += 4)
      if (!memcmp(at, letters, 4)) return true;
    return false;
  });
}

const char *codec_of_matroska(std::string_view codec_id) {
  return first([&](const Codec &c) {
    for (std::string_view ids = c.matroska; !ids.empty();) {
      const size_t n = ids.find(' ');
      if (ids.substr(0, n) == codec_id) return true;
      ids.remove_prefix(n == ids.npos ? ids.size() : n + 1);
    }
    return false;
  });
}

const char *codec_of_object(uint32_t object_type) {
  return first([&](const Codec &c) { return c.object && object_type >= c.object && object_type <= c.last_object; });
}

const char *codec_of_stream_type(uint32_t stream_type) {
  return first([&](const Codec &c) { return c.stream_type && stream_type == c.stream_type; });
}
