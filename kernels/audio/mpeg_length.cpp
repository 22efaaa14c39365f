// SPDX-License-Identifier: Apache-2.0
// Headers of MPEG audio frames: ISO/IEC 11172-3, 2.4.1.3, and ISO/IEC 13818-3; those with a version of 2.5 are
// Fraunhofer's. The first frame may hold a table instead of sound (Xing, Info or VBRI), which may tell the
// number of frames.
#include "audio/mpeg_length.h"

#include <algorithm>
#include <cstring>

namespace {

constexpr int64_t kMostJunk = 1 << 16;  // bytes between tags and the first frame that are searched
constexpr int64_t kTableEnd = 64;       // of the first frame, in which the table's name lies

struct Header {
  int64_t bytes = 0, samples = 0;  // of the frame
  uint32_t kind = 0;               // the bits that are the same in all frames of a file
};

// A header of layer III with a known bit rate; false if there is none.
bool read_header(AudioBytes file, int64_t at, Header &h) {
  static constexpr int rates[3] = {44100, 48000, 32000};
  static constexpr int kilobits[2][15] = {{0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320},
                                          {0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160}};
  if (at < 0 || file.size - at < 4) return false;
  const uint8_t *b = file.data + at;
  const int version = b[1] >> 3 & 3, layer = b[1] >> 1 & 3, bit_rate = b[2] >> 4, rate = b[2] >> 2 & 3;
  if (b[0] != 0xff || (b[1] & 0xe0) != 0xe0 || version == 1 || layer != 1 || bit_rate == 0 || bit_rate == 15 ||
      rate == 3)
    return false;
  const bool is_lsf = version != 3, is_mono = b[3] >> 6 == 3;  // LSF: low sampling frequencies
  const int64_t hertz = rates[rate] >> (version == 3 ? 0 : version == 2 ? 1 : 2);
  h.bytes = (is_lsf ? 72 : 144) * 1000 * (int64_t)kilobits[is_lsf][bit_rate] / hertz + (b[2] >> 1 & 1);
  h.samples = is_lsf ? 576 : 1152;
  h.kind = (uint32_t)b[1] >> 1 << 8 | (uint32_t)rate << 1 | (uint32_t)is_mono;
  return true;
}

bool has(AudioBytes file, int64_t at, const char *text) {
  const int64_t n = (int64_t)std::strlen(text);
  return at >= 0 && file.size - at >= n && !std::memcmp(file.data + at, text, n);
}

// Behind tags of ID3 version 2.
int64_t after_tags(AudioBytes file) {
  int64_t at = 0;
  while (has(file, at, "ID3") && file.size - at >= 10) {
    const uint8_t *b = file.data + at;
    at += 10 + ((int64_t)(b[6] & 127) << 21 | (b[7] & 127) << 14 | (b[8] & 127) << 7 | (b[9] & 127));
    if (b[5] & 16) at += 10;  // a footer
  }
  return at;
}

// The first frame, which another one of its kind or the end follows; -1 if there is none.
int64_t first_frame(AudioBytes file, Header &h) {
  const int64_t begin = after_tags(file);
  const int64_t end = begin ? std::min(file.size, begin + kMostJunk) : std::min<int64_t>(file.size, 1);
  for (int64_t at = begin; at < end; at++) {
    Header next;
    if (!read_header(file, at, h)) continue;
    if (at + h.bytes == file.size || (read_header(file, at + h.bytes, next) && next.kind == h.kind)) return at;
  }
  return -1;
}

enum Table { NONE, LENGTH, OTHER };

// What the first frame holds instead of sound.
Table table_of(AudioBytes file, int64_t frame, const Header &h) {
  for (int64_t at = frame + 4; at < frame + std::min(kTableEnd, h.bytes - 8); at++) {
    if (has(file, at, "Xing") || has(file, at, "Info"))
      return file.size - at >= 8 && (file.data[at + 7] & 1) ? LENGTH : OTHER;
    if (has(file, at, "VBRI")) return OTHER;  // libsndfile would take it for silence
  }
  return NONE;
}

bool is_tag(AudioBytes file, int64_t at) {
  return at == file.size || (has(file, at, "TAG") && file.size - at == 128) || has(file, at, "APETAGEX") ||
         has(file, at, "LYRICSBEGIN") || has(file, at, "ID3") || has(file, at, "3DI");
}

}  // namespace

MpegLength mpeg_length(AudioBytes file) {
  MpegLength found;
  Header first;
  int64_t at = first_frame(file, first);
  if (at < 0) return found;
  const Table table = table_of(file, at, first);
  found.begin = at, found.is_untold = table != LENGTH;
  if (!found.is_untold) return found;
  if (table == OTHER) found.begin = at += first.bytes;
  int64_t n = 0;
  Header h;
  while (read_header(file, at, h) && h.kind == first.kind && h.bytes <= file.size - at) at += h.bytes, n++;
  const bool is_cut = read_header(file, at, h) && h.kind == first.kind;  // in the last frame, which is not decoded
  if (is_cut || is_tag(file, at) || file.size - at < 4) found.samples = n * first.samples;
  return found;
}
