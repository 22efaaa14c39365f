// SPDX-License-Identifier: Apache-2.0
#include "audio/sound_track.h"

#include "core/kernel.h"

namespace {

constexpr int64_t kAdtsHead = 7;      // bytes, without a checksum
constexpr int64_t kAdtsBlock = 1024;  // samples
constexpr int kAdtsRates[] = {96000, 88200, 64000, 48000, 44100, 32000, 24000, 22050, 16000, 12000, 11025, 8000, 7350};

// The length of the frame at `at` (ISO/IEC 13818-7, 6.2); 0 if there is none.
int64_t adts_length(Bytes b, int64_t at) {
  if (!b.has(at, kAdtsHead) || b.u8(at) != 0xff || (b.u8(at + 1) & 0xf6) != 0xf0) return 0;
  const int64_t n = (int64_t)(b.u8(at + 3) & 3) << 11 | b.u8(at + 4) << 3 | b.u8(at + 5) >> 5;
  return n < kAdtsHead || (b.u8(at + 2) >> 2 & 15) >= std::size(kAdtsRates) ? 0 : n;
}

// Where the first frame begins: after tags (ID3v2).
int64_t adts_begin(Bytes b) {
  if (!b.starts(0, "ID3", 3) || !b.has(0, 10)) return 0;
  return 10 + (b.u8(6) << 21 | b.u8(7) << 14 | b.u8(8) << 7 | b.u8(9));
}

bool is_adts(Bytes b) {
  const int64_t at = adts_begin(b), n = adts_length(b, at);
  return n && (at + n == b.size || adts_length(b, at + n));
}

bool is_mp4(Bytes b) {
  for (const char *type : {"ftyp", "moov", "mdat", "wide", "free", "skip"})
    if (b.starts(4, type, 4)) return true;
  return false;
}

bool is_matroska(Bytes b) { return b.starts(0, "\x1a\x45\xdf\xa3", 4); }

}  // namespace

bool is_sound_track(AudioBytes file) {
  const Bytes b{file.data, file.size};
  return is_mp4(b) || is_matroska(b) || is_adts(b);
}

SoundTrack read_sound_track(AudioBytes file) {
  const Bytes b{file.data, file.size};
  if (is_mp4(b)) return read_mp4_sound(b);
  return is_matroska(b) ? read_matroska_sound(b) : read_adts(b);
}

// Each frame carries its own configuration.
SoundTrack read_adts(Bytes b) {
  SoundTrack track;
  track.codec = "aac";
  int64_t at = adts_begin(b);
  track.timescale = kAdtsRates[b.u8(at + 2) >> 2 & 15];
  for (int64_t n; (n = adts_length(b, at)); at += n) {
    if (!b.has(at, n)) fail("AAC: the frame at byte %lld is cut off by the end of the file", (long long)at);
    track.packets.push_back({at, 0, (int32_t)n, 1});
    track.duration += kAdtsBlock * (1 + (b.u8(at + 6) & 3));
  }
  if (at < b.size && !b.starts(at, "TAG", 3)) fail("AAC: no frame begins at byte %lld", (long long)at);
  track.length = track.duration;
  return track;
}
